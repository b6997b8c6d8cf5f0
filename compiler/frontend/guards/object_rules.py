"""Guards on what an object is: its type, its identity, its value, its attributes, its code."""

import math
from types import CodeType
from typing import Any

from ...values.guard import Guard, GuardKind
from ...values.source import shortened
from .rule import CheckSlots, CheckTexts, GuardRule, compare_operand, other_words, place_words, sentence
from .steps import GuardStep, StepOp

_TOLD_BY_TEXT = (complex, range, slice)
"""Types of which equal values differ: in the sign of a zero, in a stop that no step reaches, 1 for True."""


def _is_equal(guard: Guard, value: Any, _: tuple[Any, ...]) -> bool:
    expected = guard.expected
    if type(value) is not type(expected):
        return False
    if type(expected) is float:
        both_nan = math.isnan(value) and math.isnan(expected)
        return both_nan or (value == expected and math.copysign(1.0, value) == math.copysign(1.0, expected))
    if type(expected) in _TOLD_BY_TEXT:
        return repr(value) == repr(expected)
    return bool(value == expected)


def _equals_text(guard: Guard, texts: CheckTexts) -> str:
    expected, value, inject = guard.expected, texts.value, texts.inject
    same_type = f"type({value}) is {inject(type(expected))}"
    if type(expected) is float:
        if math.isnan(expected):
            return f"{same_type} and {value} != {value}"
        if expected == 0:
            sign = f"{inject(math.copysign)}(1.0, {value}) == {math.copysign(1.0, expected)}"
            return f"{same_type} and {value} == 0.0 and {sign}"
        return f"{same_type} and {value} == {inject(expected)}"
    if type(expected) in (int, str) and len(repr(expected)) < 200:
        return f"{same_type} and {value} == {expected!r}"
    if type(expected) in _TOLD_BY_TEXT:
        return f"{same_type} and {inject(repr)}({value}) == {repr(expected)!r}"
    return f"{same_type} and {value} == {inject(expected)}"


def _equals_steps(guard: Guard, slots: CheckSlots) -> list[GuardStep] | None:
    if type(guard.expected) in _TOLD_BY_TEXT:
        return None
    return [GuardStep(StepOp.EQUALS, slots.value, operand=guard.expected)]


def _code_words(code: object) -> str:
    """Return where the code of a function is."""
    name, file, line = (getattr(code, f"co_{part}", "") for part in ("qualname", "filename", "firstlineno"))
    return f"{name} ({file}:{line})"


def _actual_code(_: Guard, value: Any, __: tuple[Any, ...]) -> str:
    code = getattr(value, "__code__", None)
    return _code_words(code) if isinstance(code, CodeType) else shortened(value)


def _distinct_text(_: Guard, texts: CheckTexts) -> str:
    others, inject = texts.others, texts.inject
    if len(others) == 2:
        return f"{others[0]} is not {others[1]}"
    identities = ", ".join(f"{inject(id)}({other})" for other in others)
    return f"{inject(len)}({{{identities}}}) == {len(others)}"


def _repeated_object(guard: Guard, _: Any, others: tuple[Any, ...]) -> str:
    first: dict[int, str] = {}
    for place, other in zip(other_words(guard), others, strict=True):
        if id(other) in first:
            return f"{first[id(other)]} and {place} are one object"
        first[id(other)] = place
    return "distinct objects"


OBJECT_RULES = (
    GuardRule(
        GuardKind.TYPE,
        meaning=lambda guard, value, _: type(value) is guard.expected,
        check=lambda guard, texts: f"type({texts.value}) is {texts.inject(guard.expected)}",
        words=lambda guard: f"{place_words(guard)} has type {guard.expected.__qualname__}",
        expected=lambda guard: getattr(guard.expected, "__qualname__", str(guard.expected)),
        actual=lambda _, value, __: type(value).__qualname__,
        steps=compare_operand(StepOp.TYPE),
    ),
    GuardRule(
        GuardKind.IDENTITY,
        meaning=lambda guard, value, _: value is guard.expected,
        check=lambda guard, texts: f"{texts.value} is {texts.inject(guard.expected)}",
        words=sentence("is"),
        steps=compare_operand(StepOp.IDENTITY),
    ),
    GuardRule(
        GuardKind.EQUALS,
        meaning=_is_equal,
        check=_equals_text,
        words=sentence("equals"),
        steps=_equals_steps,
    ),
    GuardRule(
        GuardKind.TRUTH,
        meaning=lambda guard, value, _: bool(value) is guard.expected,
        check=lambda guard, texts: f"bool({texts.value}) is {guard.expected}",
        words=sentence("has truth value"),
        actual=lambda _, value, __: str(bool(value)),
        steps=lambda guard, slots: [GuardStep(StepOp.TRUTH, slots.value, bool(guard.expected))],
    ),
    GuardRule(
        GuardKind.HAS_ATTRIBUTE,
        meaning=lambda guard, value, _: hasattr(value, guard.expected),
        check=lambda guard, texts: f"{texts.inject(hasattr)}({texts.value}, {guard.expected!r})",
        words=sentence("has attribute"),
        expected=lambda _: "present",
        actual=lambda _, __, ___: "absent",
        steps=lambda guard, slots: [GuardStep(StepOp.HAS_ATTRIBUTE, slots.value, True, guard.expected)],
    ),
    GuardRule(
        GuardKind.LACKS_ATTRIBUTE,
        meaning=lambda guard, value, _: not hasattr(value, guard.expected),
        check=lambda guard, texts: f"not {texts.inject(hasattr)}({texts.value}, {guard.expected!r})",
        words=sentence("lacks attribute"),
        expected=lambda _: "absent",
        actual=lambda _, __, ___: "present",
        steps=lambda guard, slots: [GuardStep(StepOp.HAS_ATTRIBUTE, slots.value, False, guard.expected)],
    ),
    GuardRule(
        GuardKind.CODE,
        meaning=lambda guard, value, _: value.__code__ == guard.expected,
        check=lambda guard, texts: f"{texts.value}.__code__ == {texts.inject(guard.expected)}",
        words=lambda guard: f"{place_words(guard)} has the code of {_code_words(guard.expected)}",
        expected=lambda guard: _code_words(guard.expected),
        actual=_actual_code,
        steps=compare_operand(StepOp.CODE),
    ),
    GuardRule(
        GuardKind.SAME_AS,
        meaning=lambda _, value, others: value is others[0],
        check=lambda _, texts: f"{texts.value} is {texts.others[0]}",
        words=lambda guard: f"{place_words(guard)} is the same object as {other_words(guard)[0]}",
        expected=lambda _: "the same object",
        actual=lambda _, __, ___: "another object",
        steps=lambda _, slots: [GuardStep(StepOp.SAME_AS, slots.value, slots.others[0])],
    ),
    GuardRule(
        GuardKind.DISTINCT,
        meaning=lambda _, __, others: len({id(other) for other in others}) == len(others),
        check=_distinct_text,
        words=lambda guard: f"{', '.join(other_words(guard))} are distinct objects",
        expected=lambda _: "distinct objects",
        actual=_repeated_object,
        steps=lambda _, slots: [GuardStep(StepOp.DISTINCT, -1, operand=slots.others)],
    ),
)
