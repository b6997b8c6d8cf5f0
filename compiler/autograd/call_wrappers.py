"""Around a compiled graph: write mutations back, take aliases anew, keep autocast and grad mode out of the graph."""

from collections.abc import Callable, Sequence

import torch

from ..base.errors import InternalError
from ..base.torch_facts import any_autocast, set_grad_mode
from .signature import CallSignature, OutputFact, OutputKind
from .view_writes import take_views

Values = Sequence[torch.Tensor]
GraphCall = Callable[[Sequence[torch.Tensor]], Values]


def finisher(signature: CallSignature) -> Callable[[Sequence[object], Values], tuple[object, ...]]:
    """Return how a call ends: nothing at all where every output is a fresh value of the graph."""
    plain = [(fact.kind, fact.index, fact.steps) for fact in signature.outputs]
    if not signature.writes and plain == [(OutputKind.RETURNED, index, ()) for index in range(len(plain))]:
        return lambda arguments, values: tuple(values)
    return lambda arguments, values: finish_call(signature, arguments, values)


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


def run_plain(call: Callable[..., Values], tensors: Sequence[torch.Tensor]) -> Values:
    """Run a compiled graph with autograd and autocast off: the casts of the program are already in the graph."""
    if any_autocast():
        with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return call(*tensors)
    if not torch.is_grad_enabled():
        return call(*tensors)
    set_grad_mode(False)
    try:
        return call(*tensors)
    finally:
        set_grad_mode(True)
