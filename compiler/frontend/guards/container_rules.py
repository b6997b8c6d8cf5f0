"""Guards on what a container holds: its length, its keys, its members."""

import sys
from typing import Any

from ...values.guard import Guard, GuardKind
from ...values.source import shortened
from .rule import CheckSlots, CheckTexts, GuardRule, compare_operand, place_words, sentence
from .steps import GuardStep, StepOp


def _are_texts(keys: tuple[object, ...]) -> bool:
    return all(type(key) is str for key in keys)


def _has_keys(guard: Guard, value: Any, _: tuple[Any, ...]) -> bool:
    keys: tuple[object, ...] = guard.expected
    if _are_texts(keys):
        return tuple(value) == keys
    same_types = [type(key) for key in value] == [type(key) for key in keys]
    same_text = not _has_floats(keys) or list(map(repr, value)) == list(map(repr, keys))
    return same_types and same_text and tuple(value) == keys


def _has_floats(keys: tuple[object, ...]) -> bool:
    """Return whether equal keys may be told apart: 0.0 and -0.0 find the same entry."""
    return any(type(key) is float for key in keys)


def _keys_text(guard: Guard, texts: CheckTexts) -> str:
    keys, value, inject = guard.expected, texts.value, texts.inject
    if _are_texts(keys):
        return f"{inject(tuple)}({value}) == {inject(keys)}"
    told_apart = (type, repr) if _has_floats(keys) else (type,)
    same = [
        f"{inject(tuple)}({inject(map)}({inject(by)}, {value})) == {inject(tuple(map(by, keys)))}" for by in told_apart
    ]
    return " and ".join((*same, f"{inject(tuple)}({value}) == {inject(keys)}"))


def _keys_steps(guard: Guard, slots: CheckSlots) -> list[GuardStep] | None:
    keys = guard.expected
    if not _are_texts(keys):
        return None
    return [GuardStep(StepOp.KEYS, slots.value, operand=slots.python_check, extra=tuple(map(sys.intern, keys)))]


def _empty_items_text(guard: Guard, texts: CheckTexts) -> str:
    return f"not ({' or '.join(f'{texts.value}[{key!r}]' for key in guard.expected)})"


def _members_text(guard: Guard, texts: CheckTexts) -> str:
    value, inject = texts.value, texts.inject
    shown = f"{inject(sorted)}({inject(map)}({inject(repr)}, {value}))"  # tells 1 from True and 0.0 from -0.0
    return f"{value} == {inject(guard.expected)} and {shown} == {inject(sorted(map(repr, guard.expected)))}"


def _members_words(value: Any) -> str:
    return shortened(sorted(value, key=repr)) if isinstance(value, set | frozenset) else shortened(value)


def _full_items(guard: Guard, value: Any, _: tuple[Any, ...]) -> str:
    return f"something under {', '.join(name for name in guard.expected if value[name])}"


CONTAINER_RULES = (
    GuardRule(
        GuardKind.LENGTH,
        meaning=lambda guard, value, _: len(value) == guard.expected,
        check=lambda guard, texts: f"len({texts.value}) == {guard.expected}",
        words=sentence("has length"),
        actual=lambda _, value, __: str(len(value)),
        steps=lambda guard, slots: [GuardStep(StepOp.LENGTH, slots.value, guard.expected)],
    ),
    GuardRule(
        GuardKind.KEYS,
        meaning=_has_keys,
        check=_keys_text,
        words=lambda guard: f"{place_words(guard)} has keys, in order {shortened(list(guard.expected))}",
        expected=lambda guard: shortened(list(guard.expected)),
        actual=lambda _, value, __: shortened(list(value)),
        steps=_keys_steps,
    ),
    GuardRule(
        GuardKind.HAS_KEY,
        meaning=lambda guard, value, _: guard.expected in value,
        check=lambda guard, texts: f"{texts.inject(guard.expected)} in {texts.value}",
        words=lambda guard: f"{place_words(guard)} has key {guard.expected!r}",
        expected=lambda _: "present",
        actual=lambda _, __, ___: "absent",
        steps=compare_operand(StepOp.HAS_KEY),
    ),
    GuardRule(
        GuardKind.LACKS_KEY,
        meaning=lambda guard, value, _: guard.expected not in value,
        check=lambda guard, texts: f"{texts.inject(guard.expected)} not in {texts.value}",
        words=lambda guard: f"{place_words(guard)} lacks key {guard.expected!r}",
        expected=lambda _: "absent",
        actual=lambda _, __, ___: "present",
        steps=compare_operand(StepOp.LACKS_KEY),
    ),
    GuardRule(
        GuardKind.EMPTY_ITEMS,
        meaning=lambda guard, value, _: not any(value[name] for name in guard.expected),
        check=_empty_items_text,
        words=lambda guard: f"{place_words(guard)} has nothing under {', '.join(guard.expected)}",
        expected=lambda _: "nothing",
        actual=_full_items,
        steps=compare_operand(StepOp.EMPTY_ITEMS),
    ),
    GuardRule(
        GuardKind.MEMBERS,
        meaning=lambda guard, value, _: (
            value == guard.expected and sorted(map(repr, value)) == sorted(map(repr, guard.expected))
        ),
        check=_members_text,
        words=lambda guard: f"{place_words(guard)} has members {shortened(set(guard.expected) or '(none)')}",
        expected=lambda guard: _members_words(guard.expected),
        actual=lambda _, value, __: _members_words(value),
    ),
)
