"""The command: rows, files that replay, scripts that stand alone, and one line for every wrong question."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plumbline import command
from plumbline.fuzz import recorded_campaign
from plumbline.fuzz.campaign import CampaignSettings
from plumbline.reports.store import open_store
from support.planted_compilers import PlantedCompiler
from support.planted_faults import FreezingCompiler


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    """Run the command line in this process, in an empty directory; return status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLUMBLINE_DB", raising=False)

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["plumbline", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            command.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


@pytest.fixture
def planted(monkeypatch):
    """Let a planted compiler stand under any name."""

    def plant(compiler: PlantedCompiler) -> None:
        monkeypatch.setattr(recorded_campaign, "find_compiler", lambda name, backend: compiler)

    return plant


def test_a_clean_campaign_leaves_one_passed_row(call, planted, tmp_path):
    planted(PlantedCompiler())
    status, out, err = call("fuzz", "guards", "--examples", 20, "--backend", "eager", "--db", "r.sqlite")
    assert (status, err) == (0, "")
    assert "20 examples" in out
    assert "0 failures" in out
    with open_store("r.sqlite") as store:
        run = store.run()
        assert run.complete
        (row,) = store.cases(run.run_id)
    assert (row.test, row.outcome, row.judged_calls) == ("fuzz:guards", "passed", 20)
    assert list((tmp_path / ".plumbline" / "fuzz").glob("*.json")) == []


def test_a_failure_is_saved_rowed_and_replayed(call, planted, tmp_path):
    planted(FreezingCompiler("SCALE"))
    status, out, _ = call(
        "fuzz", "guards", "--examples", 80, "--backend", "eager", "--save", "found", "--db", "r.sqlite", "--seed", 7
    )
    assert status == 1
    (file,) = sorted(tmp_path.glob("found/wrong-values-*.json"))
    assert f"saved: found/{file.name}" in out
    with open_store("r.sqlite") as store:
        rows = {row.test: row for row in store.cases(store.run().run_id)}
    row = rows[f"fuzz:guards/{file.stem}"]
    assert (row.outcome, row.verdict, row.aspect) == ("failed", "WRONG", "values")
    assert row.user_file.endswith(f"{file.stem}.py")
    assert rows["fuzz:guards"].outcome == "failed"
    assert json.loads(file.read_text())["example"]["slots"][0]["name"] == "global_number"
    status, out, _ = call("fuzz", "--replay", file)
    assert (status, out.split(":")[0]) == (1, "WRONG")
    planted(PlantedCompiler())
    status, out, _ = call("fuzz", "--replay", file)
    assert status == 0
    assert "passes under planted:eager" in out


def test_the_script_of_a_real_stock_fault_stands_alone(call, tmp_path):
    """Stock overlooks a new global of a builtin's name; should a release mend that, plant another fault here."""
    example = {
        "slots": [{"name": "global_hides_a_builtin", "way": 0}],
        "events": [{"slot": "", "value": 0}, {"slot": "global_hides_a_builtin", "value": 1}, {"slot": "", "value": 0}],
    }
    saved = {
        "plumbline_fuzz": 1,
        "mode": "guards",
        "compiler": "torch",
        "backend": "eager",
        "signature": "",
        "sentence": "",
        "example": example,
    }
    Path("hidden.json").write_text(json.dumps(saved))
    status, out, _ = call("fuzz", "--replay", "hidden.json")
    assert status == 1, out
    mode = recorded_campaign.find_fuzzer("guards")
    scenario = mode.read(example)
    tried = mode.attempt(scenario, recorded_campaign.find_compiler("torch", "eager"), "eager")
    script = tmp_path / "hidden.py"
    script.write_text(mode.script(scenario, "torch", "eager", tried.verdict))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "WRONG" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing",), "unknown fuzzer 'nothing'; choose from transforms, guards"),
        ((), "no fuzzer named"),
        (("guards", "--compiler", "gcc"), "unknown compiler 'gcc'"),
        (("guards", "--compiler", "torch", "--backend", "llvm"), "has no backend 'llvm'"),
        (("guards", "--compiler", "torch", "--save", "a_file"), "choose another place"),
        (("guards", "--examples", "0"), "--examples"),
        (("--replay", "missing.json"), "cannot read the saved failure"),
        (("--replay", "a_file"), "not a saved failure"),
        (("--replay", "other.json"), "not a saved failure of this version"),
        (("--replay", "broken.json"), "not a saved Scenario"),
        (("guards", "--compiler", "torch", "--db", "."), "the database is a directory"),
    ],
)
def test_a_wrong_question_is_one_line_and_status_2(call, words, said):
    Path("a_file").write_text("not json")
    Path("other.json").write_text("{}")
    broken = {"plumbline_fuzz": 1, "mode": "guards", "compiler": "torch", "backend": "eager", "signature": ""}
    Path("broken.json").write_text(json.dumps({**broken, "example": {"slots": 3}}))
    status, out, err = call("fuzz", *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.startswith("plumbline: ")
    assert err.count("\n") == 1


def test_an_interrupted_campaign_is_an_unfinished_run(call, planted):
    class Interrupted(PlantedCompiler):
        def compile(self, target, backend, request, *, rng):
            raise KeyboardInterrupt

    planted(Interrupted())
    status, out, _ = call("fuzz", "guards", "--backend", "eager", "--db", "r.sqlite")
    assert status == 130
    assert "interrupted" in out
    with open_store("r.sqlite") as store:
        assert not store.run().complete


def test_saving_is_possible_before_anything_runs(tmp_path, planted):
    planted(PlantedCompiler())
    report = recorded_campaign.run_recorded(
        "guards",
        "planted",
        "eager",
        CampaignSettings(1, folder=tmp_path / "new" / "deep"),
        str(tmp_path / "r.sqlite"),
        print,
    )
    assert report.examples == 1
    assert (tmp_path / "new" / "deep").is_dir()


def test_a_terminated_campaign_says_what_it_did_and_goes_on_later(tmp_path):
    """SIGTERM is what `timeout` sends."""
    words = ["fuzz", "guards", "--backend", "eager", "--seed", "4", "--db", "r.sqlite", "--save", "found"]
    program = f"import sys; sys.argv = {['plumbline', *words]}; from plumbline.command import main; main()"
    process = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    state = tmp_path / "found" / "campaign-guards-plumbline-eager-4.state"
    while process.poll() is None and not state.exists():
        time.sleep(0.2)
    process.terminate()
    out, _ = process.communicate(timeout=120)
    assert process.returncode in (130, 0, 1)
    assert " examples in " in out
    before = json.loads(state.read_text())
    report = recorded_campaign.run_recorded(
        "guards",
        "plumbline",
        "eager",
        CampaignSettings(before["examples"] + 1, seed=4, folder=tmp_path / "found"),
        str(tmp_path / "r.sqlite"),
        print,
        resume=True,
    )
    assert report.next_number >= before["next_number"]
    assert report.examples == before["examples"] + 1
