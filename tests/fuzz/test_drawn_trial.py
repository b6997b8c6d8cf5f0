"""A campaign on an engine: what it finds, shrinks and counts is that of a campaign in one process."""

from typing import NamedTuple

from plumbline.fuzz.campaign import CampaignSettings, run_campaign
from plumbline.fuzz.drawn_trial import BEYOND, RoundsAhead
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.minifier.engines.local_engine import LocalEngine
from support.planted_faults import FreezingCompiler


def facts(report):
    failures = [(one.signature, one.number, one.example, one.repeats, one.stage) for one in report.failures]
    return failures, report.verdicts, report.examples, report.duplicates, report.shrink_tries


def test_an_engine_finds_and_shrinks_what_one_process_does():
    settings = CampaignSettings(examples=35, seed=0, shrink_tries=30)
    alone = run_campaign(find_fuzzer("guards"), FreezingCompiler("SCALE"), "eager", settings)
    with LocalEngine(2) as engine:
        together = run_campaign(find_fuzzer("guards"), FreezingCompiler("SCALE"), "eager", settings, engine=engine)
    assert facts(together) == facts(alone)
    assert alone.shrink_tries


class CountedCalls:
    """An engine whose tasks are their own results, read as far ahead as they come; it counts calls, and open ones."""

    workers = 2

    def __init__(self):
        self.calls = self.open = 0
        self.read = []

    def results(self, tasks):
        self.calls += 1
        self.open += 1
        source, ahead = iter(tasks), []
        try:
            while True:
                while (task := next(source, None)) is not None:
                    self.read.append(task)
                    ahead.append(task)
                yield ahead.pop(0)
        finally:
            self.open -= 1


class Tried(NamedTuple):
    """An example that is its own result."""

    number: int
    avoided: tuple[tuple[str, ...], ...]
    signature: str | None = None


def test_a_round_that_was_begun_ahead_counts_only_where_nothing_new_was_found():
    engine = CountedCalls()
    ahead = RoundsAhead(engine, Tried)
    asked = [(range(3), ()), (range(3, 6), ()), (range(6, 9), (("mul",),)), (range(20, 22), (("mul",),))]
    for numbers, avoided in asked:
        last = numbers.start == 20
        assert list(ahead.results(numbers, avoided, last=last)) == [Tried(number, avoided) for number in numbers]
        if avoided == ():
            assert [one.number for one in engine.read] == list(range(numbers.stop - 1 + BEYOND * engine.workers))
    assert engine.read[-1] == Tried(21, (("mul",),))  # nothing is begun after the last round
    assert (engine.calls, engine.open) == (3, 1)
    ahead.close()
    assert engine.open == 0


def test_the_next_round_is_begun_late_and_not_at_all_once_an_example_has_failed():
    engine = CountedCalls()
    ahead = RoundsAhead(engine, lambda number, avoided: Tried(number, avoided, "wrong" if number == 12 else None))
    read = [len(engine.read) for _ in ahead.results(range(20), ())]
    assert read == [20] * 20
    engine.read.clear()
    ahead.close()
    beyond = BEYOND * engine.workers
    read = [20 + len(engine.read) for _ in ahead.results(range(20, 40), ())]
    assert read == [max(40, number + beyond) for number in range(20, 40)]
