"""A campaign on an engine: what it finds, shrinks and counts is that of a campaign in one process."""

from plumbline.fuzz.campaign import CampaignSettings, run_campaign
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
