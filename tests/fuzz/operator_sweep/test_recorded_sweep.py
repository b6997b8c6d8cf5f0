"""The command: findings saved and said, rows in the database, exit status, wrong requests."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from plumbline import command
from plumbline.reports.store import open_store
from plumbline.testing import lowering_of, replace_lowering


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty directory; return status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLUMBLINE_DB", raising=False)

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["plumbline", "sweep", "operators", *map(str, words), "--db", "r.sqlite"])
        with pytest.raises(SystemExit) as end:
            command.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def test_a_clean_sweep_leaves_passed_rows(call, tmp_path):
    status, out, _ = call("--op", "^sin$", "--backend", "aot_eager", "--dtype", "float32", "--samples", 1)
    assert status == 0, out
    assert "2 of 2 tasks" in out
    assert "cases a CPU minute" in out
    with open_store("r.sqlite") as store:
        run = store.run()
        assert run.complete
        rows = store.cases(run.run_id)
    assert {row.test for row in rows} == {"sweep:operators/sin[float32-static]", "sweep:operators/sin[float32-dynamic]"}
    assert {row.outcome for row in rows} == {"passed"}


@pytest.mark.cc
def test_a_finding_is_saved_and_the_command_fails(call, tmp_path):
    words = ("--op", "^sin$", "--backend", "inductor", "--dtype", "float32", "--sizes", "static", "--samples", 1)
    with replace_lowering(torch.ops.aten.sin.default, lowering_of(torch.ops.aten.cos.default)):
        status, out, _ = call(*words)
    assert status == 1
    assert "WRONG values: sin float32 static inductor" in out
    folder = tmp_path / ".plumbline" / "sweep" / "findings"
    (file,) = folder.glob("wrong-values-sin-*.json")
    assert json.loads(file.read_text())["kind"] == "WRONG"
    assert "torch.sin(a[0])" in file.with_suffix(".py").read_text()
    assert call(*words, "--resume")[0] == 1
    assert call(*words, "--retry")[0] == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--op", "^nothing$"), "no operator matches"),
        (("--op", "("), "regular expression"),
        (("--dtype", "float7"), "unknown dtype"),
        (("--backend", "cuda"), "no backend"),
    ],
)
def test_wrong_requests_are_refused(call, words, expected):
    status, _, err = call(*words)
    assert status == 2
    assert expected in err


def test_sigterm_keeps_the_summary(tmp_path):
    words = [sys.executable, "-m", "plumbline.command", "sweep", "operators", "--backend", "aot_eager"]
    environment = {**os.environ, "PLUMBLINE_DB": str(tmp_path / "r.sqlite"), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True)
    rows = tmp_path / ".plumbline" / "sweep" / "rows.jsonl"
    while process.poll() is None and not (rows.exists() and len(rows.read_text().splitlines()) > 1):
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "(interrupted)" in out
