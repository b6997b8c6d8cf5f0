"""Campaigns: seeds repeat, failures are told apart, shrunk, confirmed and kept, whatever the compiler does."""

import os
import signal
import time
from dataclasses import replace

import pytest
import torch

from plumbline.fuzz.campaign import ROUND, CampaignReport, CampaignSettings, run_campaign
from plumbline.fuzz.findings import FuzzSignature, TrialResult, signature_of
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.fuzz.guard_scenarios.scenarios import scenarios
from plumbline.fuzz.isolation import Workshop
from plumbline.fuzz.leftovers import clear_leftovers
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind
from support.planted_compilers import OffByOneCompiler, PlantedCandidate, PlantedCompiler
from support.planted_faults import FreezingCompiler

GUARDS = find_fuzzer("guards")
EQUAL = TrialResult(Verdict(VerdictKind.EQUAL, ""))


class Told(PlantedCompiler):
    """Does something at each compile."""

    def __init__(self, action):
        super().__init__()
        self.action, self.count = action, 0

    def compile(self, target, backend, request, *, rng):
        self.count += 1
        self.action(self.count)
        return PlantedCandidate(target, self.fault)


def facts(report: CampaignReport) -> object:
    return [(f.signature, f.example) for f in report.failures], report.verdicts, report.duplicates, report.examples


def test_a_seed_repeats_a_campaign():
    options = CampaignSettings(4, seed=3, shrink_tries=10)
    first, second = (run_campaign(GUARDS, OffByOneCompiler(), "eager", options) for _ in range(2))
    assert facts(first) == facts(second)
    assert first.failures


def test_a_failure_found_once_is_not_found_again():
    few = ("instance_attribute", "class_attribute", "global_number", "list_items", "module_training")
    mode = replace(GUARDS, draw=lambda draw, avoided: scenarios(draw, among=few))
    report = run_campaign(mode, FreezingCompiler("thing.gain"), "eager", CampaignSettings(80, seed=3, shrink_tries=40))
    assert report.examples == 80
    assert report.verdicts["EQUAL"] + len(report.failures) + report.duplicates == 80
    assert report.duplicates < ROUND  # what was found is left out of what is drawn from the next round on
    assert len({found.signature for found in report.failures}) == len(report.failures)
    values = [found for found in report.failures if found.signature.aspect == "values"]
    assert [found.signature.involved for found in values] == [("instance_attribute",)]


def test_an_interrupt_ends_cleanly_with_what_was_found():
    def interrupted(count):
        if count == 8:
            raise KeyboardInterrupt

    report = run_campaign(GUARDS, Told(interrupted), "eager", CampaignSettings(100))
    assert report.interrupted
    assert report.examples == 7
    assert "interrupted" in report.summary()


def test_an_interrupt_while_shrinking_keeps_the_failure():
    class Impatient(OffByOneCompiler):
        count = 0

        def compile(self, target, backend, request, *, rng):
            self.count += 1
            if self.count == 9:
                raise KeyboardInterrupt
            return super().compile(target, backend, request, rng=rng)

    told = []
    report = run_campaign(GUARDS, Impatient(), "eager", CampaignSettings(500, seed=3), on_failure=told.append)
    assert report.interrupted
    assert report.failures
    assert told == report.failures


def test_an_interrupt_when_a_failure_is_told_of_does_not_tell_of_it_again():
    def tell(failure):
        told.append(failure)
        raise KeyboardInterrupt

    told = []
    options = CampaignSettings(500, seed=3, shrink_tries=3)
    report = run_campaign(GUARDS, OffByOneCompiler(), "eager", options, on_failure=tell)
    assert report.interrupted
    assert told == report.failures
    assert len(told) == 1


def test_an_example_whose_drawing_ends_the_process_is_left_out():
    """Division of the least whole number by -1 does, in eager."""

    def draw(draws, avoided):
        os.kill(os.getpid(), signal.SIGFPE)

    with Workshop(lambda example, backend: EQUAL, draw=draw) as workshop:
        trial = workshop.try_drawn("0:0", ())
    assert trial.verdict.kind is VerdictKind.EAGER_FAILED
    assert trial.signature is None


