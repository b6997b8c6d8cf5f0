"""Guards on tensors: their metadata, and which of them share storage."""

from collections.abc import Sequence
from typing import Any

import torch

from ...values.guard import Guard, GuardKind, TensorFacts, storage_pattern
from ...values.source import Inject, shortened
from .rule import CheckSlots, CheckTexts, GuardRule, other_words, place_words
from .steps import GuardStep, StepOp
from .tensor_layout import metadata


def _is_like(guard: Guard, value: Any, _: tuple[Any, ...]) -> bool:
    facts = guard.expected
    return (
        type(value) is facts.kind
        and (value.dtype, value.device, value.requires_grad) == (facts.dtype, facts.device, facts.requires_grad)
        and _fit(value.shape, facts.shape)
        and (value.layout is not torch.strided if facts.stride is None else _fit(value.stride(), facts.stride))
        and (value.is_conj(), value.is_neg(), value.is_inference()) == facts.bits
        and (value.is_leaf == facts.leaf or not facts.requires_grad)
    )


def _fit(sizes: Sequence[int], expected: Sequence[int | None]) -> bool:
    pairs = zip(sizes, expected, strict=False)
    return len(sizes) == len(expected) and all(known is None or known == size for size, known in pairs)


def _tensor_text(guard: Guard, texts: CheckTexts) -> str:
    facts, value, inject = guard.expected, texts.value, texts.inject
    parts = [
        f"type({value}) is {inject(facts.kind)}",
        f"{value}.dtype is {inject(facts.dtype)}",
        f"{value}.device == {inject(facts.device)}",
        f"{value}.requires_grad is {facts.requires_grad}",
    ]
    parts.append(_sizes_text(f"{value}.shape", facts.shape, inject))
    if facts.stride is not None:
        parts.append(_sizes_text(f"{value}.stride()", facts.stride, inject))
    else:
        parts.append(f"{value}.layout is not {inject(torch.strided)}")
    conjugate, negative, inference = facts.bits
    if facts.dtype.is_complex:
        parts.append(f"{value}.is_conj() is {conjugate}")
    if negative or facts.dtype.is_floating_point or facts.dtype.is_complex:
        parts.append(f"{value}.is_neg() is {negative}")
    parts.append(f"{value}.is_inference() is {inference}")
    if facts.requires_grad:
        parts.append(f"{value}.is_leaf is {facts.leaf}")
    return " and ".join(parts)


def _sizes_text(value: str, sizes: tuple[int | None, ...], inject: Inject) -> str:
    known: list[int] = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        return f"{value} == {inject(tuple(known))}"
    checks = [f"len({value}) == {len(sizes)}"]
    checks += [f"{value}[{position}] == {size}" for position, size in enumerate(sizes) if size is not None]
    return " and ".join(checks)


def _tensor_steps(guard: Guard, slots: CheckSlots) -> list[GuardStep] | None:
    numbers = metadata(guard.expected)
    if numbers is None:
        return None
    return [GuardStep(StepOp.TENSOR, slots.value, 0, slots.python_check, guard.expected.kind, numbers)]


def _actual_tensor(guard: Guard, value: Any, _: tuple[Any, ...]) -> str:
    expected = guard.expected
    if not isinstance(value, torch.Tensor):
        return f"{type(value).__qualname__} {shortened(value)}" if value is not None else "None"
    strides = tuple(value.stride()) if value.layout is torch.strided else None
    bits = (value.is_conj(), value.is_neg(), value.is_inference())
    actual = TensorFacts(
        type(value), value.dtype, value.device, tuple(value.shape), strides, value.requires_grad, bits, value.is_leaf
    )
    differing = [words for words, field in _UNSHOWN_FIELDS if getattr(actual, field) != getattr(expected, field)]
    if actual.stride != expected.stride and expected.stride is not None and None not in expected.stride:
        differing.append(f"strides {actual.stride} instead of {expected.stride}")
    alike = str(actual) == str(expected)
    return f"{actual} with {' and '.join(differing)}" if alike and differing else str(actual)


_UNSHOWN_FIELDS = (
    ("other conjugate, negative or inference bits", "bits"),
    ("another place in the autograd graph", "leaf"),
)


def _sharing_words(pattern: tuple[int, ...], guard: Guard) -> str:
    """Return which of the tensors of a guard use the same memory."""
    names = other_words(guard)
    numbered = list(zip(names, pattern, strict=True))
    groups = [[name for name, first in numbered if first == number] for number in range(len(names))]
    shared = [" and ".join(group) for group in groups if len(group) > 1]
    return f"{', '.join(shared)} share memory" if shared else f"{', '.join(names)} share no memory"


TENSOR_RULES = (
    GuardRule(
        GuardKind.TENSOR,
        meaning=_is_like,
        check=_tensor_text,
        words=lambda guard: f"{place_words(guard)} is a tensor like {guard.expected}",
        expected=lambda guard: str(guard.expected),
        actual=_actual_tensor,
        steps=_tensor_steps,
    ),
    GuardRule(
        GuardKind.STORAGES,
        meaning=lambda guard, _, others: storage_pattern(*others) == guard.expected,
        check=lambda guard, texts: (
            f"{texts.inject(storage_pattern)}({', '.join(texts.others)}) == {texts.inject(guard.expected)}"
        ),
        words=lambda guard: _sharing_words(guard.expected, guard),
        expected=lambda guard: _sharing_words(guard.expected, guard),
        actual=lambda guard, _, others: _sharing_words(storage_pattern(*others), guard),
    ),
)
