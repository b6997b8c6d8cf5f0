"""`assert_same`: two results of a program are the same up to rounding, or the message says where they are not."""

from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch import Tensor

from plumbline.compiler.base.errors import UserError

from ..numeric.noise_units import ELEMENT
from ..numeric.value_decision import FinalDecision
from ..user_overrides import without_overrides
from ..verdict import Finding, Verdict, VerdictKind
from .result_leaves import LeafPair, Misfit, paired_leaves
from .tensor_distance import AllowedDistance, judge_tensors

# Sparse tensors with other positions are compared as dense ones up to this many elements.
LARGEST_DENSE = 1 << 24

_MOST_SHOWN = 8


class ResultsDiffer(AssertionError):
    """Raised by `assert_same`; `verdict` has every finding."""

    def __init__(self, verdict: Verdict, text: str) -> None:
        super().__init__(text)
        self.verdict = verdict


def assert_same(
    actual: Any,
    expected: Any,
    reference: Any = None,
    *,
    units: float = 16.0,
    multiple: float = ELEMENT,
    name: str = "result",
) -> Verdict:
    """Raise ResultsDiffer unless `actual` is `expected` up to rounding, and return the verdict.

    actual, expected: tensors, NumPy arrays, numbers, or any nesting of mappings, sequences and dataclasses of them.
    reference: the same result in a wider dtype, or a function without arguments that returns it.  With it, an element
    of `actual` may be `multiple` times as far from it as `expected` is (rms over the tensor, and never less than one
    rounding), and its rms error twice as large.  Without it, an element may be `units` units in the last place from
    `expected`, counted at the element or at the tensor's rms value, whichever is larger.
    name: what the message calls the result.
    Shape, dtype, device, layout, integers, booleans and anything else that does not round have to be equal.
    Where the reference is no more precise than the result (a number of Python is not), it counts as none; UserError
    if that is so everywhere, or if its shape is another.

    >>> import torch
    >>> from plumbline.oracle import assert_same
    >>> x = torch.linspace(0, 1, 100)
    >>> assert_same((x * 3).sum(), 3 * x.sum()).kind.value
    'NOISE'
    >>> assert_same({"y": x.sin()}, {"y": x.cos()})
    Traceback (most recent call last):
    ...
    plumbline.oracle.assertion.same_results.ResultsDiffer: result['y']: WRONG: 1 off at [0] ...
    """
    if callable(reference) and not isinstance(reference, Tensor | numpy.ndarray):
        reference = reference()
    allowed = AllowedDistance(units, multiple)
    with without_overrides(), torch.no_grad():
        findings = tuple(_findings(actual, expected, reference, allowed, name))
    _check_reference(expected, reference, name)
    ranked = sorted(findings, key=lambda finding: -finding.kind.weight)
    told = tuple(finding for finding in ranked if finding.kind is not VerdictKind.EQUAL)
    kind = told[0].kind if told else VerdictKind.EQUAL
    sentence = f"{told[0].where} {told[0].sentence}" if told else "bitwise equal"
    verdict = Verdict(kind, sentence, told)
    if verdict.failed:
        raise ResultsDiffer(verdict, _message(verdict, len(findings), with_reference=reference is not None))
    return verdict


def _findings(actual: Any, expected: Any, reference: Any, allowed: AllowedDistance, name: str) -> Iterator[Finding]:
    for pair in paired_leaves(actual, expected, reference):
        where = name + pair.path
        if isinstance(pair, Misfit):
            yield Finding(VerdictKind.WRONG, "python", where, pair.sentence)
            continue
        form = _form_difference(pair)
        if form is not None:
            yield Finding(VerdictKind.WRONG, "metadata", where, form)
            continue
        decision = _judge_leaf(pair, where, allowed)
        yield Finding(decision.kind, "values", where, decision.sentence, decision.statistics)


def _judge_leaf(pair: LeafPair, where: str, allowed: AllowedDistance) -> FinalDecision:
    actual, expected = (_as_tensor(value) for value in (pair.actual, pair.expected))
    if actual is None or expected is None:
        return _judge_objects(pair.actual, pair.expected)
    reference = _wider(_as_tensor(pair.reference), expected, where)
    if expected.device.type == "meta":
        return FinalDecision(VerdictKind.EQUAL, None, "no numbers to compare")
    parts = _plain_parts(actual, expected, reference)
    if isinstance(parts, str):
        return FinalDecision(VerdictKind.WRONG, None, parts)
    decisions = [judge_tensors(*part, allowed) for part in parts]
    return max(decisions, key=lambda decision: decision.kind.weight)


def _judge_objects(actual: Any, expected: Any) -> FinalDecision:
    try:
        same = actual is expected or bool(actual == expected)
    except Exception as error:  # whatever an `__eq__` of the user's raises
        words = f"cannot be compared: {type(error).__name__}: {error}"
        return FinalDecision(VerdictKind.WRONG, None, words)
    if same:
        return FinalDecision(VerdictKind.EQUAL, None, "equal")
    return FinalDecision(VerdictKind.WRONG, None, f"is {actual!r:.80}, expected is {expected!r:.80}")


