"""Two runs of one program compared bit by bit, in everything: equal here is equal to the judge, which is far slower.

A difference is no verdict: the judge looks at it then, with the program's own rounding noise.  What it does not look at
is found here: after a call every output is written to, and whoever changes with it shares its memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .inputs import is_grad_leaf

BITS = tuple(1 << number for number in range(7))
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True, slots=True, eq=False)
class CallOutcome:
    """What one call left behind.

    outputs: the returned values, empty when it raised.  arguments: those it was called with.  error: what it raised.
    gradients: of the leaves, in order, or the name of what the backward raised.
    """

    outputs: tuple[Any, ...]
    arguments: tuple[Any, ...]
    error: BaseException | None
    gradients: tuple[torch.Tensor | None, ...] | str = ()

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Return the tensors among outputs and arguments, outputs first."""
        return [value for value in (*self.outputs, *self.arguments) if isinstance(value, torch.Tensor)]


def run_call(program: Callable[..., Any], arguments: tuple[Any, ...], seed: int) -> CallOutcome:
    """Call a program of ours, whose result is a tuple; an exception becomes part of the outcome."""
    torch.default_generator.manual_seed(seed)
    try:
        outputs = program(*arguments)
    except Exception as error:
        return CallOutcome((), arguments, error)
    return CallOutcome(outputs, arguments, None)


def gradients_of(outcome: CallOutcome, seed: int) -> tuple[torch.Tensor | None, ...] | str:
    """Return the gradients of the leaves for random cotangents, or the class of what the backward raises."""
    leaves = [value for value in outcome.arguments if is_grad_leaf(value)]
    outputs = [value for value in outcome.outputs if isinstance(value, torch.Tensor) and value.requires_grad]
    if not leaves or not outputs:
        return ()
    generator = torch.Generator().manual_seed(seed)
    try:
        outputs = [value for value in outputs if value.grad_fn]  # raises for a view whose base was written to
        if not outputs:
            return ()
        gradients: tuple[torch.Tensor | None, ...] = ()
        rounds = 1 + seed % 2  # now and then what was saved for backward is read again
        for left in reversed(range(rounds)):
            cotangents = [torch.randn(out.shape, generator=generator).to(out.dtype) for out in outputs]
            gradients += torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True, retain_graph=left > 0)
        return gradients
    except Exception as error:
        return type(error).__name__


def first_difference(eager: CallOutcome, compiled: CallOutcome) -> str | None:
    """Return the first difference in words, None when both runs are equal in bits, form, memory and identity."""
    if (eager.error is None) != (compiled.error is None) or not isinstance(compiled.error, type(eager.error)):
        return f"raises {compiled.error!r:.100}, eager {eager.error!r:.100}"
    if len(eager.outputs) != len(compiled.outputs):
        return f"gives {len(compiled.outputs)} outputs, eager {len(eager.outputs)}"
    names = [f"output[{n}]" for n in range(len(eager.outputs))] + [f"args[{n}]" for n in range(len(eager.arguments))]
    pairs = zip(names, (*eager.outputs, *eager.arguments), (*compiled.outputs, *compiled.arguments), strict=True)
    for name, expected, actual in pairs:
        difference = _difference(expected, actual)
        if difference is not None:
            return f"{name} {difference}"
    if _sharing(eager.tensors) != _sharing(compiled.tensors):
        return "other tensors share memory than eager's"
    for number, (expected, actual) in enumerate(zip(eager.arguments, compiled.arguments, strict=True)):
        if isinstance(expected, torch.Tensor) and expected.is_leaf:
            difference = _difference(expected.grad, actual.grad)
            if difference is not None:
                return f"args[{number}].grad {difference}"
    return gradient_difference(eager.gradients, compiled.gradients)


def _difference(expected: Any, actual: Any) -> str | None:
    if type(expected) is not type(actual):
        return f"is a {type(actual).__name__}, eager's a {type(expected).__name__}"
    if not isinstance(expected, torch.Tensor):
        return None if repr(expected) == repr(actual) else f"is {actual!r}, eager's {expected!r}"
    for what in ("dtype", "shape", "requires_grad", "is_leaf"):
        if _asked(expected, what) != _asked(actual, what):
            return f"has {what} {_asked(actual, what)}, eager's {_asked(expected, what)}"
    if expected.stride() != actual.stride():
        return f"has strides {actual.stride()}, eager's {expected.stride()}"
    return None if same_bits(expected, actual) else "has other values than eager's"


def _asked(value: torch.Tensor, what: str) -> object:
    """Return an attribute, or the class of what asking for it raises: one of several views of a base written to."""
    try:
        attribute: object = getattr(value, what)
    except RuntimeError as error:
        return type(error)
    return attribute


