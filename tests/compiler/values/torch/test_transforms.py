"""torch.func transforms are one node over a graph of their own: values, closures, nesting, and what is refused."""

import pytest
import torch
from torch import func

from plumbline.compiler import api
from plumbline.compiler.base.events import Broke, Captured, recording
from plumbline.compiler.base.options import Options

TABLE = torch.linspace(0, 1, 3)
SETTINGS = {"k": 2.0}
SEEN = []
LAYER = torch.nn.Linear(3, 2)


def closes_over_an_intermediate(x):
    y = x * 2
    return func.grad(lambda z: (z * y.sum()).sum())(x) + y


def closes_over_a_global(x):
    return func.vmap(lambda row: row * TABLE * SETTINGS["k"])(x)


def closes_over_a_module(x):
    return func.vmap(lambda row: LAYER(row).relu())(x)


def gradient_per_row(x):
    return func.vmap(func.grad(lambda row: (row**3).sum()))(x)


def nested_closures(x):
    y = x.sin()
    return func.vmap(lambda row: func.grad(lambda r: (r * row * y[0]).sum())(row))(x)


def two_arguments_and_dimensions(x):
    return func.vmap(lambda a, b: a @ b, in_dims=(0, None), out_dims=0)(x, x.T)


def keyword_argument(x):
    return func.grad(lambda a, y: (a * y).sum())(x, y=x)


def auxiliary_output(x):
    gradient, extra = func.grad(lambda a: ((a**2).sum(), a + 1), has_aux=True)(x)
    return gradient + extra


def structured_arguments(x):
    return func.vmap(lambda p: p["a"] + p["b"][0])({"a": x, "b": (x,)})


def second_derivative(x):
    return func.hessian(lambda r: (r**3).sum())(x[0])


def forward_jacobian(x):
    return func.jacfwd(lambda r: r.sin())(x[0])


def control_flow_on_shapes(x):
    return func.vmap(lambda row: row.sum() if row.dim() == 1 else row)(x)


def size_inside(x):
    return func.vmap(lambda row: row.view(3, 1) * row.shape[0])(x)


FUNCTIONS = [
    closes_over_an_intermediate,
    closes_over_a_global,
    closes_over_a_module,
    gradient_per_row,
    nested_closures,
    two_arguments_and_dimensions,
    keyword_argument,
    auxiliary_output,
    structured_arguments,
    second_derivative,
    forward_jacobian,
    control_flow_on_shapes,
    size_inside,
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_one_graph_and_eagers_values(function, backend):
    run = api.compile(function, backend=backend, options=Options(strict=True))
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    with recording() as events:
        actual = run(x)
    torch.testing.assert_close(actual, function(x))
    assert sum(isinstance(event, Captured) for event in events) == 1
    assert not [event.what for event in events if isinstance(event, Broke)]
    assert torch.allclose(run(x + 1), function(x + 1))


def test_what_the_function_reads_is_guarded(monkeypatch):
    run = api.compile(closes_over_a_global, backend="eager", options=Options(strict=True))
    x = torch.ones(2, 3)
    run(x)
    monkeypatch.setitem(SETTINGS, "k", 5.0)
    assert torch.equal(run(x), closes_over_a_global(x))


def test_gradients_flow_through():
    def function(x):
        return func.vmap(lambda row: row.sin() * 2)(x * 3)

    found = []
    for call in (function, api.compile(function, backend="aot_eager", options=Options(strict=True))):
        x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
        call(x).sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1], found[0])


def test_side_effects_are_kept():
    def noting(row):
        SEEN.append(1)
        return row * 2

    def function(x):
        return func.vmap(noting)(x) + 1

    SEEN.clear()
    run = api.compile(function, backend="eager", options=Options(strict=True))
    for _ in range(3):
        run(torch.ones(2, 3))
    assert len(SEEN) == 3


def test_data_dependence_inside_is_eagers_error():
    def function(x):
        return func.vmap(lambda row: row if row.sum() > 0 else -row)(x)

    with pytest.raises(RuntimeError):
        function(torch.ones(2, 3))
    with pytest.raises(RuntimeError):
        api.compile(function, backend="eager", options=Options(strict=True))(torch.ones(2, 3))
