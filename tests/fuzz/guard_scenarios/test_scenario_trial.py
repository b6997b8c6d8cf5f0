"""The guard fuzzer: silent on a right compiler, loud on an ignored guard; counts what recompiles."""

import re
from dataclasses import replace

import pytest
import torch

from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.campaign import CampaignSettings, run_campaign
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.fuzz.guard_scenarios.guard_slots import BASES, SLOTS
from plumbline.fuzz.guard_scenarios.scenario_trial import try_scenario
from plumbline.fuzz.guard_scenarios.scenarios import (
    Scenario,
    ScenarioEvent,
    UsedSlot,
    check_scenario,
    scenarios,
    simpler_scenarios,
)
from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.harness.stock_torch import StockTorch
from plumbline.oracle.verdict import VerdictKind
from support.planted_compilers import PlantedCompiler
from support.planted_faults import FROZEN_ARGUMENTS, FROZEN_PLACES, CountingCompiler, FreezingCompiler

GUARDS = find_fuzzer("guards")
CALL = ScenarioEvent()


def abab(slot: str, way: int = 0) -> Scenario:
    a, b = ScenarioEvent(slot, 0), ScenarioEvent(slot, 1)
    return Scenario((UsedSlot(slot, way),), (CALL, b, CALL, a, CALL, b, CALL))


def test_no_false_alarm_on_a_right_compiler():
    report = run_campaign(GUARDS, PlantedCompiler(), "eager", CampaignSettings(200, seed=7))
    assert report.failures == []
    assert report.verdicts["EQUAL"] >= 195, report.summary()


@pytest.mark.parametrize("name", sorted(name for name, slot in SLOTS.items() if slot.rewound))
def test_every_slot_runs_in_every_way_with_every_value(name):
    """A right compiler agrees, and eager raises in no state: a slot that always fails would test nothing."""
    for way in range(len(SLOTS[name].reads)):
        events = [CALL]
        for value in range(len(SLOTS[name].values)):
            events += [ScenarioEvent(name, value), CALL]
        tried = try_scenario(Scenario((UsedSlot(name, way),), tuple(events)), PlantedCompiler(), "eager")
        assert tried.verdict.kind is VerdictKind.EQUAL, (way, str(tried.verdict))


QUICK = ("SCALE", "ZERO", "helper", "Thing.factor", "module.training", "number")
SLOWER = [
    pytest.param(place, marks=pytest.mark.slow) for place in (*FROZEN_PLACES, *FROZEN_ARGUMENTS) if place not in QUICK
]


WORDS = {re.split(r"\W", place)[0] for place in (*FROZEN_PLACES, *FROZEN_ARGUMENTS)}
TOUCHED = tuple(
    name for name, slot in SLOTS.items() if WORDS & set(re.findall(r"\w+", " ".join((*slot.values, *slot.reads))))
)
ON_TOUCHED = replace(
    GUARDS, draw=lambda draw, avoided: scenarios(draw, among=TOUCHED)
)  # all slots together would dilute what is looked for


@pytest.mark.parametrize("place", [*QUICK, *SLOWER])
def test_a_planted_ignored_guard_is_caught(place):
    report = run_campaign(
        ON_TOUCHED, FreezingCompiler(place), "eager", CampaignSettings(400, seed=2, most_failures=1, shrink_tries=40)
    )
    (found,) = report.failures
    assert found.signature.kind == "WRONG", found
    assert found.signature.aspect in ("values", "metadata", "exceptions"), found
    assert len(found.example.slots) == 1


def test_a_guard_dropped_in_stock_is_caught():
    """The real thing: stock's own guards, those on globals filtered out by its own option."""

    class Unguarded(StockTorch):
        def compile(self, target, backend, request, *, rng):
            keep = {"guard_filter_fn": lambda guards: [not guard.is_global for guard in guards]}
            return super().compile(target, backend, CompileRequest(extra={"options": keep}), rng=rng)

    scenario = abab("global_string")
    assert try_scenario(scenario, find_compiler("torch", "eager"), "eager").signature is None
    tried = try_scenario(scenario, Unguarded(), "eager")
    assert tried.signature is not None
    assert tried.signature.aspect in ("values", "metadata")


def test_compiling_again_in_a_known_state_is_a_failure():
    def every_call(scope, memory):
        return True

    tried = try_scenario(abab("global_number"), CountingCompiler(every_call), "eager")
    assert tried.signature is not None
    assert tried.signature.aspect == "recompile"


def test_compiling_once_per_state_is_none():
    def new_value(scope, memory):
        news = (type(scope["SCALE"]), scope["SCALE"]) not in memory
        memory.append((type(scope["SCALE"]), scope["SCALE"]))
        return news

    tried = try_scenario(abab("global_number"), CountingCompiler(new_value), "eager")
    assert (tried.signature, tried.notes) == (None, ())


def test_compiling_for_an_unread_change_is_noted_not_failed():
    def new_value(scope, memory):
        news = scope["SCALE"] not in memory
        memory.append(scope["SCALE"])
        return news

    scenario = Scenario((UsedSlot("global_number", -1),), (CALL, ScenarioEvent("global_number", 1), CALL))
    tried = try_scenario(scenario, CountingCompiler(new_value), "eager")
    assert tried.signature is None
    assert tried.notes == ("over-guard: a change of global_number compiles again and is not read",)


def test_torch_stands_as_before_after_a_scenario():
    scenario = Scenario(
        (UsedSlot("grad_mode"), UsedSlot("default_dtype")),
        (ScenarioEvent("grad_mode", 1), ScenarioEvent("default_dtype", 1), CALL),
    )
    assert try_scenario(scenario, PlantedCompiler(), "eager").signature is None
    assert torch.is_grad_enabled()
    assert torch.get_default_dtype() is torch.float32


def test_simpler_scenarios_have_less():
    scenario = abab("global_number")
    for smaller in simpler_scenarios(scenario):
        assert len(smaller.events) < len(scenario.events)


def test_a_file_cannot_name_unknown_slots():
    for wrong in (
        Scenario((UsedSlot("nothing"),), (CALL,)),
        Scenario((UsedSlot("alias"),), (ScenarioEvent("alias", 9),)),
        Scenario((UsedSlot("alias"),), (ScenarioEvent("number", 0),)),
    ):
        with pytest.raises(UserError):
            check_scenario(wrong)


def test_slots_name_bases_that_exist():
    assert {slot.needs for slot in SLOTS.values()} - {""} == BASES.keys()
