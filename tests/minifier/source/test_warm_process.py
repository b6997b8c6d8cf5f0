"""The process that runs candidates leaves nothing behind."""

import tempfile
from dataclasses import replace
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


def test_stocks_compiling_threads_are_none_where_runs_are_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_COMPILE_THREADS", "4")
    program = "import os\nraise KeyError(os.environ['TORCHINDUCTOR_COMPILE_THREADS'])"
    with WarmProcess() as warm:
        assert "KeyError: '1'" in warm.ask(program, SourceSettings(compiler="torch", backend="inductor")).own_error


def test_modules_that_a_run_imported_are_loaded_once(tmp_path: Path) -> None:
    """A lazy package loads nothing by its own import; what its names load is told by the run that read them."""
    packages, folder = tmp_path / "site-packages", tmp_path / "program"
    lazy, seen = packages / "lazy_package", tmp_path / "seen"
    lazy.mkdir(parents=True)
    folder.mkdir()
    (folder / "own_module.py").write_text("")
    text = "import importlib\ndef __getattr__(name): return importlib.import_module('lazy_package.' + name)\n"
    (lazy / "__init__.py").write_text(text)
    (lazy / "part.py").write_text(f"open({str(seen)!r}, 'a').write('loaded ')")
    program = f"import sys\nsys.path.append({str(packages)!r})\nimport own_module\nfrom lazy_package import part\n"
    settings = SourceSettings(compiler="plumbline", backend="eager", folder=str(folder))
    with WarmProcess({"PYTHONPATH": str(packages)}) as warm:
        report = warm.ask(program, settings)
        assert report.imported == ("lazy_package", "lazy_package.part")
        again = [warm.ask(program, replace(settings, preload=report.imported)).imported for _ in range(3)]
    assert again == [(), (), ()]
    assert seen.read_text() == "loaded " * 2
