"""Every row of the guard rules: its meaning, its generated Python and its steps in C agree, and it has words."""

import collections
import types
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.frontend.guards.guard_evaluator import evaluator_type
from plumbline.compiler.frontend.guards.guard_rules import GUARD_RULES, RULE_OF_KIND, guard_words
from plumbline.compiler.frontend.guards.guard_table import guard_table
from plumbline.compiler.frontend.guards.recompile_reasons import failing_guard
from plumbline.compiler.frontend.guards.rule import GuardRule
from plumbline.compiler.frontend.guards.steps import GuardStep, StepOp
from plumbline.compiler.values.data_question import DataQuestion
from plumbline.compiler.values.guard import (
    ABSENT,
    PLAIN,
    Answer,
    Guard,
    GuardKind,
    Member,
    TensorFacts,
)
from plumbline.compiler.values.source import Injected
from support import guard_frames as frames
from support.guard_ways import PARAMETERS, generated, meaning, native, verdict

X, Y = frames.argument(0), frames.argument(1)
SETTING = {"flag": True}


class Base:
    """A class with a plain member and a method."""

    plain = 1

    def method(self) -> None:
        """Be looked up."""


class Derived(Base):
    """One that inherits them."""


class Overriding(Base):
    """One with its own."""

    plain = property(lambda self: 2)

    def method(self) -> None:
        """Be found first."""


def setting() -> object:
    """Return the global state of these examples."""
    return SETTING["flag"]


class Changing(Base):
    """One whose method is replaced."""


def with_method(method: Callable[..., object]) -> "Arguments":
    """Return a maker of arguments that gives `Changing` a method first."""

    def make() -> tuple[object, object]:
        setattr(Changing, "method", method)  # noqa: B010 - mypy lets no method be assigned
        return None, None

    return make


def doubled(value: object) -> object:
    """Be a function that answers."""
    return value * 2  # type: ignore[operator]  # a number in the examples


def tripled(value: object) -> object:
    """Be one that answers otherwise."""
    return value * 3  # type: ignore[operator]  # as above


Arguments = Callable[[], tuple[object, object]]


@dataclass(frozen=True)
class Example:
    """A guard on two arguments, makers of arguments on which it holds and of some on which it fails."""

    guard: Guard
    holds: Arguments
    fails: Arguments


def example(kind: GuardKind, expected: object, holds: object, *fails: object) -> list[Example]:
    """Return an example of a guard on the first argument, one for each value that fails."""
    guard = Guard(X, kind, expected)
    return [Example(guard, lambda: (holds, None), lambda value=value: (value, None)) for value in fails]


def pair(guard: Guard, holds: Arguments, fails: Arguments) -> list[Example]:
    """Return an example of a guard that looks at both arguments."""
    return [Example(guard, holds, fails)]


def like(value: torch.Tensor, *free: int) -> TensorFacts:
    """Return the facts of a tensor; free: dimensions whose size may vary."""
    return frames.facts_of(value, *free)


def with_state(flag: bool) -> Arguments:
    """Return a maker that sets the global state."""

    def make() -> tuple[object, object]:
        SETTING["flag"] = flag
        return None, None

    return make


