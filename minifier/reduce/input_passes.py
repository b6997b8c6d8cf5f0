"""Passes over inputs: smaller shapes, plainer values, contiguous memory, float32, no gradients.

Each proposes few candidates, the one that saves most first; what no longer runs eagerly costs no query.
"""

from collections.abc import Callable

import torch

from ..graphs.graph_case import GraphCase
from ..graphs.subgraph import rewritten
from .graph_judge import GraphReport
from .graph_passes import GraphProblem

SMALL = 2
"""The size tried first for every dimension: the smallest that still has a neighbour."""
PLAIN_UP_TO = 64
"""Elements up to which values are made plain one tensor after the other, if not all of them together."""


def shrink_sizes(problem: GraphProblem) -> None:
    """Cut every size to 2 (or 1), all at once and then each by itself, by halves.

    Equal sizes change together, in the inputs and in the literal arguments of operators (view, expand, full).
    """
    sizes = sizes_of(problem.current)
    if not sizes or max(sizes) <= SMALL:
        return
    where = _worst_index(problem.answer(problem.current))
    if problem.attempt(_resized(problem.current, {size: SMALL for size in sizes if size > SMALL}, where)):
        return
    for size in sorted(sizes, reverse=True):
        here = size
        while here > SMALL:
            smaller = max(SMALL, here // 2)
            if smaller in sizes_of(problem.current) and smaller != here:
                smaller += 1  # keep sizes that were apart apart
            if smaller >= here or not problem.attempt(_resized(problem.current, {here: smaller}, where)):
                break
            here = smaller


def sizes_of(case: GraphCase) -> set[int]:
    """Return the sizes beyond 1 that the inputs of a case have."""
    return {int(size) for value in case.inputs if isinstance(value, torch.Tensor) for size in value.shape if size > 1}


def with_size(case: GraphCase, size: int, smaller: int) -> GraphCase:
    """Return a case with one of its sizes smaller, everywhere; the part that is kept is the first."""
    return _resized(case, {size: smaller}, None)


def _worst_index(report: GraphReport | None) -> tuple[int, ...] | None:
    verdict = report.verdict if report is not None else None
    numbers = verdict.worst.numbers if verdict is not None and verdict.worst is not None else None
    return numbers.worst_index if numbers is not None else None


def _resized(case: GraphCase, sizes: dict[int, int], where: tuple[int, ...] | None) -> GraphCase:
    inputs = [_window(value, sizes, where) if isinstance(value, torch.Tensor) else value for value in case.inputs]

    def change(leaf: object) -> object:
        return sizes.get(leaf, leaf) if type(leaf) is int else leaf

    return rewritten(case, inputs, change)


def _window(tensor: torch.Tensor, sizes: dict[int, int], where: tuple[int, ...] | None) -> torch.Tensor:
    """Return the part of a tensor that holds the worst position, dimensions matched from the last."""
    part = tensor.detach()
    for dim, size in enumerate(tensor.shape):
        new_size = sizes.get(int(size))
        if new_size is None:
            continue
        back = dim - tensor.dim()
        centre = where[back] if where is not None and -back <= len(where) else 0
        start = min(max(0, centre - new_size // 2), int(size) - new_size)
        part = part.narrow(dim, start, new_size)
    return _like(part.clone(memory_format=torch.preserve_format), tensor)


def plain_values(problem: GraphProblem) -> None:
    """Make floating-point values plain: ones, small integers, one decimal; all inputs together, then each alone."""
    for make in (_ones, _whole_numbers, _one_decimal):
        if problem.attempt(_with_values(problem.current, make, None)):
            return
    for number, value in enumerate(problem.current.inputs):
        if isinstance(value, torch.Tensor) and value.numel() <= PLAIN_UP_TO:
            for make in (_ones, _whole_numbers):
                if problem.attempt(_with_values(problem.current, make, number)):
                    break


def ones_in_place_of(case: GraphCase, number: int) -> GraphCase:
    """Return a case with ones as the values of one input."""
    return _with_values(case, _ones, number)


def _with_values(case: GraphCase, make: Callable[[torch.Tensor], torch.Tensor], only: int | None) -> GraphCase:
    inputs = list(case.inputs)
    for number, value in enumerate(inputs):
        if isinstance(value, torch.Tensor) and value.is_floating_point() and only in (None, number):
            inputs[number] = _like(make(value.detach()), value)
    return GraphCase(case.graph, tuple(inputs))


def _ones(value: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(value)


def _whole_numbers(value: torch.Tensor) -> torch.Tensor:
    """Round away from zero, so that signs, and which values are large, stay."""
    return torch.nan_to_num(value.sign() * value.abs().ceil(), posinf=9.0, neginf=-9.0).clamp(-9.0, 9.0)


def _one_decimal(value: torch.Tensor) -> torch.Tensor:
    return torch.round(value, decimals=1)


def contiguous_memory(problem: GraphProblem) -> None:
    """Give every input contiguous memory of its own, if the failure does not need strides or sharing."""

    def settled(value: object) -> bool:
        return not isinstance(value, torch.Tensor) or (value.is_contiguous() and not _shares(value, problem.current))

    if not all(settled(value) for value in problem.current.inputs):
        inputs = _mapped(problem.current, lambda value: value.contiguous().clone())
        problem.attempt(GraphCase(problem.current.graph, inputs))


def _shares(tensor: torch.Tensor, case: GraphCase) -> bool:
    mine = tensor.untyped_storage().data_ptr()
    others = [v for v in case.inputs if isinstance(v, torch.Tensor) and v is not tensor]
    return tensor.numel() > 0 and any(other.untyped_storage().data_ptr() == mine for other in others)


def float32_everywhere(problem: GraphProblem) -> None:
    """Take float32 for every other floating dtype, in inputs and arguments."""
    others = (torch.float16, torch.bfloat16, torch.float64)
    if not any(isinstance(v, torch.Tensor) and v.dtype in others for v in problem.current.inputs):
        return
    inputs = _mapped(problem.current, lambda value: value.float() if value.dtype in others else value)
    problem.attempt(rewritten(problem.current, inputs, lambda leaf: torch.float32 if leaf in others else leaf))


def no_gradients(problem: GraphProblem) -> None:
    """Let no input require a gradient."""
    if any(isinstance(value, torch.Tensor) and value.requires_grad for value in problem.current.inputs):
        inputs = [value.detach() if isinstance(value, torch.Tensor) else value for value in problem.current.inputs]
        problem.attempt(GraphCase(problem.current.graph, tuple(inputs)))


def _mapped(case: GraphCase, change: Callable[[torch.Tensor], torch.Tensor]) -> tuple[object, ...]:
    """Return the inputs with every tensor changed; requires_grad stays as it was."""
    return tuple(_like(change(v.detach()), v) if isinstance(v, torch.Tensor) else v for v in case.inputs)


def _like(tensor: torch.Tensor, original: torch.Tensor) -> torch.Tensor:
    return (
        tensor.requires_grad_(original.requires_grad) if tensor.is_floating_point() or tensor.is_complex() else tensor
    )


INPUT_PASSES = (no_gradients, contiguous_memory, shrink_sizes, plain_values, float32_everywhere)