@pytest.mark.parametrize("number", [signal.SIGSEGV])
def test_a_crash_of_the_interpreter_is_a_failure_of_its_example(number):
    def crash(count):
        if count == 3:
            os.kill(os.getpid(), number)

    report = run_campaign(GUARDS, Told(crash), "eager", CampaignSettings(12, shrink_tries=2))
    assert {found.signature.detail for found in report.failures} == {number.name}
    assert report.failures[0].signature.involved
    assert report.examples == 12
    assert not report.failures[0].repeats  # a crash at the third compile of a process is not the example's


def test_a_hang_is_a_failure():
    with Workshop(lambda example, backend: time.sleep(60), seconds=0.5) as workshop:
        tried = workshop.try_one(1)
        assert tried.signature == FuzzSignature("CRASH", "process", "hang")


def test_an_exception_of_the_judge_is_a_failure_by_name():
    def broken(example, backend):
        raise ZeroDivisionError("the judge")

    with Workshop(broken) as workshop:
        tried = workshop.try_one(1)
    assert tried.signature == FuzzSignature("CRASH", "judge", "ZeroDivisionError")


def test_a_tainted_process_makes_no_further_attempts():
    def attempt(example, backend):
        if example == "raise":
            return replace(EQUAL, signature=FuzzSignature("WRONG", "exceptions", "E"))
        return replace(EQUAL, notes=(str(os.getpid()),))

    with Workshop(attempt) as workshop:
        first, second = workshop.try_one("a"), workshop.try_one("b")
        assert first.notes == second.notes
        assert workshop.try_one("raise").tainted
        assert workshop.try_one("c").notes != first.notes


def test_leftovers_are_told_and_cleared():
    assert clear_leftovers() == ()
    torch._C._enter_dual_level()
    assert clear_leftovers() == ("leaves the forward-mode level entered",)
    torch._C._functorch._vmap_increment_nesting(2, "error")
    assert clear_leftovers() == ("leaves a functorch transform entered",)
    assert clear_leftovers() == ()
    assert torch.equal(torch.func.jvp(torch.sin, (torch.zeros(1),), (torch.ones(1),))[1], torch.ones(1))


def test_a_signature_explains_what_contains_it():
    small = FuzzSignature("WRONG", "values", "", ("sum", "vmap"))
    assert small.explains(FuzzSignature("WRONG", "values", "", ("sin", "sum", "vmap")))
    assert not small.explains(FuzzSignature("WRONG", "metadata", "", ("sum", "vmap")))
    assert not small.explains(FuzzSignature("WRONG", "values", "", ("vmap",)))
    assert small.name != FuzzSignature("WRONG", "values", "", ("sum",)).name


def test_a_campaign_ends_after_its_time():
    started = time.monotonic()
    report = run_campaign(GUARDS, PlantedCompiler(), "eager", CampaignSettings(100_000, seconds=0.5))
    assert 0 < report.examples < 100_000
    assert time.monotonic() - started < 60
    assert report.cpu_seconds > 0
    assert "a CPU minute" in report.summary()


def test_the_stage_is_the_first_backend_that_fails_in_this_way():
    class Late(PlantedCompiler):
        backends = ("eager", "aot_eager", "inductor")

        def compile(self, target, backend, request, *, rng):
            return PlantedCandidate(target if backend == "eager" else lambda *args: target(*args) + 1, self.fault)

    options = CampaignSettings(20, seed=3, shrink_tries=10, most_failures=1)
    report = run_campaign(GUARDS, Late(), "inductor", options)
    assert [failure.stage for failure in report.failures] == ["aot_eager"]


def test_a_missing_error_has_a_name_of_its_own():
    finding = Finding(VerdictKind.WRONG, "exceptions", "the call", "raises nothing; eager raises RuntimeError: dtypes")
    signature = signature_of(Verdict(VerdictKind.WRONG, "", (finding,)), ())
    assert signature is not None
    assert signature.detail == "missing RuntimeError"
    assert signature.is_missing_error
