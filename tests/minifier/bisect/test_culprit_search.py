"""The search on programs that only pretend to be compiled: which applications fail together is known."""

import random
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.base.bisecting.applications import gate_for
from plumbline.compiler.base.config import CONFIG
from plumbline.minifier.bisect.asking import BisectQuestions
from plumbline.minifier.bisect.culprit import Culprit, culprit_of

KINDS = ("decomposition", "pass", "lowering", "fusion", "vector")


@dataclass
class Pretended:
    """A program with some applications of each kind, which fails where all of one of the sets are on.

    rate: the share of those runs that fail.
    """

    counts: dict[str, int]
    guilty: tuple[frozenset[tuple[str, int]], ...]
    rate: float = 1.0
    runs: int = 0
    draws: random.Random = field(default_factory=lambda: random.Random(0))

    def fails(self) -> bool:
        self.runs += 1
        gate = gate_for(str(CONFIG.bisect), "graph")
        on = {
            (kind, number)
            for kind, count in self.counts.items()
            for number in range(count)
            if gate is None or gate.allows(kind, f"{kind} {number}", rule=f"{number % 3}")
        }
        return any(some <= on for some in self.guilty) and self.draws.random() < self.rate


def named(culprit: Culprit | None) -> set[tuple[str, int]]:
    assert culprit is not None
    assert culprit.application is not None
    return {(each.kind, each.number) for each in (*culprit.needed, culprit.application)}


counts = st.fixed_dictionaries({kind: st.integers(1, 40) for kind in KINDS})


@given(counts, st.sampled_from(KINDS), st.integers(0, 39))
def test_one_culprit_is_named_and_holds_in_both_directions(counts: dict[str, int], kind: str, number: int) -> None:
    guilty = (kind, number % counts[kind])
    culprit = culprit_of(Pretended(counts, (frozenset({guilty}),)))
    assert named(culprit) == {guilty}
    assert culprit is not None
    assert "it fails" in culprit.evidence[0]
    assert culprit.evidence[1].endswith("off: it passes")
    assert culprit.queries <= 20


@given(st.integers(2, 60), st.data())
def test_a_pair_of_one_kind_is_named(count: int, data: st.DataObject) -> None:
    numbers = data.draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=2))
    guilty = frozenset(("fusion", number) for number in numbers)
    culprit = culprit_of(Pretended({"fusion": count, "lowering": 9}, (guilty,)))
    assert named(culprit) == set(guilty)
    assert culprit is not None
    assert "together with fusion" in culprit.sentence


@given(st.integers(2, 60), st.data())
def test_of_several_culprits_one_is_named_and_the_others_are_told(count: int, data: st.DataObject) -> None:
    numbers = data.draw(st.sets(st.integers(0, count - 1), min_size=2, max_size=5))
    guilty = tuple(frozenset({("lowering", number)}) for number in numbers)
    culprit = culprit_of(Pretended({"lowering": count, "pass": 4}, guilty))
    assert named(culprit) == {("lowering", min(numbers))}
    assert culprit is not None
    alike = {number for number in range(count) if number % 3 == min(numbers) % 3}
    assert ("more of the same rule" in culprit.sentence) == (numbers <= alike)


def test_a_pair_of_two_kinds_is_blamed_on_the_later_one() -> None:
    pair = frozenset({("lowering", 3), ("vector", 5)})
    assert named(culprit_of(Pretended(dict.fromkeys(KINDS, 20), (pair,)))) == {("vector", 5)}


def test_a_flaky_failure_is_asked_for_often_enough() -> None:
    for seed in range(5):
        case = Pretended({"fusion": 30, "lowering": 30}, (frozenset({("fusion", 17)}),), 0.7, draws=random.Random(seed))
        culprit = culprit_of(case, budget=400)
        assert named(culprit) == {("fusion", 17)}
        assert culprit is not None
        assert culprit.rate == 1 or "of its runs" in culprit.evidence[-1]


def test_what_no_switch_mends_is_said_to_be_in_none_of_them() -> None:
    culprit = culprit_of(Pretended({"fusion": 5}, (frozenset(),)))
    assert culprit is not None
    assert culprit.application is None
    assert "every application switched off" in culprit.sentence


def test_what_does_not_fail_has_no_culprit(tmp_path: Path) -> None:
    assert culprit_of(Pretended({"fusion": 5}, ()), tmp_path / "files") is None
    assert not (tmp_path / "files").exists()


def test_a_budget_that_is_used_up_is_said() -> None:
    case = Pretended({"fusion": 60}, (frozenset({("fusion", 44)}),))
    culprit = culprit_of(case, budget=4)
    assert culprit is not None
    assert "4 questions were asked" in culprit.sentence
    assert case.runs == 4


def test_an_answer_is_asked_for_once() -> None:
    questions = BisectQuestions(Pretended({"fusion": 3}, (frozenset({("fusion", 1)}),)))
    assert [questions.fails(text) for text in ("fusion:1", "fusion:1", "fusion:2")] == [False, False, True]
    assert questions.asked == 2