def _form_difference(pair: LeafPair) -> str | None:
    """Return in what the forms of two leaves differ, None when their numbers can be compared."""
    actual, expected = pair.actual, pair.expected
    if isinstance(expected, Tensor) != isinstance(actual, Tensor):
        return f"is a {type(actual).__name__}, expected is a {type(expected).__name__}"
    if isinstance(expected, Tensor):
        for what in ("dtype", "device", "layout", "is_nested", "is_quantized"):
            has, wanted = getattr(actual, what), getattr(expected, what)
            if has != wanted:
                return f"{what} is {has}, expected has {wanted}"
        if expected.is_nested:
            return None
    elif not isinstance(expected, numpy.ndarray) or not isinstance(actual, numpy.ndarray):
        same = type(actual) is type(expected)
        return None if same else f"is a {type(actual).__name__}, expected is a {type(expected).__name__}"
    elif actual.dtype != expected.dtype:
        return f"dtype is {actual.dtype}, expected has {expected.dtype}"
    if actual.shape != expected.shape:
        return f"shape is {list(actual.shape)}, expected has {list(expected.shape)}"
    return None


def _as_tensor(value: Any) -> Tensor | None:
    """Return numbers as a tensor, None for anything else."""
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, numpy.ndarray | numpy.generic):
        try:
            return torch.from_numpy(numpy.array(value))
        except TypeError:  # text, objects, and numbers that torch does not have
            return None
    if isinstance(value, float | complex) and not isinstance(value, bool):
        return torch.tensor(value, dtype=torch.complex128 if isinstance(value, complex) else torch.float64)
    return None


def _check_reference(expected: Any, reference: Any, name: str) -> None:
    """Raise UserError for a reference that could judge nothing."""
    if reference is None:
        return
    pairs = [pair for pair in paired_leaves(expected, expected, reference) if isinstance(pair, LeafPair)]
    tensors = [(_as_tensor(pair.expected), _as_tensor(pair.reference), name + pair.path) for pair in pairs]
    floats = [(e, r, where) for e, r, where in tensors if e is not None and (e.is_floating_point() or e.is_complex())]
    if floats and all(_wider(r, e, where) is None for e, r, where in floats):
        raise UserError(
            "the reference is nowhere more precise than the result",
            where=name,
            hint="compute it by the same program on inputs in float64, or leave it away",
        )


def _wider(reference: Tensor | None, expected: Tensor, where: str) -> Tensor | None:
    """Return the reference of one place if it is more precise than the result, None where there is none."""
    if reference is None or not (expected.is_floating_point() or expected.is_complex()):
        return None
    if reference.shape != expected.shape:
        raise UserError(
            f"the reference has shape {list(reference.shape)}, the result {list(expected.shape)}",
            where=where,
            hint="compute the reference by the same program on wider inputs",
        )
    if not (reference.is_floating_point() or reference.is_complex()):
        return None
    if torch.finfo(reference.dtype).eps >= torch.finfo(expected.dtype).eps:
        return None
    return reference


def _plain_parts(
    actual: Tensor, expected: Tensor, reference: Tensor | None
) -> list[tuple[Tensor, Tensor, Tensor | None]] | str:
    """Return tensors as pieces of plain memory, or in words why they differ."""
    if expected.is_nested:
        rows = [tensor.unbind() for tensor in (actual, expected)]
        if [row.shape for row in rows[0]] != [row.shape for row in rows[1]]:
            return "has rows of other sizes than expected"
        known = reference.unbind() if reference is not None and reference.is_nested else [None] * len(rows[1])
        return list(zip(*rows, known, strict=True))
    if expected.is_quantized:
        if not torch.equal(actual.int_repr(), expected.int_repr()):
            return "stores other quantised integers than expected"
        return [(actual.dequantize(), expected.dequantize(), None)]
    if expected.layout == torch.strided:
        return [(actual, expected, reference)]
    if expected.layout == torch.sparse_coo:
        actual, expected = actual.coalesce(), expected.coalesce()
        if torch.equal(actual.indices(), expected.indices()) and reference is None:
            return [(actual.values(), expected.values(), None)]
    if expected.numel() > LARGEST_DENSE:
        return "is sparse with elements at other places than expected"
    dense = reference if reference is None or reference.layout == torch.strided else reference.to_dense()
    return [(actual.to_dense(), expected.to_dense(), dense)]


def _message(verdict: Verdict, places: int, *, with_reference: bool) -> str:
    """Return what differs, place by place, and what to do next."""
    wrong = [finding for finding in verdict.findings if finding.kind.fails]
    lines = [f"{finding.where}: {finding.kind.value}: {finding.sentence}" for finding in wrong[:_MOST_SHOWN]]
    if len(wrong) > _MOST_SHOWN:
        lines.append(f"... and {len(wrong) - _MOST_SHOWN} places more")
    if places > 1:
        lines.append(f"{len(wrong)} of {places} places differ")
    rounding = any(finding.numbers is not None for finding in wrong)
    if rounding and not with_reference:
        lines.append(
            "next: whether a program rounds that much is seen from the same result in float64: pass it as reference="
        )
    elif rounding:
        lines.append("next: the reference is nearer to expected; compare intermediate results by the same function")
    return "\n".join(lines)
