"""Aliasing seen by writing: every output of a call is changed, and the other outputs and the inputs are looked at.

The judge compares which tensors say that they share memory; here memory itself is asked.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .argument_trees import tensors_of

Reached = frozenset[tuple[int, str]]
"""(number of the output written to, name of another tensor that changed by it)."""


def reached_by_writing(program: Callable[[list[Any]], Any], args: list[Any]) -> list[Reached]:
    """Run a program of many cases and return for each case what writing to its outputs changes.

    args: for each case its inputs, in which tensors are found at any depth.
    """
    results = program(args)
    return [_reached(result, list(tensors_of(inputs))) for result, inputs in zip(results, args, strict=True)]


def _reached(result: Any, inputs: Sequence[torch.Tensor]) -> Reached:
    outputs = [tensor.detach() for tensor in tensors_of(result) if tensor.layout == torch.strided]
    looked_at = [(f"output {number}", tensor) for number, tensor in enumerate(outputs)]
    looked_at += [(f"input {number}", tensor.detach()) for number, tensor in enumerate(inputs)]
    changed: set[tuple[int, str]] = set()
    for number, output in enumerate(outputs):
        if not _writable(output):
            continue
        before = [tensor.clone() for _, tensor in looked_at]
        with torch.no_grad():
            output.copy_(~output if output.dtype == torch.bool else torch.where(output == 1, 2, 1).to(output.dtype))
        for (name, tensor), old in zip(looked_at, before, strict=True):
            if name != f"output {number}" and not _same(tensor, old):
                changed.add((number, name))
    return frozenset(changed)


def _writable(tensor: torch.Tensor) -> bool:
    """Return whether each element of the tensor has memory of its own."""
    if tensor.layout != torch.strided or not tensor.numel() or tensor.is_inference():
        return False
    return not any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _same(first: torch.Tensor, second: torch.Tensor) -> bool:
    return first.shape == second.shape and bool(((first == second) | ((first != first) & (second != second))).all())
