"""What backward is handed in fewer bytes than the value has: which values, the same gradients, what is left alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

import plumbline
from plumbline.compiler.base.events import Partitioned, recording

SHAPE = (2, 3, 8, 8)


def bytes_kept(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, backend: str) -> int:
    """Return what the cut keeps, after the gradients have been compared with eager's."""
    with recording() as events:
        result = plumbline.compile(function, backend=backend)(x)
    (mine,) = torch.autograd.grad(result.sum(), x)
    (eagers,) = torch.autograd.grad(function(x).sum(), x)
    assert torch.equal(mine, eagers)
    (cut,) = [event for event in events if isinstance(event, Partitioned)]
    return cut.saved_bytes


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


KEPT: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], torch.Tensor, int]] = {
    "places of a pool, and the answers of relu": (
        lambda x: F.max_pool2d(torch.relu(x @ x), 2) * 3,
        leaf(*SHAPE),
        2 * 3 * 4 * 4 + 2 * 3 * 8 * 8,
    ),
    "places of the greatest along a dimension": (lambda x: (x * 2).max(1).values, leaf(100, 50), 100),
    "places among more than a byte holds": (lambda x: (x * 2).topk(3).values, leaf(4, 400), 4 * 3 * 2),
}


@pytest.mark.parametrize("name", sorted(KEPT))
def test_backward_is_handed_few_bytes(name: str) -> None:
    function, x, count = KEPT[name]
    assert bytes_kept(function, x, "aot_eager_decomp_partition") == count


def test_what_the_caller_gets_is_what_backward_reads() -> None:
    """Eager saves the result of relu, and says so when it was written to."""
    compiled = plumbline.compile(lambda x: torch.relu(x * 2), backend="aot_eager_decomp_partition")
    result = compiled(leaf(4))
    with torch.no_grad():
        result.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.sum().backward()


@pytest.mark.parametrize("kept", [0, 1])
def test_one_of_two_results_has_a_gradient(kept: int) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(x * 1.5)
        return F.max_pool2d(y, 2) * 2, (y * 2).max(3).values

    x = leaf(*SHAPE)
    (mine,) = torch.autograd.grad(plumbline.compile(program)(x)[kept].sum(), x)
    (eagers,) = torch.autograd.grad(program(x)[kept].sum(), x)
    assert torch.equal(mine, eagers)


def test_a_value_that_is_not_a_number_lets_the_gradient_through() -> None:
    x = torch.tensor([float("nan"), -1.0, 0.0, 2.0], requires_grad=True)
    program = lambda x: torch.relu(x * 1.5) * 2  # noqa: E731  a program in one line
    (mine,) = torch.autograd.grad(plumbline.compile(program)(x).sum(), x)
    (eagers,) = torch.autograd.grad(program(x).sum(), x)
    assert torch.equal(mine, eagers)
