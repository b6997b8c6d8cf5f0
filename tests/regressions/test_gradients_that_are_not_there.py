"""A gradient of None goes on as None across graphs, histories without gradients are visited, refusals are raised."""

import itertools

import pytest
import torch
from torch.nn import functional

import plumbline
from support.torch_release import since_release

BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_gradient_of_a_later_graph_is_no_gradient_of_the_earlier_ones(backend):
    def program(x):
        middle = 1 / x
        print(end="")
        return torch.linalg.vector_norm(middle, 0)

    x = torch.zeros(3, requires_grad=True)
    plumbline.compile(program, backend=backend)(x).backward()
    assert x.grad is None  # zeros would have become NaN on their way


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_engine_visits_an_input_to_which_no_gradient_leads(backend):
    def program(x, y):
        return x * 2, torch.unique(torch.norm(y, 0))

    x, y = torch.ones(2, requires_grad=True), torch.ones((), requires_grad=True)
    _, result = plumbline.compile(program, backend=backend)(x, y)
    with pytest.raises(NotImplementedError):
        torch.autograd.grad([result], [y], [torch.ones_like(result)], allow_unused=True)


REFUSED = {
    "a power of a truth value": lambda x: torch.pow(x, torch.tensor(False)),
    "a lower bound of more dimensions": lambda x: torch.clamp(x, torch.ones(1), x),
    "targets of another dtype": lambda x: functional.huber_loss(x, torch.zeros((), dtype=torch.float16)),
}
ALLOWED_SINCE = {"a lower bound of more dimensions": "2.15"}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REFUSED)
def test_a_backward_that_eager_refuses_is_refused(name, backend):
    for run in (REFUSED[name], plumbline.compile(REFUSED[name], backend=backend)):
        x = torch.tensor(0.5, requires_grad=True)
        result = run(x)
        if since_release(ALLOWED_SINCE.get(name)):
            result.backward()
            assert x.grad == 1
            continue
        with pytest.raises(RuntimeError):
            result.backward()


@pytest.mark.parametrize("needed", [(True, False, False), (False, True, False), (False, False, True)])
@pytest.mark.parametrize("own", [(), (2,), (3, 1)])
def test_bounds_of_other_shapes_are_refused_where_eager_refuses_them(own, needed):
    """Which of the three have all dimensions decides, and which of them gets a gradient."""
    for shapes in itertools.product([own], [(), (2,), (3, 2)], [(), (2,), (3, 2)]):
        outcomes = []
        for run in (torch.clamp, plumbline.compile(torch.clamp, backend="aot_eager")):
            leaves = [torch.ones(shape, requires_grad=need) for shape, need in zip(shapes, needed, strict=True)]
            try:
                run(*leaves).sum().backward()
            except RuntimeError as error:
                outcomes.append(str(error))
            else:
                outcomes.append([None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves])
        assert outcomes[0] == outcomes[1], shapes


def test_views_that_overlap_themselves_with_a_history_from_outside_are_no_internal_error(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")

    def program(x, y):
        wide = x.expand(2, 2, -1, 3)
        wide.fill_(-1.0)
        x[..., -2:, None] = y
        return wide

    y = torch.tensor(3.0, requires_grad=True)
    result = plumbline.compile(program, backend="eager")(torch.zeros(1, 1), y)
    assert torch.equal(result, torch.full((2, 2, 1, 3), 3.0))
    assert result.requires_grad
