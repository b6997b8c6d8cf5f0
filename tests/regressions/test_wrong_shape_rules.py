"""Kernels read memory by what a shape rule said of an ATen call's result, where the call gave something else."""

import pytest
import torch

import plumbline
from plumbline.compiler.backends import resolve_backend
from plumbline.compiler.base.events import FellBack, RanEagerly, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph

BACKENDS = ["aot_eager", "inductor"]
pytestmark = pytest.mark.cc


def defined(name, kernel, rule, *, differentiable=True):
    operator = torch.library.custom_op(f"plumbline_wrong_rules::{name}", mutates_args=())(kernel)
    operator.register_fake(rule)
    if differentiable:
        operator.register_autograd(lambda ctx, grad: grad.float() * 2)
    return operator


def half(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).bfloat16()


def shorter(x: torch.Tensor) -> torch.Tensor:
    return (x * 2)[:5].clone()


def columns(x: torch.Tensor) -> torch.Tensor:
    return (x * 2).t().contiguous().t()


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def unreal(x: torch.Tensor) -> torch.Tensor:
    return torch.complex(x, x)


WRONG = {
    "dtype": defined("dtype", half, lambda x: torch.empty_like(x)),
    "shape": defined("shape", shorter, lambda x: torch.empty_like(x), differentiable=False),
    "greater shape": defined("greater", double, lambda x: x.new_empty((5, *x.shape[1:])), differentiable=False),
    "strides": defined("strides", columns, lambda x: torch.empty_like(x)),
    "rank": defined("rank", double, lambda x: x.new_empty((x.numel(),)), differentiable=False),
    "complex": defined("complex", unreal, lambda x: torch.empty_like(x), differentiable=False),
    "real": defined("real", double, lambda x: x.new_empty(x.shape, dtype=torch.complex64), differentiable=False),
}


def outcome(function, *inputs):
    """Return what a call gives and where it leaves the generator; of an error only its kind."""
    torch.manual_seed(5)
    try:
        value = function(*inputs)
    except Exception as error:
        value = type(error)
    return value, torch.get_rng_state()


def assert_same(function, *inputs, backend, **settings) -> None:
    expected, state = outcome(function, *inputs)
    compiled = plumbline.compile(function, backend=backend, **settings)
    for _ in range(3):
        actual, state_after = outcome(compiled, *inputs)
        assert torch.equal(state, state_after)
        if isinstance(expected, type):
            assert actual is expected
            continue
        assert actual.dtype == expected.dtype
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WRONG)
def test_results_read_by_kernels(name: str, backend: str) -> None:
    assert_same(lambda x: WRONG[name](x + 1) * 3 + 1, torch.randn(8, 8), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WRONG)
def test_results_given_to_the_caller(name: str, backend: str) -> None:
    assert_same(lambda x: WRONG[name](x + 1), torch.randn(8, 8), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WRONG)
def test_sizes_that_vary(name: str, backend: str) -> None:
    compiled = plumbline.compile(lambda x: WRONG[name](x + 1) * 3 + 1, backend=backend, dynamic=True)
    for rows in (8, 9, 12):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(compiled(x), WRONG[name](x + 1) * 3 + 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_casts_that_a_promise_made_unnecessary(backend: str) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
            return (torch.ops.plumbline_wrong_rules.dtype(x).float(),)

    x = torch.randn(8, 8)
    compile_captured, _, _ = resolve_backend(backend, Options())
    (actual,) = compile_captured(torch.fx.symbolic_trace(Module()), [x])(x)
    assert actual.dtype == torch.float32
    assert torch.equal(actual, half(x).float())


@pytest.mark.parametrize("backend", BACKENDS)
def test_draws_are_not_repeated(backend: str) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return WRONG["dtype"](torch.nn.functional.dropout(x, 0.5) + torch.rand(8, 8)) * torch.rand(8, 8)

    assert_same(program, torch.randn(8, 8), backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_are_not_repeated(backend: str) -> None:
    def program(x: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        total.add_(1)
        result = WRONG["dtype"](x + total)
        total.add_(result.sum())
        return result * 2

    x, total, other = torch.randn(8, 8), torch.zeros(()), torch.zeros(())
    compiled = plumbline.compile(program, backend=backend)
    for _ in range(2):
        assert torch.equal(compiled(x, total), program(x, other))
        assert torch.equal(total, other)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["dtype", "strides"])
def test_gradients(name: str, backend: str) -> None:
    def gradient(function):
        x = torch.linspace(-1, 1, 64).reshape(8, 8).requires_grad_()
        (function(x).float() ** 2).sum().backward()
        return x.grad

    def program(x: torch.Tensor) -> torch.Tensor:
        return WRONG[name](x.sin()) * 3

    torch.testing.assert_close(gradient(plumbline.compile(program, backend=backend)), gradient(program))


WRONG_GRADIENT = defined("gradient", half, lambda x: torch.empty_like(x), differentiable=False)
RIGHT = torch.library.custom_op("plumbline_wrong_rules::right", mutates_args=())(double)
RIGHT.register_fake(lambda x: torch.empty_like(x))
RIGHT.register_autograd(lambda ctx, grad: WRONG_GRADIENT(grad * 3) + 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_call_of_the_backward(backend: str) -> None:
    def gradient(function):
        x = torch.linspace(-1, 1, 64).reshape(8, 8).requires_grad_()
        (function(x) ** 2).sum().backward()
        return x.grad

    def program(x: torch.Tensor) -> torch.Tensor:
        return RIGHT(x.sin()) * 3

    compiled = plumbline.compile(program, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(gradient(compiled), gradient(program))


def test_the_departure_is_on_record() -> None:
    compiled = plumbline.compile(lambda x: WRONG["dtype"](x + 1) * 3, backend="inductor")
    with recording() as events:
        compiled(torch.randn(8, 8))
    (event,) = [event for event in events if isinstance(event, RanEagerly)]
    assert "gives torch.bfloat16 (8, 8) on cpu, and its shape rule says torch.float32 (8, 8)" in event.what


def test_a_graph_by_itself_goes_on_op_by_op() -> None:
    x = torch.randn(8, 8)

    def program(x: torch.Tensor) -> torch.Tensor:
        return WRONG["dtype"](torch.bernoulli(x.sigmoid())) * torch.rand(8, 8)

    compiled = compile_graph(trace(program, (x,)), (x,), Options(strict=True))
    with recording() as events:
        for _ in range(2):
            (actual, state), (expected, state_of_eager) = outcome(lambda x: compiled(x)[0], x), outcome(program, x)
            assert torch.equal(actual, expected)
            assert torch.equal(state, state_of_eager)
    assert len([event for event in events if isinstance(event, FellBack)]) == 1
