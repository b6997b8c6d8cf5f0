"""The command line as a user meets it: exit status, stdout, one line on stderr."""

import json
import os
import subprocess
import sys

import pytest

from plumbline import command
from support.made_rows import case_row, run_row, stored, wrong_case


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


def is_one_line(err: str) -> bool:
    return err.startswith("plumbline: ") and err.count("\n") == 1 and "Traceback" not in err


def test_report_prints_the_newest_run(call, tmp_path):
    stored(tmp_path / ".plumbline" / "results.sqlite", [case_row("old")], run=run_row("run-1"))
    stored(tmp_path / ".plumbline" / "results.sqlite", [wrong_case("new")], run=run_row("run-2"))
    status, out, err = call("report")
    assert (status, err) == (0, "")
    assert "new [plumbline:inductor]" in out
    assert "old" in call("report", "--run", "run-1")[1]


@pytest.mark.parametrize(("place", "file"), [("out", "out/index.html"), ("a/b.html", "a/b.html")])
def test_report_writes_a_page(call, tmp_path, place, file):
    stored(tmp_path / "r.sqlite", [case_row("the_test")])
    status, out, _ = call("report", "--db", "r.sqlite", "--html", place)
    assert status == 0
    assert f"page written: {file}" in out
    assert "the_test" in (tmp_path / file).read_text()


def test_the_database_may_come_from_the_environment(call, tmp_path, monkeypatch):
    stored(tmp_path / "env.sqlite", [case_row("from_environment")])
    monkeypatch.setenv("PLUMBLINE_DB", "env.sqlite")
    assert "from_environment" in call("report")[1]


def test_gate_green_and_red(call, tmp_path):
    stored(tmp_path / "main.sqlite", [case_row("a"), case_row("b")])
    stored(tmp_path / "same.sqlite", [case_row("a"), case_row("b")])
    stored(tmp_path / "worse.sqlite", [case_row("a"), wrong_case("b")])
    status, out, err = call("gate", "--db", "same.sqlite", "--baseline", "main.sqlite")
    assert (status, err) == (0, "")
    assert "GREEN" in out
    status, out, _ = call("gate", "--db", "worse.sqlite", "--baseline", "main.sqlite")
    assert status == 1
    assert "REGRESSION b [plumbline:inductor]" in out
    assert "REGRESSION a " not in out


def test_a_baseline_is_written_and_then_held(call, tmp_path):
    stored(tmp_path / "r.sqlite", [case_row("a"), wrong_case("known")])
    status, out, err = call("gate", "--db", "r.sqlite", "--write-baseline", "base.json")
    assert (status, out) == (0, "")
    assert "2 cases" in err
    assert call("gate", "--db", "r.sqlite", "--baseline", "base.json")[0] == 0
    stored(tmp_path / "r.sqlite", [wrong_case("a"), wrong_case("known")], run=run_row("run-2"))
    status, out, _ = call("gate", "--db", "r.sqlite", "--baseline", "base.json", "--json")
    assert status == 1
    changes = [(change["level"], change["case"]) for change in json.loads(out)["changes"]]
    assert changes == [("REGRESSION", "a [plumbline:inductor]"), ("STILL", "known [plumbline:inductor]")]
    assert call("gate", "--db", "r.sqlite", "--baseline", "base.json", "--run", "run-1")[0] == 0


def test_one_database_compares_with_the_run_before(call, tmp_path):
    stored(tmp_path / "r.sqlite", [case_row("a")], run=run_row("run-1"))
    stored(tmp_path / "r.sqlite", [case_row("a", breaks=1)], run=run_row("run-2"))
    status, out, _ = call("gate", "--db", "r.sqlite", "--baseline", "r.sqlite")
    assert status == 1
    assert "graph breaks" in out
    assert call("gate", "--db", "r.sqlite", "--baseline", "r.sqlite", "--baseline-run", "run-2")[0] == 0


def test_another_schema_is_an_invalid_comparison_not_a_usage_error(call, tmp_path):
    stored(tmp_path / "r.sqlite", [case_row()])
    (tmp_path / "base.json").write_text('[{"plumbline_baseline": 99}\n]')
    status, out, err = call("gate", "--db", "r.sqlite", "--baseline", "base.json")
    assert (status, err) == (1, "")
    assert "INVALID" in out
    assert "schema version 99" in out


