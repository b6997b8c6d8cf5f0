"""Random programs mean the same eagerly, as lowered loops, as fused loops and as C.

Integer programs, so that every level must agree bit for bit whatever the order of additions; sizes are small and odd.
"""

from collections.abc import Callable

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.backend_levels import run_levels, same_form

pytestmark = [pytest.mark.cc, pytest.mark.slow]
Tensor = torch.Tensor
Step = Callable[[list[Tensor]], Tensor]
UNARY: list[Callable[[Tensor], Tensor]] = [
    lambda x: x + 1,
    lambda x: x * 3 - 7,
    lambda x: -x,
    lambda x: x.abs() % 5,
    lambda x: x // 3,
    lambda x: x.clamp(-9, 9),
    lambda x: torch.where(x > 0, x, 2),
    lambda x: x.to(torch.int8).to(torch.int64),
    lambda x: torch.full_like(x, 3),
]
BINARY: list[Callable[[Tensor, Tensor], Tensor]] = [
    torch.add,
    torch.sub,
    torch.mul,
    torch.maximum,
    torch.bitwise_xor,
    lambda x, y: torch.where(x < y, x, y),
]
SHAPES: list[Callable[[Tensor], Tensor]] = [
    lambda x: x.t(),
    lambda x: x.reshape(x.shape[1], x.shape[0]),
    lambda x: x.reshape(-1).view(1, -1),
    lambda x: x[1:],
    lambda x: x[:, ::2],
    lambda x: x[:1].expand(3, x.shape[1]),
    lambda x: x.flip(1),
    lambda x: torch.cat([x, x + 1], 0),
    lambda x: torch.cat([x[:, 1:], x], 1),
    lambda x: x.t().contiguous(),
    lambda x: torch.nn.functional.pad(x, [1, 0, 0, 2]),
    lambda x: x.tril(1),
    lambda x: x.clone(),
]
REDUCTIONS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x.sum(1, keepdim=True),
    lambda x: x.sum(0, keepdim=True),
    lambda x: x.amax(1, keepdim=True),
    lambda x: x.amin(0, keepdim=True),
    lambda x: x.argmax(1, keepdim=True),
    lambda x: x.sum().view(1, 1),
    lambda x: (x > 0).any(0, keepdim=True).to(torch.int64),
    lambda x: x - x.amax(1, keepdim=True) + x.sum(1, keepdim=True),
]


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, int, int, int]]:
    """Draw steps (family, which, first operand, second operand); operands count back from the newest value."""
    families = st.sampled_from(["unary", "binary", "binary", "shape", "shape", "reduction"])
    steps = st.tuples(families, st.integers(0, 20), st.integers(0, 5), st.integers(0, 5))
    return draw(st.lists(steps, min_size=2, max_size=9))


def run_program(steps: list[tuple[str, int, int, int]], x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    values = [x, y]
    for family, which, first, second in steps:
        one, two = values[-1 - first % len(values)], values[-1 - second % len(values)]
        if family == "unary":
            values.append(UNARY[which % len(UNARY)](one))
        elif family == "reduction":
            values.append(REDUCTIONS[which % len(REDUCTIONS)](one) if one.numel() else one + 1)
        elif family == "shape":
            changed = SHAPES[which % len(SHAPES)](one) if one.numel() else one
            values.append(changed if 0 < changed.numel() <= 4000 else one + 2)
        else:
            fits = all(a == b or 1 in (a, b) for a, b in zip(one.shape, two.shape, strict=True))
            values.append(BINARY[which % len(BINARY)](one, two) if fits else one - 5)
    return tuple(values[2:][-3:])


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from([(3, 5), (1, 7), (16, 4), (17, 33), (2, 64)]), st.integers(0, 3))
def test_every_level_agrees(steps: list[tuple[str, int, int, int]], shape: tuple[int, int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randint(-50, 50, shape, generator=generator) for _ in range(2))

    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return run_program(steps, x, y)

    wanted = program(x, y)
    for level, outputs in run_levels(program, (x, y)).items():
        for found, want in zip(outputs, wanted, strict=True):
            assert isinstance(found, Tensor)
            assert same_form(found, want), (level, found.stride(), want.stride())
            assert torch.equal(found, want), level
