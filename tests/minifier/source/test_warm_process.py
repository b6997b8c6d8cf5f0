"""The process that runs candidates leaves nothing behind."""

import tempfile
from pathlib import Path

import pytest

from plumbline.minifier.source.source_run import SourceSettings
from plumbline.minifier.source.warm_process import WarmProcess


def test_nothing_is_left_of_a_warm_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with WarmProcess() as warm:
        report = warm.ask("raise KeyError(__file__)", SourceSettings(compiler="plumbline", backend="eager"))
        assert str(tmp_path) in report.own_error
        assert list(tmp_path.iterdir())
    assert list(tmp_path.iterdir()) == []