T = torch.zeros(2, 3)
GRADIENT = torch.zeros(2, 3, requires_grad=True)
EXAMPLES: list[Example] = [
    *example(GuardKind.TYPE, list, [1], (1,), None),
    *example(GuardKind.IDENTITY, None, None, 0),
    *example(GuardKind.EQUALS, 2, 2, 3, True, 2.0),
    *example(GuardKind.EQUALS, 0.0, 0.0, -0.0, 0),
    *example(GuardKind.EQUALS, float("nan"), float("nan"), 1.0),
    *example(GuardKind.EQUALS, 0j, 0j, complex(0.0, -0.0), 1j),
    *example(GuardKind.EQUALS, "a" * 300, "a" * 300, "a"),
    *example(GuardKind.EQUALS, (1, "a"), (1, "a"), (1, "b"), [1, "a"]),
    *example(GuardKind.TRUTH, True, [1], []),
    *example(GuardKind.TRUTH, False, "", "a"),
    *example(GuardKind.HAS_ATTRIBUTE, "plain", Base(), object()),
    *example(GuardKind.LACKS_ATTRIBUTE, "plain", object(), Base()),
    *example(GuardKind.CODE, doubled.__code__, types.FunctionType(doubled.__code__, {}), tripled, 1),
    *pair(Guard(X, GuardKind.SAME_AS, None, None, (Y,)), lambda: (T, T), lambda: (T, torch.zeros(2, 3))),
    *pair(Guard(None, GuardKind.DISTINCT, "distinct", None, (X, Y)), lambda: ([], []), lambda: (T, T)),
    *example(GuardKind.LENGTH, 2, [1, 2], [1], 5),
    *example(GuardKind.KEYS, ("a", "b"), {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}),
    *example(GuardKind.KEYS, ("a",), collections.OrderedDict(a=1), collections.OrderedDict(b=1)),
    *example(GuardKind.KEYS, (1, "a"), {1: 0, "a": 0}, {True: 0, "a": 0}, {1: 0}),
    *example(GuardKind.HAS_KEY, "a", {"a": 1}, {}, 5),
    *example(GuardKind.LACKS_KEY, "a", {}, {"a": 1}, 5),
    *example(GuardKind.EMPTY_ITEMS, ("a", "b"), {"a": {}, "b": []}, {"a": {}, "b": [1]}, {}),
    *example(GuardKind.MEMBERS, frozenset({1, 2}), {2, 1}, {1}, {True, 2}),
    *example(GuardKind.MEMBER, Member("method", None, Base.method), Derived, Overriding, 5),
    *example(GuardKind.MEMBER, Member("absent", None, ABSENT), Derived, type("Has", (), {"absent": 1})),
    *example(GuardKind.MEMBER, Member("plain", None, PLAIN), Derived, Overriding),
    *example(GuardKind.MEMBER, Member("method", Overriding, Base.method), Overriding, Derived),
    *pair(
        Guard(Injected(Changing), GuardKind.MEMBER, Member("method", None, Base.method)),
        with_method(Base.method),
        with_method(Overriding.method),
    ),
    *example(GuardKind.ANSWER, Answer((3,), {}, 6), doubled, tripled, 5),
    *pair(Guard(None, GuardKind.STATE, (setting, True)), with_state(True), with_state(False)),
    *example(
        GuardKind.DATA,
        DataQuestion(lambda x: (x.add_(1).sum(), x.any()), (True,), (6.0, True), "what a branch asks"),
        *(torch.ones(3), torch.zeros(3), torch.tensor(4.0)),
    ),
    *pair(
        Guard(X, GuardKind.DATA, DataQuestion(lambda x, y: (x @ y,), (False, False), (3.0,), "a product"), None, (Y,)),
        lambda: (torch.ones(3), torch.ones(3)),
        lambda: (torch.ones(3), torch.zeros(3)),
    ),
    *example(GuardKind.EXPRESSION, "math.sqrt({0}) == 3", 9, 8, "a"),
    *pair(
        Guard(None, GuardKind.EXPRESSION, "{1}.shape[0] < {2}.shape[0]", None, (X, Y)),
        lambda: (torch.zeros(2), torch.zeros(3)),
        lambda: (torch.zeros(3), torch.zeros(3)),
    ),
    *example(GuardKind.TENSOR, like(T), T, T.double(), T.t(), GRADIENT, torch.zeros(2, 4), None),
    *example(GuardKind.TENSOR, like(T, 0), torch.zeros(5, 3), torch.zeros(5, 4), torch.zeros(5)),
    *example(GuardKind.TENSOR, like(GRADIENT), GRADIENT, GRADIENT * 2, T),
    *example(
        GuardKind.TENSOR,
        like(torch.zeros(2, dtype=torch.complex64).conj()),
        *[
            torch.zeros(2, dtype=torch.complex64).conj(),
            torch.zeros(2, dtype=torch.complex64),
        ],
    ),
    *pair(
        Guard(None, GuardKind.STORAGES, (0, 0), None, (X, Y)),
        lambda: (T, T[:1]),
        lambda: (T, torch.zeros(2, 3)),
    ),
]


