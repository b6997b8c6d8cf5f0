"""A campaign that is led reaches more than a plain one of as many programs, on every engine the same, and goes on."""

from dataclasses import dataclass, replace

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.campaign import CampaignReport, CampaignSettings, run_campaign
from plumbline.fuzz.campaign_state import CampaignState
from plumbline.fuzz.coverage.lead import Lead, LedDraw
from plumbline.fuzz.findings import TrialResult
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.oracle.verdict import Verdict, VerdictKind
from support.planted_compilers import PlantedCompiler

RIGHT = TrialResult(Verdict(VerdictKind.EQUAL, "not tried"))


class PlainLead(Lead):
    """Counts what is reached and leads nowhere."""

    def plan(self, seed, numbers):
        return [LedDraw("plain", f"{seed}:{number}") for number in numbers]


def led(fuzzer, examples, lead, seed=0):
    """Return the lead of a campaign in which every example is right."""
    untried = replace(find_fuzzer("guards"), **fuzzer, attempt=lambda example, compiler, backend: RIGHT)
    report = CampaignReport("guards", "planted", "eager", seed, lead=lead)
    run_campaign(untried, PlantedCompiler(), "eager", CampaignSettings(examples, seed, led=True), report=report)
    return report.lead


@pytest.mark.parametrize(("mode", "more"), [("guards", 1.15), ("programs", 1.02)])
def test_a_led_campaign_reaches_more_than_a_plain_one(mode, more):
    means = {"draw": find_fuzzer(mode).draw, "foretell": find_fuzzer(mode).foretell}
    plain, lead = led(means, 80, PlainLead()), led(means, 80, Lead())
    assert len(lead.reached) > more * len(plain.reached)


@dataclass(frozen=True)
class Stairs:
    depth: int
    names: tuple[str, ...] = ()


def climb(draw, avoided):
    """Climb a step with each draw that is one of four: plain draws stay low."""
    depth = 0
    while draw.randrange(4) == 0:
        depth += 1
    return Stairs(depth)


def test_examples_that_brought_something_new_are_gone_on_from():
    means = {"draw": climb, "foretell": lambda example: frozenset({f"changes: {example.depth}"})}
    plain, lead = led(means, 200, PlainLead()), led(means, 200, Lead())
    assert max(map(_depth, lead.reached)) > 2 * max(map(_depth, plain.reached))


def _depth(behaviour):
    return int(behaviour.partition(": ")[2])


def test_ways_that_bring_nothing_are_taken_seldom_and_not_never():
    lead, taken = Lead(), []
    for number in range(0, 600, 20):
        plan = lead.plan(0, range(number, number + 20))
        for place, one in enumerate(plan, number):
            taken.append(one.way)
            brings = frozenset({f"changes: {place} {part}" for part in range(5)}) if one.way == "new" else frozenset()
            lead.take(0, place, one, replace(RIGHT, reached=brings, lineage=one.lineage, taken=9))
    late = taken[200:]
    assert late.count("new") > 0.7 * len(late)
    assert {"plain", "child"} <= set(late)


def test_the_state_of_a_campaign_has_its_lead(tmp_path):
    state = CampaignState(tmp_path, "guards", "planted", "eager", 0)
    means = {"draw": find_fuzzer("guards").draw, "foretell": find_fuzzer("guards").foretell}
    report = CampaignReport("guards", "planted", "eager", 0, lead=led(means, 20, Lead()), next_number=20)
    state.write(report)
    again, _ = state.resumed(CampaignReport("guards", "planted", "eager", 0), CampaignSettings(40, led=True))
    assert again.lead.plan(0, range(20, 40)) == report.lead.plan(0, range(20, 40))
    assert again.lead.summary() == report.lead.summary()
    state.file.write_text(state.file.read_text().replace('"gains"', '"pains"'))
    with pytest.raises(UserError, match="cannot read the state"):
        state.resumed(CampaignReport("guards", "planted", "eager", 0), CampaignSettings(40, led=True))
