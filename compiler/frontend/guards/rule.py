"""GuardRule: all that a kind of guard is, in one row: what it means, how it is checked and what people are told."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...values.guard import Guard, GuardKind
from ...values.source import Inject, shortened
from .steps import GuardStep, StepOp

GUARD_ERRORS = (  # of a fetch or a check: the guard does not hold
    AttributeError,
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    RuntimeError,
    ArithmeticError,
)
CHECK_NAMES: dict[str, object] = {"math": math}  # what any check may name besides: conditions on sizes take roots


@dataclass(frozen=True, slots=True)
class CheckTexts:
    """What a generated check may name: the value, the other values, and by `inject` any constant object."""

    value: str
    others: tuple[str, ...]
    inject: Inject


@dataclass(frozen=True, slots=True)
class CheckSlots:
    """The slots that a step may look at; python_check: the generated check as a function (value, *others) -> bool."""

    value: int
    others: tuple[int, ...]
    python_check: Callable[..., bool]


Meaning = Callable[[Guard, Any, tuple[Any, ...]], object]  # guard, value, other values -> true if the guard holds
CheckText = Callable[[Guard, CheckTexts], str]
CheckSteps = Callable[[Guard, CheckSlots], Sequence[GuardStep] | None]
Words = Callable[[Guard], str]
ActualWords = Callable[[Guard, Any, tuple[Any, ...]], str]


@dataclass(frozen=True, slots=True)
class GuardRule:
    """One kind of guard. What raises one of GUARD_ERRORS does not hold.

    meaning: the reference: plain Python that says whether the guard holds. It runs in tests only, which ask of every
        row that check and steps agree with it.
    check: a Python expression that is true if the guard holds, for the generated function.
    words: the condition for people.
    expected, actual: what a recompilation says was expected, and what there is instead.
    steps: the check as steps of the evaluator in C; None, or returning None, leaves it to the generated check.
    """

    kind: GuardKind
    meaning: Meaning
    check: CheckText
    words: Words
    expected: Words = lambda guard: shortened(guard.expected)
    actual: ActualWords = lambda guard, value, others: shortened(value)
    steps: CheckSteps | None = None


def place_words(guard: Guard) -> str:
    """Return where the guarded value is, for people; empty for global state."""
    return guard.source.words() if guard.source is not None else ""


def other_words(guard: Guard) -> list[str]:
    """Return where the other values are, for people."""
    return [other.words() for other in guard.others]


def sentence(verb: str) -> Words:
    """Return words of the form `place verb expected`."""
    return lambda guard: f"{place_words(guard)} {verb} {shortened(guard.expected)}"


def compare_operand(op: StepOp) -> CheckSteps:
    """Return the rule of a kind that is one step, whose operand is what the guard expects."""
    return lambda guard, slots: [GuardStep(op, slots.value, operand=guard.expected)]
