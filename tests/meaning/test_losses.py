"""Eager = loops = fused loops = C for losses of classes: weights, an ignored class, every reduction, gradients."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

from plumbline.compiler.base.events import StepsAssigned, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph
from support.backend_levels import run_levels, same_form

pytestmark = pytest.mark.cc
TARGET = torch.tensor([3, 0, 8, 3, 5, 8, 2])
WEIGHT = torch.rand(9, generator=torch.Generator().manual_seed(1)) + 0.1


def scores(dtype: torch.dtype) -> torch.Tensor:
    return torch.randn((7, 9), generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def with_gradient(loss: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], tuple[torch.Tensor, ...]]:
    def run(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            value = loss(x)
            return value.detach(), *torch.autograd.grad(value.sum(), x)

    return run


def on_device(x: torch.Tensor, *tensors: torch.Tensor | None) -> list[torch.Tensor | None]:
    return [None if each is None else each.to(x.device) for each in tensors]


def hold(run: Callable[[torch.Tensor], tuple[torch.Tensor, ...]], x: torch.Tensor) -> None:
    for level, outputs in run_levels(run, (x,)).items():
        for found, want in zip(outputs, run(x), strict=True):
            assert isinstance(found, torch.Tensor)
            assert same_form(found, want), level
            torch.testing.assert_close(found, want, rtol=4e-6, atol=1e-7, equal_nan=True, msg=level)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("ignored", [-100, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_cross_entropy(dtype: torch.dtype, ignored: int, reduction: str) -> None:
    for weight in (None, WEIGHT.to(dtype)):

        def loss(x: torch.Tensor, weight: torch.Tensor | None = weight) -> torch.Tensor:
            return F.cross_entropy(x, *on_device(x, TARGET, weight), reduction=reduction, ignore_index=ignored)

        hold(with_gradient(loss), scores(dtype))


def test_every_row_is_ignored() -> None:
    for reduction in ("sum", "mean"):  # the mean of nothing is NaN
        hold(
            with_gradient(lambda x, r=reduction: F.cross_entropy(x, torch.full((7,), 4), reduction=r, ignore_index=4)),
            scores(torch.float32),
        )


@pytest.mark.parametrize("bad", [9, -1])
def test_a_class_out_of_range_is_eagers_error(bad: int) -> None:
    target = TARGET.clone()
    compiled = compile_graph(trace(F.cross_entropy, (scores(torch.float32), target)), (), Options(strict=True))
    compiled(scores(torch.float32), target)
    target[2] = bad
    with pytest.raises(IndexError, match="out of bounds"):
        compiled(scores(torch.float32), target)


def test_a_loss_and_its_gradient_leave_nothing_to_aten() -> None:
    gm = trace(with_gradient(lambda x: F.cross_entropy(x, TARGET)), (scores(torch.float32),))
    with recording() as events:
        compile_graph(gm, (scores(torch.float32),), Options(strict=True))
    (assigned,) = [event for event in events if isinstance(event, StepsAssigned)]
    assert not [step for step in assigned.left if step.reason != "VIEW"]
    assert len(assigned.launched) == 3, "the rows, their sum, the gradient: no tensor of zeros is filled in between"
