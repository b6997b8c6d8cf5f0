"""Guards on what asking gives: a name in the classes of a type, a function, the global state, an expression."""

import re
import sys
from typing import Any

import torch

from ...base.torch_facts import state_parts
from ...values.guard import ABSENT, PLAIN, Guard, GuardKind, look_up, member_found
from ...values.source import shortened
from .rule import CHECK_NAMES, CheckSlots, CheckTexts, GuardRule, other_words, place_words
from .steps import GuardStep, StepOp


def _has_member(guard: Guard, value: Any, _: tuple[Any, ...]) -> bool:
    member = guard.expected
    raw = look_up(value, member.name, member.after)[1]
    return member_found(raw) is PLAIN if member.found is PLAIN else raw is member.found


def _member_text(guard: Guard, texts: CheckTexts) -> str:
    member, inject = guard.expected, texts.inject
    after = f", {inject(member.after)}" if member.after is not None else ""
    raw = f"{inject(look_up)}({texts.value}, {member.name!r}{after})[1]"
    if member.found is PLAIN:
        return f"{inject(member_found)}({raw}) is {inject(PLAIN)}"
    return f"{raw} is {inject(member.found)}"


def _member_steps(guard: Guard, slots: CheckSlots) -> list[GuardStep]:
    member = guard.expected
    name = sys.intern(member.name)
    how = 1 if member.found is ABSENT else 2 if member.found is PLAIN else 0
    return [
        GuardStep(StepOp.MEMBER, slots.value, how, (name, member.after) if member.after else name, member.found),
    ]


def _member_words(guard: Guard) -> str:
    member = guard.expected
    behind = f" behind {member.after.__qualname__}" if member.after is not None else ""
    return f"{place_words(guard)} has {shortened(member.found)} for {member.name!r} in its classes{behind}"


def _actual_member(guard: Guard, value: Any, _: tuple[Any, ...]) -> str:
    member = guard.expected
    return shortened(member_found(look_up(value, member.name, member.after)[1]))


def _answer_words(guard: Guard) -> str:
    answer = guard.expected
    named = [f"{name}={shortened(value)}" for name, value in answer.kwargs.items()]
    return f"{place_words(guard)}({', '.join([*map(shortened, answer.args), *named])}) gives {shortened(answer.given)}"


def _state_steps(guard: Guard, _: CheckSlots) -> list[GuardStep]:
    parts = state_parts(*guard.expected)
    return [GuardStep(StepOp.STATE, -1, type(value) in _IDENTITY_IS_EQUALITY, part, value) for part, value in parts]


_IDENTITY_IS_EQUALITY = (bool, int, str, type(None), torch.dtype, torch.device)


def _state_words(guard: Guard) -> str:
    function, answer = guard.expected
    return f"{getattr(function, '__name__', function)}() is {answer}"


def _expression_holds(guard: Guard, value: Any, others: tuple[Any, ...]) -> object:
    names = ["value", *(f"other{position}" for position in range(len(others)))]
    return eval(guard.expected.format(*names), CHECK_NAMES | dict(zip(names, (value, *others), strict=True)))


def _actual_operands(guard: Guard, value: Any, others: tuple[Any, ...]) -> str:
    """Return the values of the sizes and numbers that a condition is made of."""
    places, objects = [place_words(guard), *other_words(guard)], [value, *others]
    operands: dict[str, str] = {}
    for number, suffix in re.findall(r"\{(\d+)\}((?:\.\w+(?:\(\))?(?:\[\d+\])?)*)", guard.expected):
        place, operand = places[int(number)], objects[int(number)]
        operands[f"{place}{suffix}"] = shortened(eval(f"operand{suffix}", {"operand": operand}))
    return ", ".join(f"{name} = {text}" for name, text in operands.items())


ANSWER_RULES = (
    GuardRule(
        GuardKind.MEMBER,
        meaning=_has_member,
        check=_member_text,
        words=_member_words,
        expected=lambda guard: shortened(guard.expected.found),
        actual=_actual_member,
        steps=_member_steps,
    ),
    GuardRule(
        GuardKind.ANSWER,
        meaning=lambda guard, value, _: guard.expected.still_given(value),
        check=lambda guard, texts: f"{texts.inject(guard.expected)}.still_given({texts.value})",
        words=_answer_words,
        expected=lambda guard: shortened(guard.expected.given),
        actual=lambda guard, value, _: shortened(guard.expected.found(value)),
    ),
    GuardRule(
        GuardKind.STATE,
        meaning=lambda guard, _, __: guard.expected[0]() == guard.expected[1],
        check=lambda guard, texts: f"{texts.inject(guard.expected[0])}() == {texts.inject(guard.expected[1])}",
        words=_state_words,
        expected=lambda guard: str(guard.expected[1]),
        actual=lambda guard, _, __: str(guard.expected[0]()),
        steps=_state_steps,
    ),
    GuardRule(
        GuardKind.DATA,
        meaning=lambda guard, value, others: guard.expected.answers(value, *others) == guard.expected.expected,
        check=lambda guard, texts: f"{texts.inject(guard.expected)}.holds({', '.join((texts.value, *texts.others))})",
        words=lambda guard: f"{guard.expected.words} of {', '.join((place_words(guard), *other_words(guard)))}",
        expected=lambda guard: ", ".join(map(str, guard.expected.expected)),
        actual=lambda guard, value, others: guard.expected.found(value, *others),
    ),
    GuardRule(
        GuardKind.EXPRESSION,
        meaning=_expression_holds,
        check=lambda guard, texts: guard.expected.format(texts.value, *texts.others),
        words=lambda guard: guard.expected.format(place_words(guard), *other_words(guard)),
        expected=lambda _: "true",
        actual=_actual_operands,
    ),
)
