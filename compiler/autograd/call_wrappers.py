"""Around a compiled graph: write mutations back, rebuild aliases, keep autocast and grad mode out of the graph."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch.autograd.graph import saved_tensors_hooks

from ..base.errors import InternalError
from ..base.torch_facts import any_autocast, set_grad_mode, set_version, tensor_hooks
from .call_signature import CallSignature, OutputFact, OutputKind, WriteFact
from .dynamic_arguments import at_sizes
from .view_writes import take_views

Given = TypeVar("Given")
Result = TypeVar("Result")
Values = Sequence[torch.Tensor]
Finish = Callable[[Sequence[object], Values, tuple[float, ...]], tuple[object, ...]]


def finisher(signature: CallSignature, names: Sequence[str]) -> Finish:
    """Return how a call ends: nothing at all where every output is a fresh value of the graph.

    names: of the dynamic sizes, which the result takes last, in order.
    """
    plain = [(fact.kind, fact.index, fact.steps) for fact in signature.outputs]
    if not signature.writes and plain == [(OutputKind.RETURNED, index, ()) for index in range(len(plain))]:
        return lambda arguments, values, sizes: tuple(values)
    parts = [(fact.constant, [(step.args, dict(step.kwargs)) for step in fact.steps]) for fact in signature.outputs]
    bound = at_sizes(parts, names)
    if bound is None:
        return lambda arguments, values, sizes: finish_call(signature, arguments, values)

    def finish(arguments: Sequence[object], values: Values, sizes: tuple[float, ...]) -> tuple[object, ...]:
        outputs = tuple(_with_numbers(*pair) for pair in zip(signature.outputs, bound(sizes), strict=True))
        return finish_call(replace(signature, outputs=outputs), arguments, values)

    return finish


Numbers = tuple[object, list[tuple[tuple[object, ...], dict[str, object]]]]  # of an output: its constant, its steps


def _with_numbers(fact: OutputFact, numbers: Numbers) -> OutputFact:
    """Return what is said of an output with numbers in place of dynamic sizes."""
    constant, listed = numbers
    pairs = zip(fact.steps, listed, strict=True)
    steps = tuple(replace(step, args=tuple(args), kwargs=tuple(kwargs.items())) for step, (args, kwargs) in pairs)
    return replace(fact, constant=constant, steps=steps)


def finish_call(signature: CallSignature, arguments: Sequence[object], values: Values) -> tuple[object, ...]:
    """Do to the caller's tensors what the program did, and return its outputs.

    arguments: those of the call.  values: what the graph returned, fresh values first, then new contents.
    """
    tensors = [arguments[position] for position in signature.inputs]
    for place, fact in enumerate(signature.writes):
        _write_back(tensors[fact.input], values[signature.returned + place], fact)
    outputs: list[object] = []
    shared: dict[int, torch.Tensor] = {}
    for fact_of_output in signature.outputs:
        outputs.append(_output(fact_of_output, tensors, values, outputs, shared))
    return tuple(outputs)


def _write_back(target: object, value: torch.Tensor, fact: WriteFact) -> None:
    assert isinstance(target, torch.Tensor)
    with torch.set_grad_enabled(fact.tracked):
        (target if fact.versions else target.data).copy_(value)
    if fact.versions > 1 and not target.is_inference():
        set_version(target, target._version + fact.versions - 1)


def _output(
    fact: OutputFact,
    tensors: Sequence[object],
    values: Values,
    outputs: Sequence[object],
    shared: dict[int, torch.Tensor],
) -> object:
    if fact.kind is OutputKind.CONSTANT:
        return fact.constant
    if fact.kind is OutputKind.SAME:
        return outputs[fact.index]
    source = values[fact.index] if fact.kind is OutputKind.RETURNED else tensors[fact.index]
    if not isinstance(source, torch.Tensor):
        raise InternalError("an output has no tensor behind it", hint="report the program")
    if fact.shared is None:
        return take_views(source, fact.steps)
    count, number = fact.shared
    if number not in shared:
        shared[number] = take_views(source, fact.steps[:count])
    return take_views(shared[number], fact.steps[count:])


def run_plain(call: Callable[..., Values], tensors: Sequence[object]) -> Values:
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


def without_base(value: torch.Tensor) -> torch.Tensor:
    """Return a result that is not a view in autograd's eyes: graphs may make by a view what is fresh in the program."""
    return value.detach() if value._is_view() else value


def run_before_hooks_fail(run: Callable[[], Given], finish: Callable[[Given], Result]) -> Result:
    """Return `finish(run())`; where a saved-tensor hook has raised in `run`, its error is raised after `finish`.

    Eager writes to an input where the program says so, and calls the hooks while it goes on; a graph writes at its end.
    """
    if not tensor_hooks():
        return finish(run())
    errors: list[Exception] = []
    pack, unpack = tensor_hooks()

    def keep(tensor: Any) -> Any:
        if not errors:  # eager calls none after the first that fails
            try:
                return pack(tensor)
            except Exception as error:
                errors.append(error)
        return tensor

    with saved_tensors_hooks(keep, unpack):
        values = run()
    result = finish(values)
    if errors:
        raise errors.pop()
    return result
