"""The contexts in which an operator is called: what becomes of its inputs, and the code around the call.

A context is a row of `CONTEXTS`, with the reason why it is there.  Simpler ones come first: a finding is reported in
the first context that shows it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class InputPlace:
    """Where an input stands.

    first: the first size of the first input, -1 where it has none.  number: of the input.  turn: number of the sample.
    """

    first: int
    number: int
    turn: int


Change = Callable[[torch.Tensor, InputPlace], torch.Tensor | None]
"""From an input, and where it stands, to what is passed in its place; None: no such input."""


@dataclass(frozen=True, slots=True)
class Context:
    """One context.

    reason: which kind of fault shows here.  change: of each input tensor, None for as it is.
    before: text around an input tensor.  after: from the names of a result and its parts to lines and the returned
    expression; None returns the result.  calls: how many times the operator is called.
    uses: which form of the operator: "function", "in_place" (the method with an underscore) or "out".
    out: for that form, what the `out=` tensor is: "right", "resized" or "wrong".
    gradients: inputs require grad where the sample does.  alike: only inputs of the first one's sizes are changed.
    """

    name: str
    reason: str
    change: Change | None = None
    before: Callable[[str, torch.Tensor], str] | None = None
    after: Callable[[Any], str] | None = None
    calls: int = 1
    uses: str = "function"
    out: str = ""
    gradients: bool = True
    alike: bool = False


def _pointwise_before(text: str, tensor: torch.Tensor) -> str:
    return f"(~~{text})" if tensor.dtype == torch.bool else f"(-(-{text}))"


def _reduced_before(text: str, tensor: torch.Tensor) -> str:
    """Mask nothing, by a comparison with the sum of all elements: a reduction, and pointwise code that keeps values."""
    del tensor
    return f"{text}.masked_fill({text}.sum() == 12345, 1)"


def _each(result: Any, one: Callable[[str, torch.Tensor], str]) -> str:
    """Return the text of the result `r` with an expression for each tensor in it."""
    if isinstance(result, torch.Tensor):
        return one("r", result)
    if isinstance(result, (tuple, list)):
        parts = [one(f"r[{n}]", part) if isinstance(part, torch.Tensor) else f"r[{n}]" for n, part in enumerate(result)]
        return f"({''.join(f'{part}, ' for part in parts)})"
    return "r"


def _pointwise_after(result: Any) -> str:
    def one(text: str, tensor: torch.Tensor) -> str:
        if tensor.dtype == torch.bool:
            return f"~{text}"
        whole = not tensor.dtype.is_floating_point and not tensor.dtype.is_complex
        return f"({text} + 1).double()" if whole else f"{text} + 1"  # a small integer wraps before it is anything else

    return _each(result, one)


def _reduced_after(result: Any) -> str:
    def reduced(text: str, tensor: torch.Tensor) -> str:
        if tensor.dim() == 0:
            return f"{text}.sum()"
        return f"{text}.sum(), {text}.sum(-1)"

    return _each(result, reduced)


def _kept(like: torch.Tensor, tensor: torch.Tensor) -> torch.Tensor:
    """Return a leaf with the strides of `tensor` as it lies in its own memory."""
    return tensor.detach().requires_grad_(like.requires_grad)


def _no_dimensions(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    del place
    if tensor.dim() == 0:
        return tensor
    return _kept(tensor, tensor.detach().reshape(-1)[0].clone()) if tensor.numel() else None


def _narrowed(size: int) -> Change:
    def narrow(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
        if tensor.dim() == 0 or tensor.shape[0] != place.first or place.first <= size:
            return tensor
        return _kept(tensor, tensor.detach()[:size].clone())

    return narrow


def _strided(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    del place
    if tensor.dim() == 0 or not tensor.numel():
        return tensor
    double = torch.stack([tensor.detach(), tensor.detach()], -1).flatten(-2)
    return _kept(tensor, double[..., ::2])


def _transposed(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    del place
    if tensor.dim() < 2 or not tensor.numel():
        return tensor
    return _kept(tensor, tensor.detach().transpose(0, -1).contiguous().transpose(0, -1))


_LEAST = 1 - 2**63  # the lowest of all, over -1, ends eager's process
_SPECIAL_WHOLE = (-1, 2**63 - 1, _LEAST, 0, 1, 64, 63, 31, 8, 255)


def _special(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    """Return an input that begins with numbers at which rules have corners: of every sign, none, and the ends.

    Inputs go through the numbers at different paces, and samples begin at others, so that each meets each.
    """
    if tensor.dtype == torch.bool or not tensor.numel():
        return tensor
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        ends = torch.finfo(tensor.dtype)
        numbers = [math.nan, -0.0, math.inf, 1000.0, ends.tiny, 0.0, -math.inf, -ends.tiny, 20.0, -2.5, ends.max**0.8]
        values = torch.tensor(numbers, dtype=tensor.dtype)
    else:
        values = torch.tensor(_SPECIAL_WHOLE).to(tensor.dtype)
    special = tensor.detach().clone()
    count = len(values)
    places = torch.arange(min(tensor.numel(), count * count if place.number else 3 * count))
    pace = place.number * (places // count + 1 + place.turn)
    special.reshape(-1)[places] = values[(places + 5 * place.turn + pace) % count]
    return _kept(tensor, special) if special.is_contiguous() else tensor


_TURNING = (1.0, -1.0, 0.0, 3.0, 6.0, -3.0, 0.5, -0.5, 2.0, -6.0, 20.0)


def _turning(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    """Return an input of the few numbers at which one rule ends and the next begins."""
    if not tensor.dtype.is_floating_point or not tensor.numel():
        return tensor
    count = len(_TURNING)
    places = torch.arange(tensor.numel())
    pace = place.number * (places // count + 1 + place.turn)
    values = torch.tensor(_TURNING, dtype=tensor.dtype)[(places + 5 * place.turn + pace) % count]
    return _kept(tensor, values.reshape(tensor.shape)) if tensor.is_contiguous() else tensor


def _other_dtype(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    """Return the second input in another floating dtype, narrower and wider ones in turn."""
    if place.number != 1 or not tensor.dtype.is_floating_point:
        return tensor
    others = [dtype for dtype in (torch.float64, torch.float16, torch.float32) if dtype != tensor.dtype]
    return _kept(tensor, tensor.detach().to(others[place.turn % 2]))


def _converted_after(result: Any) -> str:
    """Convert each part to what it may already be, or be taken for."""

    def converted(text: str, tensor: torch.Tensor) -> str:
        wider = f"{text}.double(), {text}.float()" if tensor.dtype.is_floating_point else text
        return f"{text}, {wider}"

    return _each(result, converted)


def _zeros_before(text: str, tensor: torch.Tensor) -> str:
    return f"torch.zeros_like({text})" if tensor.dtype.is_floating_point else text


def _negative_index(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    """Return indices that count from the end, for tensors of whole numbers."""
    del place
    return -1 - tensor if tensor.dtype in (torch.int64, torch.int32) else tensor


def _far_index(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    """Return indices that are out of every range, for tensors of whole numbers."""
    del place
    return torch.full_like(tensor, 1_000_003) if tensor.dtype in (torch.int64, torch.int32) else tensor


def _as_it_is(tensor: torch.Tensor, place: InputPlace) -> torch.Tensor | None:
    del place
    return tensor.detach().clone()


ERROR_INPUT = "error_input"
UNSUPPORTED = "unsupported_dtype"

CONTEXTS: tuple[Context, ...] = (
    Context("alone", "the operator's own rule"),
    Context("one_dimension_of_size_1", "broadcasting, and loops that vanish", change=_narrowed(1)),
    Context("no_dimensions", "reductions over nothing, indexes without dimensions", change=_no_dimensions),
    Context("size_0", "empty loops, divisions by a size", change=_narrowed(0)),
    Context("strided", "inputs with gaps between elements", change=_strided),
    Context("transposed", "inputs in another order, strides of results", change=_transposed),
    Context("twice", "equal calls that share a result they must not share", calls=2),
    Context("twice_read", "equal draws, which may not become one", after=_pointwise_after, calls=2),
    Context("unused", "effects and errors of a call whose result nobody reads", after=lambda result: "None"),
    Context("pointwise", "fusion with neighbours", before=_pointwise_before, after=_pointwise_after),
    Context("reduced", "fusion with reductions on both sides", before=_reduced_before, after=_reduced_after),
    Context("in_place", "the method that changes its first input", uses="in_place", gradients=False),
    Context("in_place_between", "a changed intermediate", before=_pointwise_before, uses="in_place"),
    Context("out", "`out=` that fits", uses="out", out="right", gradients=False),
    Context("out_resized", "`out=` that has to grow", uses="out", out="resized", gradients=False),
    Context("out_wrong", "`out=` of another dtype", uses="out", out="wrong", gradients=False),
    Context(  # weights and statistics keep theirs: an infinity there only shows in which order a kernel multiplies
        "special_values",
        "corners of rules: nan, infinities, signed zeros, ends of a dtype",
        change=_special,
        alike=True,
    ),
    Context("turning_points", "the ends of rules of activations, and ties", change=_turning, alike=True),
    Context(
        "two_dtypes",
        "results whose dtype torch's rules promote where the kernel does not",
        change=_other_dtype,
        after=_converted_after,
    ),
    Context("negative_index", "indices from the end", change=_negative_index, gradients=False),
    Context(UNSUPPORTED, "dtypes that eager has no kernel for", change=_as_it_is, gradients=False),
    Context("far_index", "errors that only data makes", change=_far_index, gradients=False),
    Context(
        "far_index_unused",
        "errors of a call whose result nobody reads",
        change=_far_index,
        after=lambda result: "None",
        gradients=False,
    ),
    Context(
        "far_index_of_zeros",
        "errors of a call that needs no elements",
        change=_far_index,
        before=_zeros_before,
        gradients=False,
    ),
    Context(ERROR_INPUT, "inputs that eager refuses, from torch's own tests", gradients=False),
)

BY_NAME = {context.name: context for context in CONTEXTS}
RANK = {context.name: number for number, context in enumerate(CONTEXTS)}


def changed_inputs(context: Context, tensors: Sequence[torch.Tensor], turn: int) -> list[torch.Tensor] | None:
    """Return the inputs of a sample, the turn-th, in this context; None if there is nothing to change here."""
    if context.change is None:
        return list(tensors)
    first = tensors[0].shape[0] if tensors and tensors[0].dim() else -1
    changed = [
        context.change(tensor, InputPlace(first, number, turn))
        if not context.alike or tensor.shape == tensors[0].shape
        else tensor
        for number, tensor in enumerate(tensors)
    ]
    if any(tensor is None for tensor in changed):
        return None
    real = [tensor for tensor in changed if tensor is not None]
    same = all(_alike(new, old) for new, old in zip(real, tensors, strict=True))
    return None if same and context.name != UNSUPPORTED else real


def _alike(new: torch.Tensor, old: torch.Tensor) -> bool:
    """Return whether an input is what it was: its layout, and where a context gives other numbers those too."""
    return new is old or (new.shape == old.shape and new.stride() == old.stride() and torch.equal(new, old))
