"""Marks on tensors: which sizes are open from the first call, in which range, and which never are."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.events import Captured, recording

Mark = Callable[..., Any]


def captures(function: Callable[..., Any], calls: list[tuple[Any, ...]], **settings: Any) -> list[int]:
    """Call a compiled function with each tuple of arguments; return how many graphs each call captured."""
    plumbline.reset()  # what an earlier call has captured of the function would do
    compiled = plumbline.compile(function, backend="eager", **settings)
    counts = []
    for arguments in calls:
        wanted = function(*arguments)
        with recording() as events:
            assert torch.equal(compiled(*arguments), wanted)
        counts.append(sum(isinstance(event, Captured) for event in events))
    return counts


def rows(size: int, mark: Mark | None = None, **range_: int) -> torch.Tensor:
    made = torch.arange(float(size * 3)).reshape(size, 3)
    if mark is not None:
        mark(made, 0, **range_)
    return made


def double(a: torch.Tensor) -> torch.Tensor:
    return a * 2


def _left_by_torch(name: str) -> Mark:
    """Return what a function of torch does to a tensor: it leaves an attribute."""
    return lambda tensor, index: setattr(tensor, name, {index})


OPEN: list[Mark] = [
    plumbline.mark_dynamic,
    plumbline.maybe_mark_dynamic,
    plumbline.mark_unbacked,
    _left_by_torch("_dynamo_dynamic_indices"),
    _left_by_torch("_dynamo_weak_dynamic_indices"),
    _left_by_torch("_dynamo_unbacked_indices"),
    _left_by_torch("_dynamo_strict_unbacked_indices"),
]


@pytest.mark.parametrize("mark", OPEN, ids=lambda mark: getattr(mark, "__name__", "mark"))
def test_a_marked_size_is_open_at_once(mark: Mark) -> None:
    assert captures(double, [(rows(4, mark),), (rows(5),), (rows(9),)]) == [1, 0, 0]


def test_the_marks_of_the_installed_torch_are_known() -> None:
    marks = torch._dynamo.decorators  # the peer: what users call
    for mark in (marks.mark_dynamic, marks.maybe_mark_dynamic, marks.mark_unbacked):
        assert captures(double, [(rows(4, mark),), (rows(5),)]) == [1, 0]
    assert captures(double, [(rows(4, marks.mark_static),), (rows(5, marks.mark_static),)], dynamic=True) == [1, 1]


def test_zero_and_one_are_captured_apart() -> None:
    calls = [(rows(4, plumbline.mark_unbacked),), (rows(1),), (rows(0),), (rows(7),)]
    assert captures(double, calls) == [1, 1, 1, 0]


def test_a_size_marked_static_is_never_open() -> None:
    assert captures(double, [(rows(4, plumbline.mark_static),), (rows(5),)], dynamic=True) == [1, 1]


def test_a_range_decides_comparisons_and_is_guarded() -> None:
    def branch(a: torch.Tensor) -> torch.Tensor:
        return a * 2 if a.shape[0] < 100 else a * 3

    calls = [(rows(n, plumbline.mark_dynamic, min=2, max=50) if n == 4 else rows(n),) for n in (4, 5, 50, 60, 200, 7)]
    assert captures(branch, calls) == [1, 0, 0, 1, 1, 0]


def test_a_mark_inside_a_list_counts() -> None:
    def first(xs: list[torch.Tensor]) -> torch.Tensor:
        return xs[0] * 2

    assert captures(first, [([rows(4, plumbline.mark_dynamic)],), ([rows(5)],), ([rows(9)],)]) == [1, 0, 0]


def test_a_mark_that_cannot_be_is_refused() -> None:
    with pytest.raises(UserError):
        plumbline.mark_dynamic(rows(60), 0, max=50)
    with pytest.raises(UserError):
        plumbline.mark_static(rows(4), 5)
