"""Compiling into a cache of graphs as several processes do, and telling whether anything was traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import plumbline
from plumbline.compiler.base.events import forget_stage_times, stage_times
from plumbline.compiler.frontend.units.shared_units import forget_units


@dataclass(frozen=True)
class Outcome:
    """Results, gradients of the inputs that require one, inputs after the call; traced: whether a trace was made."""

    results: list[torch.Tensor]
    gradients: list[torch.Tensor | None]
    inputs: list[torch.Tensor]
    traced: bool


def compiled_anew(
    program: Callable[..., Any], make: Callable[[], Sequence[Any]], folder: Path, *, seed: int = 0, **options: Any
) -> Outcome:
    """Compile a program as a new process would, run it forward and backward, and tell what happened."""
    torch.manual_seed(seed)
    forget_stage_times()
    run = fresh(program, folder, **options)
    outcome = played(run, make(), seed)
    return Outcome(outcome.results, outcome.gradients, outcome.inputs, "joint" in stage_times())


def fresh(program: Callable[..., Any], folder: Path, **options: Any) -> Callable[..., Any]:
    """Return a program's compiled form as a new process has it: nothing that was compiled here is shared."""
    forget_units()
    chosen = {"cache_directory": str(folder), "graph_cache": True, "strict": True, **options}
    compiled: Callable[..., Any] = plumbline.compile(program, options=chosen)
    return compiled


def played(run: Callable[..., Any], inputs: Sequence[Any], seed: int = 0) -> Outcome:
    """Run a program forward and backward."""
    torch.manual_seed(seed)
    found = run(*inputs)
    results = [value for value in (found if isinstance(found, tuple) else (found,)) if isinstance(value, torch.Tensor)]
    ends = [value.sum() for value in results if value.requires_grad]
    if ends:
        torch.stack([end.double() for end in ends]).sum().backward()
    tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
    return Outcome(
        [value.detach() for value in results],
        [value.grad for value in tensors if value.is_leaf and value.requires_grad],
        [value.detach() for value in tensors],
        False,
    )


def assert_same_outcome(actual: Outcome, expected: Outcome) -> None:
    """Compare results, gradients and what became of the inputs: metadata exactly, elements to rounding."""
    for mine, others in zip(
        (actual.results, actual.gradients, actual.inputs),
        (expected.results, expected.gradients, expected.inputs),
        strict=True,
    ):
        for one, other in zip(mine, others, strict=True):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
                torch.testing.assert_close(one, other, equal_nan=True)
