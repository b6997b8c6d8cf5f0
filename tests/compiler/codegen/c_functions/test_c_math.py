"""Elementary functions that are written out: their error against float64, and their limits."""

from collections.abc import Callable

import pytest
import torch

from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph
from support.backend_levels import STRICT

pytestmark = pytest.mark.cc


def compiled(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    result = compile_graph(trace(function, (x,)), (x,), STRICT)(x)[0]
    assert isinstance(result, torch.Tensor)
    return result


def units_apart(found: torch.Tensor, true: torch.Tensor) -> torch.Tensor:
    """Return the distance of floats from doubles in units of the last place, of subnormal floats where they are."""
    exponent = torch.frexp(true).exponent.clamp(min=-125)
    return (found.double() - true).abs() / torch.ldexp(torch.ones_like(true), exponent - 24)


# Without fused multiplication and addition each step of a polynomial rounds twice.
ROUNDS_TWICE = torch.backends.cpu.get_cpu_capability() == "DEFAULT"


@pytest.mark.parametrize(
    ("function", "limits", "most"),
    [(torch.exp, (-104.0, 88.7), 1.0), (torch.tanh, (-10.0, 10.0), 2.0 if ROUNDS_TWICE else 1.5)],
)
def test_errors_are_small(
    function: Callable[[torch.Tensor], torch.Tensor], limits: tuple[float, float], most: float
) -> None:
    bits = torch.arange(-(2**31), 2**31, 65_537, dtype=torch.int64).to(torch.int32).view(torch.float32)
    for x in (torch.linspace(*limits, 1 << 18), bits[bits.isfinite() & (bits > limits[0]) & (bits < limits[1])]):
        assert units_apart(compiled(function, x), function(x.double())).max() <= most


@pytest.mark.parametrize("function", [torch.exp, torch.tanh, torch.sigmoid])
def test_limits_are_eagers(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    inf, nan = float("inf"), float("nan")
    hard = torch.tensor([nan, inf, -inf, 0.0, -0.0, 1e-45, -1e-45, 1e-38, 200.0, -200.0, 3e38, -3e38, 88.73, -104.1])
    hard = torch.cat([hard, torch.zeros(7)])  # more than one vector
    found, wanted = compiled(function, hard), function(hard)
    torch.testing.assert_close(found, wanted, rtol=3e-7, atol=0, equal_nan=True)
    assert torch.equal(found.signbit()[1:], wanted.signbit()[1:])  # that of nan differs between machines in eager