def test_an_interrupted_run_makes_no_baseline(call, tmp_path):
    stored(tmp_path / "r.sqlite", [case_row()], run=run_row(complete=False))
    status, _, err = call("gate", "--db", "r.sqlite", "--write-baseline", "base.json")
    assert status == 2
    assert is_one_line(err)
    assert not (tmp_path / "base.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["report"],
        ["report", "--db", "text"],
        ["report", "--db", "r.sqlite", "--run", "nonsense"],
        ["report", "--db", "r.sqlite", "--html", "text"],
        ["report", "--db", "nonsense://x"],
        ["report", "--slowest", "many"],
        ["report", "--nonsense"],
        ["nonsense"],
        ["gate", "--db", "r.sqlite"],
        ["gate", "--db", "r.sqlite", "--baseline", "missing.json"],
        ["gate", "--db", "r.sqlite", "--baseline", "text"],
        ["gate", "--db", "r.sqlite", "--baseline", "r.sqlite"],
        ["gate", "--db", "r.sqlite", "--write-baseline", "text/base.json"],
        ["gate", "--baseline"],
    ],
    ids=" ".join,
)
def test_questions_that_cannot_be_answered_are_one_line_and_2(call, tmp_path, words):
    stored(tmp_path / "r.sqlite", [case_row()])
    (tmp_path / "text").write_text("no database")
    before = sorted(os.listdir(tmp_path))
    status, _, err = call(*words)
    assert status == 2
    assert is_one_line(err), err
    assert sorted(os.listdir(tmp_path)) == before


def test_version_and_help(call):
    assert call("--version") == (0, "plumbline 0.1.0\n", "")
    status, out, _ = call("--help")
    assert status == 0
    for name in ("report", "gate", "doctor"):
        assert name in out
        assert call(name, "--help")[0] == 0
    assert "Usage" in call()[1]


def test_a_reader_that_leaves_early_gets_no_traceback(tmp_path):
    place = stored(tmp_path / "r.sqlite", [case_row(f"test_{n}" * 20) for n in range(2000)])
    script = f"{sys.executable} -m plumbline.command report --all --db {place} | head -1"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("run ")
    assert done.stderr == ""


@pytest.fixture
def two_bundles(tmp_path, monkeypatch):
    from plumbline.compiler.base.bundle import Failure, write_bundle
    from plumbline.compiler.base.options import Options

    monkeypatch.setenv("PLUMBLINE_BUNDLE_DIRECTORY", str(tmp_path / "kept"))
    for name, files in (("first", {}), ("second", {"repro.py": "print(1)\n"})):
        failure = Failure("capture", name, "users.py:3", ZeroDivisionError(f"planted in {name}"), files)
        assert write_bundle(failure, Options(bundle_directory=str(tmp_path / "kept")))
    return tmp_path / "kept"


def test_bundles_are_listed_shown_and_deleted(call, two_bundles):
    status, out, err = call("bundles")
    assert (status, err) == (0, "")
    newest, oldest, count = out.splitlines()
    assert "second_capture" in newest
    assert "ZeroDivisionError: planted in second" in newest
    assert "planted in first" in oldest
    assert count == f"2 bundles in {two_bundles}"
    status, out, _ = call("bundles", 1)
    assert status == 0
    assert "users.py:3" in out
    assert out.rstrip().endswith("repro.py")
    assert "repro.py" not in call("bundles", 2)[1]
    assert call("bundles", "--clear")[1] == "2 bundles deleted\n"
    assert call("bundles")[1] == f"0 bundles in {two_bundles}\n"


def test_a_bundle_that_is_not_there(call, two_bundles):
    status, _, err = call("bundles", 3)
    assert status == 2
    assert is_one_line(err)
    assert "there are 2 in" in err


def test_noise_prints_tables_and_writes_files(call, tmp_path):
    (tmp_path / "shifted.py").write_text(
        "import sys\nimport torch\nx = torch.ones(5) / 3\ny = (x + 1e8) - 1e8\nprint(sys.argv[1:])\n", encoding="utf-8"
    )
    status, out, err = call(
        "noise", "shifted.py", "--json", "n.json", "--html", "n.html", "--svg", "n.svg", "--", "--a"
    )
    assert (status, err) == (0, "")
    assert "['--a']" in out
    assert "y: float32[5] keeps 0.0 of 7.2 digits" in out
    outputs = {output["path"]: output for output in json.loads((tmp_path / "n.json").read_text())[0]["outputs"]}
    assert outputs["y"]["digits"] == 0
    assert "<svg" in (tmp_path / "n.html").read_text()
    assert (tmp_path / "n.svg").read_text().startswith("<svg")


def test_noise_tells_what_is_not_there_and_what_the_script_raises(call, tmp_path):
    status, _, err = call("noise", "nowhere.py")
    assert status == 2
    assert is_one_line(err)
    (tmp_path / "failing.py").write_text("raise ValueError('mine')\n", encoding="utf-8")
    status, _, err = call("noise", "failing.py")
    assert status == 1
    assert err.endswith("ValueError: mine\n")
    (tmp_path / "unmeasured.py").write_text(
        "import plumbline\nif 0:\n    plumbline.measure_noise()\n", encoding="utf-8"
    )
    assert "nothing was measured" in call("noise", "unmeasured.py")[1]


def test_progress_in_a_log_is_a_line_now_and_then(monkeypatch, capsys):
    from plumbline import command

    times = iter([0.0, 10.0, 70.0, 70.0, 75.0])
    monkeypatch.setattr(command.time, "monotonic", lambda: next(times))
    show = command._progress_line()
    for line in ("first", "second", "", "third"):
        show(line)
    assert capsys.readouterr().err == "second\n"
