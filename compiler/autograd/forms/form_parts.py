"""What a compiled form is made from and what it consists of, whether it was traced here or comes from disk."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ...base.errors import Unsupported
from ...base.options import Options
from ...base.torch_facts import OpOverload, hidden_tensor_hooks
from ...graph.tracer import Decomposition
from ..call_signature import CallSignature
from ..dynamic_arguments import Fits

Tensors = Sequence[torch.Tensor]
CompileGraph = Callable[[fx.GraphModule, Tensors], Callable[..., Tensors]]
Cut = Callable[[Any], Any]  # JointGraph -> Partition, which are not imported: a form from disk needs neither
Sizes = tuple[float, ...]
Run = Callable[[Sequence[object], Sizes], Tensors]
Departs = Callable[[Sequence[object], Sizes], bool]


@dataclass(frozen=True, slots=True)
class Halves:
    """What a caller does to the halves of a graph with gradients: how they are cut, and what compiles the backward.

    None: what plumbline does.  What these raise has to be a CallersFailure; it is raised where it happens.
    """

    cut: Cut | None = None
    compile_backward: CompileGraph | None = None


@dataclass(frozen=True, slots=True, eq=False)
class FormContext:
    """What all forms of one captured graph share.

    compile_graph, decompositions, recompute, halves: as for `compile_with_autograd`.  refused: told why the newest form
    runs as it was captured.
    """

    gm: fx.GraphModule
    compile_graph: CompileGraph
    options: Options
    decompositions: Callable[[], Mapping[OpOverload, Decomposition]]
    recompute: bool
    refused: Callable[[str], None]
    halves: Halves


@dataclass(frozen=True, slots=True, eq=False)
class FormParts:
    """One form.

    names: of the dynamic sizes, in order.  run: computes the graph's values.  fits: for which sizes it is right, None
    for all.  departs: asked before each call whether a stage departs from the one before; None where nobody asks.
    """

    signature: CallSignature
    names: tuple[str, ...]
    run: Run
    fits: Fits | None
    departs: Departs | None = None


def demand_history_allowed(signature: CallSignature) -> None:
    """Raise Unsupported where a result of a call would need a history that cannot be."""
    if signature.is_differentiable and torch.is_inference_mode_enabled():
        raise Unsupported("a result requires grad in inference mode", hint="expected: the graph runs eagerly")


APART = "clone one of them before the call to have it compiled"


def demand_written_apart(signature: CallSignature, arguments: Sequence[object]) -> None:
    """Raise Unsupported where an input that is written overlaps another."""
    if shares_written_memory(signature, arguments):
        raise Unsupported("a written input shares memory with another input", hint=APART)


def shares_written_memory(signature: CallSignature, arguments: Sequence[object]) -> bool:
    """Return whether an input that is written overlaps another input."""
    written = {signature.inputs[fact.input] for fact in signature.writes}
    if not written:
        return False
    spans = [(position, *_span(arguments[position])) for position in signature.inputs]
    for here, start, end in spans:
        if here not in written:
            continue
        for other, other_start, other_end in spans:
            if other != here and start < other_end and other_start < end:
                return True
    return False


def _span(value: object) -> tuple[int, int]:
    """Return the addresses from the first to behind the last byte of a tensor's elements."""
    assert isinstance(value, torch.Tensor)
    start = value.data_ptr()
    if value.numel() == 0:
        return start, start
    last = sum(step * (size - 1) for step, size in zip(value.stride(), value.shape, strict=True))
    return start, start + (int(last) + 1) * value.element_size()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Compile without the caller's saved-tensor hooks, and without Python's cycle collector.

    A compilation makes a million objects that all stay; the collector makes it a third slower.
    """
    before = gc.isenabled()
    gc.disable()
    try:
        with hidden_tensor_hooks():
            yield
    finally:
        if before:
            gc.enable()