def disagreements(this: Example) -> list[str]:
    """Return the ways to check the guard of an example that do not say what they must."""
    guards = (this.guard,)
    ways = {"meaning": meaning(guards), "Python": generated(guards)}
    if evaluator_type(Options()) is not None:
        ways["C"] = native(guards)
    wrong: list[str] = []
    for make, expected in ((this.holds, "hit"), (this.fails, "miss")):
        args = make()
        answers = {way: verdict(run, *args) for way, run in ways.items()}
        wrong += [f"{way}: {answer} on {args}" for way, answer in answers.items() if answer != expected]
    return wrong


NAMED_EXAMPLES = [pytest.param(this, id=f"{this.guard.kind.name}-{n}") for n, this in enumerate(EXAMPLES)]


def test_every_kind_has_one_row_and_an_example() -> None:
    kinds = [rule.kind for rule in GUARD_RULES]
    assert sorted(kind.name for kind in kinds) == sorted(kind.name for kind in GuardKind)
    assert {this.guard.kind for this in EXAMPLES} == set(GuardKind)


@pytest.mark.parametrize("this", NAMED_EXAMPLES)
def test_three_ways_agree(this: Example) -> None:
    assert disagreements(this) == []


@pytest.mark.parametrize("this", NAMED_EXAMPLES)
def test_a_failing_guard_says_what_it_expected_and_what_there_is(this: Example) -> None:
    guards = (this.guard,)
    assert failing_guard(guards, PARAMETERS, this.holds()) == (None, "", "")
    failing, expected, actual = failing_guard(guards, PARAMETERS, this.fails())
    assert failing is this.guard
    assert expected
    assert actual
    assert expected != actual
    places = [source.words() for source in (this.guard.source, *this.guard.others) if source is not None]
    assert all(place in guard_words(this.guard) for place in places)


def test_every_step_of_a_check_is_reached() -> None:
    reached = {step.op for this in EXAMPLES for step in steps_of(this)}
    assert reached == {op for op in StepOp if op > StepOp.FETCH}


def steps_of(this: Example) -> tuple[GuardStep, ...]:
    """Return the steps of an example's guard."""
    return guard_table((this.guard,), PARAMETERS).steps


def one_example_of_each() -> list[Example]:
    """Return the first example of each kind."""
    return list({this.guard.kind: this for this in reversed(EXAMPLES)}.values())


FAULTS: dict[str, Callable[[GuardRule], GuardRule]] = {
    "meaning": lambda rule: replace(rule, meaning=lambda *_: True),
    "Python": lambda rule: replace(rule, check=lambda *_: "True"),
    "a step that always fails": lambda rule: replace(rule, steps=lambda *_: [constant_step(False)]),
    "a step that always passes": lambda rule: replace(rule, steps=lambda *_: [constant_step(True)]),
}


def constant_step(answer: bool) -> GuardStep:
    """Return a step that looks at nothing."""
    return GuardStep(StepOp.STATE, -1, operand=lambda: answer, extra=True)


@pytest.mark.cc
@pytest.mark.parametrize("this", [pytest.param(this, id=this.guard.kind.name) for this in one_example_of_each()])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_wrong_row_is_seen(this: Example, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = RULE_OF_KIND[this.guard.kind]
    monkeypatch.setitem(RULE_OF_KIND, rule.kind, FAULTS[fault](rule))
    assert disagreements(this)
