"""Gradients of one run: three cotangents, every differentiable leaf, None distinct from zero.

A mean or a ones cotangent alone is in the null space of softmax and layer norm; a random one and a one-hot one are
not.  Gradients come from `torch.autograd.grad`, so that the user's `.grad` is never touched.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from .state.argument_stand_ins import StandIns
from .state.run_outcome import RunOutcome
from .state.saved_tensors import SavedTensorState
from .state.snapshot import Snapshot

COTANGENTS = ("random", "one-hot", "ones")


@dataclass(frozen=True, slots=True, eq=False)
class Gradients:
    """Gradients of every leaf by name for one cotangent, or the exception the backward raised."""

    by_leaf: dict[str, torch.Tensor | None]
    error: BaseException | None


def leaves_of(snapshot: Snapshot, stand_ins: StandIns) -> dict[str, torch.Tensor]:
    """Return the tensors whose gradients are judged, by name: reached leaves, and the leaves of stand-ins."""
    leaves = {
        path: saved.value
        for path, _, saved in snapshot.entries
        if isinstance(saved, SavedTensorState)
        and saved.requires_grad
        and saved.grad_fn is None
        and id(saved.value) not in stand_ins.by_original
    }
    names = {id(saved.value): path for path, _, saved in snapshot.entries if isinstance(saved, SavedTensorState)}
    for pair in stand_ins.pairs:
        leaves.setdefault(names.get(id(pair.original), "argument"), pair.leaf)
    return leaves


def differentiable(outcome: RunOutcome) -> dict[str, torch.Tensor]:
    """Return the live outputs and changed tensors that have a backward, by path."""
    return {
        path: record.original
        for path, record in outcome.tensors().items()
        if record.original.requires_grad and record.original.grad_fn is not None
    }


def cotangents_for(outputs: Sequence[torch.Tensor], kind: str, seed: int) -> list[torch.Tensor]:
    """Return one cotangent per output, of its shape and dtype, drawn from the oracle's own generator."""
    generator = torch.Generator().manual_seed(seed)
    if kind == "ones":
        return [torch.ones_like(output) for output in outputs]
    if kind == "random":
        return [_normal(output, generator) for output in outputs]
    cotangents = [torch.zeros_like(output) for output in outputs]
    filled = [number for number, output in enumerate(outputs) if output.numel()]
    if filled:
        chosen = cotangents[filled[int(torch.randint(len(filled), (1,), generator=generator))]]
        position = int(torch.randint(chosen.numel(), (1,), generator=generator))
        index = torch.unravel_index(torch.tensor(position), tuple(chosen.shape)) if chosen.dim() else ()
        chosen[tuple(int(i) for i in index)] = 1
    return cotangents


def _normal(output: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    dtype = torch.complex128 if output.is_complex() else torch.float64
    drawn = torch.randn(tuple(output.shape), generator=generator, dtype=dtype)
    return drawn.to(device=output.device, dtype=output.dtype)


def gradients_of(outputs: dict[str, torch.Tensor], leaves: dict[str, torch.Tensor], kind: str, seed: int) -> Gradients:
    """Run one backward from the outputs with a cotangent of this kind.

    outputs: by path; the order of paths decides the order of draws, so equal paths give equal cotangents.
    """
    paths = sorted(outputs)
    chosen = [outputs[path] for path in paths]
    try:
        gradients = torch.autograd.grad(
            chosen, list(leaves.values()), cotangents_for(chosen, kind, seed), allow_unused=True
        )
    except Exception as error:
        return Gradients({}, error)
    return Gradients(dict(zip(leaves, gradients, strict=True)), None)
