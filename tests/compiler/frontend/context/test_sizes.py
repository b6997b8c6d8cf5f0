"""A size that could not stay open says so, with the line that needed the number; one that stays open says nothing."""

from collections.abc import Callable

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import FellBack, Recompiled, recording


def in_text(a: torch.Tensor) -> torch.Tensor:
    doubled = a * 2
    return doubled + len(f"{a.shape[0]}")  # here


def unrolled(a: torch.Tensor) -> torch.Tensor:
    total = a[0]
    for i in range(a.shape[0]):  # here
        total = total + a[i]
    return total


def needed_by_torch(a: torch.Tensor) -> torch.Tensor:
    shifted = a + 1
    return torch.linspace(0, 1, a.shape[0])[:, None] + shifted  # here


def left_open(a: torch.Tensor) -> torch.Tensor:
    return a.view(-1) * a.shape[0]


def events_of(function: Callable[..., torch.Tensor]) -> list[FellBack]:
    compiled = plumbline.compile(function, backend="eager", dynamic=True)
    with recording() as events:
        compiled(torch.ones(4, 3))
    return [event for event in events if isinstance(event, FellBack) and event.operation == "dynamic size"]


@pytest.mark.parametrize("function", [in_text, unrolled, needed_by_torch])
def test_a_fixed_size_is_on_record_with_its_line(function: Callable[..., torch.Tensor]) -> None:
    (event,) = events_of(function)
    assert event.why.startswith("a.shape[0] is fixed to 4")
    assert event.origin is not None
    assert event.origin.source_line().endswith("# here")


def test_an_input_with_gaps_is_on_record() -> None:
    compiled = plumbline.compile(left_open_by_row, backend="eager", dynamic=True)
    with recording() as events:
        compiled(torch.ones(4, 8)[:, :3])
    (event,) = [event for event in events if isinstance(event, FellBack) and event.operation == "dynamic size"]
    assert event.why.startswith("the sizes of a are fixed")


def left_open_by_row(a: torch.Tensor) -> torch.Tensor:
    return a.sum(1) * a.shape[0]


def test_an_open_size_is_not_on_record() -> None:
    assert events_of(left_open) == []


def test_a_guard_on_sizes_that_fails_tells_their_values() -> None:
    def even(a: torch.Tensor) -> torch.Tensor:
        return a * 2 if a.shape[0] % 2 == 0 else a * 3

    compiled = plumbline.compile(even, backend="eager", dynamic=True)
    compiled(torch.ones(4, 3))
    with recording() as events:
        compiled(torch.ones(7, 3))
    (event,) = [event for event in events if isinstance(event, Recompiled)]
    assert "a.shape[0]" in event.guard
    assert "7" in event.actual
