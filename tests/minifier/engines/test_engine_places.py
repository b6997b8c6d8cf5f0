"""Engines by name, and campaigns that run on them: the same findings as without."""

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.fuzz.campaign import CampaignSettings, run_campaign
from plumbline.fuzz.fuzzers import find_fuzzer
from plumbline.minifier.engines.engine_places import find_engine
from plumbline.minifier.engines.local_engine import LocalEngine
from support.planted_compilers import OffByOneCompiler


@pytest.mark.parametrize(("place", "told"), [("cloud", "unknown engine"), ("local:x", "number"), ("local:0", "number")])
def test_a_place_that_is_none(place, told):
    with pytest.raises(UserError, match=told):
        find_engine(place)


def test_local_workers_by_number():
    engine = find_engine("local:3")
    assert isinstance(engine, LocalEngine)
    assert engine.workers == 3


def test_a_campaign_finds_the_same_on_workers():
    def facts(engine):
        report = run_campaign(
            find_fuzzer("guards"),
            OffByOneCompiler(),
            "eager",
            CampaignSettings(4, seed=3, shrink_tries=10),
            engine=engine,
        )
        found = [(one.signature, one.example, one.number) for one in report.failures]
        return found, report.verdicts, report.duplicates, report.next_number

    with find_engine("local:2") as engine:
        on_workers = facts(engine)
    assert on_workers == facts(None)
    assert on_workers[0]
