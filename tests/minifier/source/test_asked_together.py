"""Programs that run at once on the workers of an engine are told what each is told alone."""

import pytest

from plumbline.minifier.engines.engine_places import find_engine
from plumbline.minifier.source.asked_together import asked_together
from plumbline.minifier.source.source_run import SourceSettings
from plumbline.minifier.source.warm_process import WarmProcess

SETTINGS = SourceSettings(compiler="plumbline", backend="eager")
SURROUNDINGS = """
import os, torch, plumbline
raise RuntimeError(f"{os.environ.get('OMP_NUM_THREADS')} {torch.get_num_threads()} {os.environ.get('PYTHONPATH')}")
"""


def test_surroundings_are_those_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with WarmProcess() as warm, find_engine("local:2") as engine:
        alone = warm.ask(SURROUNDINGS, SETTINGS)
        together = list(asked_together([SURROUNDINGS, "raise KeyError(1)"], SETTINGS, engine))
    assert together[0] == alone
    assert "3 " in alone.own_error
    assert "KeyError" in together[1].own_error
