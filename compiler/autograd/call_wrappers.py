"""Around a compiled graph: write mutations back, take aliases anew, keep autocast and grad mode out of the graph."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch

from ..base.errors import InternalError
from .signature import CallSignature, OutputFact, OutputKind
from .view_writes import take_views

Values = Sequence[torch.Tensor]
GraphCall = Callable[[Sequence[torch.Tensor]], Values]


def finish_call(signature: CallSignature, arguments: Sequence[object], values: Values) -> tuple[object, ...]:
    """Do to the caller's tensors what the program did, and return its outputs.

    arguments: those of the call.  values: what the graph returned, fresh values first, then new contents.
    """
    tensors = [arguments[position] for position in signature.inputs]
    for place, fact in enumerate(signature.writes):
        _write_back(tensors[fact.input], values[signature.returned + place], tracked=fact.tracked)
    outputs: list[object] = []
    for fact_of_output in signature.outputs:
        outputs.append(_output(fact_of_output, tensors, values, outputs))
    return tuple(outputs)


def _write_back(target: object, value: torch.Tensor, *, tracked: bool) -> None:
    assert isinstance(target, torch.Tensor)
    with torch.set_grad_enabled(tracked):
        target.copy_(value)


def _output(
    fact: OutputFact, tensors: Sequence[object], values: Values, outputs: Sequence[object]
) -> object:
    if fact.kind is OutputKind.CONSTANT:
        return fact.constant
    if fact.kind is OutputKind.SAME:
        return outputs[fact.index]
    source = values[fact.index] if fact.kind is OutputKind.RETURNED else tensors[fact.index]
    if not isinstance(source, torch.Tensor):
        raise InternalError("an output has no tensor behind it", hint="report the program")
    return take_views(source, fact.steps)


def without_autocast() -> AbstractContextManager[object]:
    """Return a context in which ATen calls keep their dtypes: the casts of the program are already in the graph."""
    if torch.is_autocast_enabled("cpu"):
        return torch.autocast("cpu", enabled=False)
    if torch.cuda.is_available() and torch.is_autocast_enabled("cuda"):
        return torch.autocast("cuda", enabled=False)
    return nullcontext()


def run_plain(call: Callable[..., Values], tensors: Sequence[torch.Tensor]) -> Values:
    """Run a compiled graph with autograd and autocast off."""
    with torch.no_grad(), without_autocast():
        return call(*tensors)