def same_bits(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors of one form hold the same elements; NaN is NaN, zeros differ by sign."""
    if torch.equal(raw_bytes(one), raw_bytes(other)):
        return True
    one, other = one.detach().resolve_conj().resolve_neg(), other.detach().resolve_conj().resolve_neg()
    if one.is_complex():
        one, other = torch.view_as_real(one), torch.view_as_real(other)
    if not one.is_floating_point():
        return False
    same = (one == other) & (one.signbit() == other.signbit()) | (one.isnan() & other.isnan())
    return bool(same.all())


def raw_bytes(value: torch.Tensor) -> torch.Tensor:
    """Return the memory of the elements, one row for each."""
    plain = value.detach().resolve_conj().resolve_neg().reshape(-1).clone(memory_format=torch.contiguous_format)
    return plain.view(torch.uint8).reshape(plain.numel(), -1) if plain.numel() else plain.new_empty((0, 1)).byte()


def _sharing(tensors: Sequence[torch.Tensor]) -> list[tuple[int, int, int]]:
    """Return for each tensor the first one that is the same object, the first of the same memory, and its offset."""
    objects: dict[int, int] = {}
    storages: dict[int, int] = {}
    sharing = []
    for number, tensor in enumerate(tensors):
        storage = tensor.untyped_storage()
        key = storage._cdata if storage.nbytes() else -1 - number
        first = storages.setdefault(key, number)
        offset = int(tensor.storage_offset()) if first != number else 0
        sharing.append((objects.setdefault(id(tensor), number), first, offset))
    return sharing


def gradient_difference(eager: Any, compiled: Any) -> str | None:
    """Return how what `gradients_of` gave for one run differs from that of the other."""
    if isinstance(eager, str) or isinstance(compiled, str):
        return None if eager == compiled else f"the backward gives {compiled!r:.60}, eager's {eager!r:.60}"
    if len(eager) != len(compiled):
        return "other tensors have gradients than eager's"
    for number, (expected, actual) in enumerate(zip(eager, compiled, strict=True)):
        if (expected is None) != (actual is None):
            return f"gradient {number} is {'None' if actual is None else 'a tensor'}, unlike eager's"
        if expected is None or actual is None:
            continue
        if expected.shape != actual.shape or expected.dtype != actual.dtype or expected.stride() != actual.stride():
            return f"gradient {number} has another form than eager's"
        if not same_bits(expected, actual):
            return f"gradient {number} has other values than eager's"
    return None


def write_outputs(outcome: CallOutcome) -> list[torch.Tensor]:
    """Flip one bit of every element of each output, in turn each its own; return the tensors as they are then.

    Every element changes for certain, also where eager and the compiled program hold different ones.
    """
    with torch.no_grad():
        for number, value in enumerate(outcome.outputs):
            if isinstance(value, torch.Tensor):
                _flip(value.detach(), BITS[number % len(BITS)])
    return outcome.tensors


def _flip(value: torch.Tensor, bit: int) -> None:
    if value.is_complex():
        value = torch.view_as_real(value.conj() if value.is_conj() else value)
    try:
        if value.dtype is torch.bool:
            value.logical_not_()
        elif value.is_neg():  # such a view cannot be read as integers
            value.fill_(bit)
        else:
            value.view(_INTEGERS[value.itemsize]).bitwise_xor_(bit)
    except RuntimeError:
        return  # an expanded tensor: several elements are one place


def difference_after_writes(
    eager: CallOutcome, eager_before: Sequence[torch.Tensor], compiled: CallOutcome, before: Sequence[torch.Tensor]
) -> str | None:
    """Return which tensor a write to an output changed, unlike in eager; `before`: copies from before the writes."""
    pairs = zip(eager.tensors, eager_before, compiled.tensors, before, strict=True)
    for number, (expected, expected_before, actual, actual_before) in enumerate(pairs):
        written, written_here = _changed(expected, expected_before), _changed(actual, actual_before)
        if written.shape == written_here.shape and not torch.equal(written, written_here):
            outputs = len(eager.tensors) - sum(isinstance(value, torch.Tensor) for value in eager.arguments)
            name = f"output[{number}]" if number < outputs else f"args[{number - outputs}]"
            how = "changes" if bool(written_here.any()) else "stays"
            return f"{name} {how} when outputs are written to, unlike eager's"
    return None


def _changed(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Return which elements differ from a copy, in the order of the elements."""
    if now.shape != before.shape:
        return torch.ones(now.numel(), dtype=torch.bool)
    return (raw_bytes(now) != raw_bytes(before)).any(1)
