"""What adopters ask of a run: limits, known failures, profiles, and results where CI looks for them."""

import xml.etree.ElementTree as ET

import pytest

from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]


def rows(runs: PluginRuns) -> dict[str, tuple[str, str]]:
    from plumbline.reports.store import open_store

    with open_store(str(runs.pytester.path / ".plumbline" / "results.sqlite"), write=False) as store:
        return {f"{c.test} {c.backend}": (c.outcome, c.verdict) for c in store.cases(store.run().run_id)}


ONE_WRONG = """
def test_right(compiled):
    compiled(planned(lambda: 1))()

@pytest.mark.parametrize("size", [1, 2])
def test_wrong(size, compiled):
    compiled(planned(lambda: size, eager="WRONG" if size == 2 else "EQUAL"))()

def test_nothing():
    pass
"""


def test_junit_has_verdicts_and_a_skip_for_what_judged_nothing(runs: PluginRuns) -> None:
    runs.write(ONE_WRONG)
    runs.run("--junitxml=out.xml", backends="eager")
    suite = ET.parse(runs.pytester.path / "out.xml").getroot().find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("skipped"), suite.get("failures")) == ("4", "1", "1")
    cases = {str(case.get("name")): case for case in suite.iter("testcase")}
    found = {p.get("name"): p.get("value") for p in cases["test_wrong[2-torch:eager]"].iter("property")}
    assert found["plumbline.verdict"] == "WRONG"
    assert found["plumbline.stage"] == "eager"
    assert found["plumbline.margin"] == "25"
    assert {"plumbline.graphs", "plumbline.breaks", "plumbline.recompiles"} <= found.keys()
    skipped = cases["test_nothing[torch:eager]"].find("skipped")
    assert skipped is not None
    assert str(skipped.get("message")).startswith("VACUOUS: nothing judged")


def test_annotations_in_actions_alone(runs: PluginRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.write(ONE_WRONG)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert "::error" not in runs.run(backends="eager").stdout.str()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = runs.run(backends="eager")
    result.stdout.fnmatch_lines(
        ["::error file=test_it.py,line=9,title=WRONG under torch%3Aeager*::test_it.py::test_wrong*"]
    )


def test_known_failures_are_written_expected_and_strict(runs: PluginRuns) -> None:
    runs.write(ONE_WRONG)
    known = ("--compile-known=known.toml",)
    missing = runs.run(*known, backends="eager")
    missing.stderr.fnmatch_lines(["*no such file of known failures*--compile-update-known*"])
    assert outcomes(runs.run(*known, "--compile-update-known", backends="eager"))["failed"] == 1
    file = runs.pytester.path / "known.toml"
    assert file.read_text().count("[[known]]") == 1
    assert 'test = "test_it.py::test_wrong[2]"\nunder = "torch:eager"\nverdict = "WRONG"' in file.read_text()
    assert outcomes(runs.run(*known, backends="eager")) == {"passed": 2, "xfailed": 1, "vacuous": 1}
    runs.write(ONE_WRONG.replace('"WRONG"', '"EQUAL"'))
    result = runs.run(*known, backends="eager")
    assert outcomes(result)["failed"] == 1
    assert "take its entry out of known.toml" in result.stdout.str()
    runs.run(*known, "--compile-update-known", "-k", "test_right", backends="eager")
    assert file.read_text().count("[[known]]") == 1, "what did not run stays"
    runs.run(*known, "--compile-update-known", backends="eager")
    assert "[[known]]" not in file.read_text()


def test_a_test_that_hangs_is_a_crash_and_the_run_goes_on(runs: PluginRuns) -> None:
    runs.write("""
import time

def test_hangs():
    while True:
        try:
            time.sleep(60)
        except Exception:
            pass

def test_after(compiled):
    compiled(planned(lambda: 1))()
""")
    result = runs.run("--compile-timeout=0.3", backends="eager")
    assert outcomes(result) == {"failed": 1, "passed": 1}
    result.stdout.fnmatch_lines(["E   CRASH at eager: took longer than --compile-timeout=0.3"])
    assert rows(runs)["test_it.py::test_hangs eager"] == ("failed", "CRASH")


def test_a_native_crash_fails_its_test_alone(runs: PluginRuns) -> None:
    pytest.importorskip("xdist", reason="--compile-isolate runs tests in its workers")
    runs.pytester.makepyfile(
        test_it="""
import os, signal

def test_before():
    pass

def test_crashes():
    os.kill(os.getpid(), signal.SIGSEGV)

def test_killed():
    os.kill(os.getpid(), signal.SIGKILL)

def test_after():
    pass
"""
    )
    result = runs.pytester.runpytest_subprocess(
        "-p", "no:randomly", "-p", "no:cacheprovider", "--compile-backends=eager", "--compile-isolate"
    )
    assert outcomes(result) == {"failed": 2, "vacuous": 2}
    result.stdout.fnmatch_lines(["CRASH at eager: Segmentation fault*", "*File *test_it.py*line 7 in test_crashes"])
    result.stdout.fnmatch_lines(["CRASH at eager: the process ended without a word*"])
    assert rows(runs)["test_it.py::test_crashes eager"] == ("failed", "CRASH")
    assert len(rows(runs)) == 4


@pytest.mark.parametrize(
    ("mark", "ending"),
    [
        ("compile_budget(graphs=0)", {"failed": 1}),
        ("compile_budget(graphs=1, breaks=0, recompiles=0, seconds=5)", {"passed": 1}),
        ("compile_budget(graphs=0, backend='inductor')", {"passed": 1}),
        ("compile_xfail(torch='<1.0')", {"passed": 1}),
        ("compile_xfail(torch='>=2.0')", {"failed": 1}),
        ("compile_skip(torch='>=2.0')", {"skipped": 1}),
    ],
)
def test_marks(runs: PluginRuns, mark: str, ending: dict[str, int]) -> None:
    runs.write(f"@pytest.mark.{mark}\ndef test_it(compiled):\n    compiled(planned(lambda: 1))()\n")
    result = runs.run("--strict-markers", backends="eager")
    assert outcomes(result) == ending
    if "graphs=0" in mark and "failed" in ending:
        assert "over its compile_budget: 1 graphs, at most 0" in result.stdout.str()


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("compile_budget()", "takes limits by name"),
        ("compile_budget(breaks=-1)", "has breaks=-1"),
        ("compile_budget(break_=1, graphs=1)", "did you mean 'breaks'"),
        ("compile_xfail(torch='two')", "names no versions of torch"),
        ("compile_xfail(backends='eager')", "did you mean 'backend'"),
    ],
)
def test_marks_that_are_wrong(runs: PluginRuns, mark: str, said: str) -> None:
    runs.write(f"@pytest.mark.{mark}\ndef test_it():\n    pass\n")
    result = runs.run(backends="eager")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()


PROFILES = """
[pytest]
compile_profiles =
    pr: --compile-backends=eager --compile-grad=off
    nightly: --compile-backends=all --compile-require
    broken: --compile-backend=all
"""


def test_profiles_of_the_ini_file(runs: PluginRuns) -> None:
    runs.write(ONE_WRONG)
    runs.pytester.makefile(".ini", pytest=PROFILES)
    assert sum(outcomes(runs.run(backends=None)).values()) == 4
    assert not runs.sessions
    assert outcomes(runs.run("--compile-profile=pr", backends=None)) == {"passed": 2, "failed": 1, "vacuous": 1}
    assert not runs.sessions[-1].options.gradients
    assert sum(outcomes(runs.run("--compile-profile=nightly", backends=None)).values()) == 12
    assert sum(outcomes(runs.run("--compile-profile=nightly", backends="eager")).values()) == 4, "typed ones win"
    for name, said in (("prr", "did you mean 'pr'"), ("broken", "did you mean '--compile-backends'")):
        result = runs.run(f"--compile-profile={name}", "--compile-backends=eager", backends=None)
        assert said in result.stderr.str()


def test_the_requests_of_a_run_reach_the_session(runs: PluginRuns) -> None:
    runs.write(ONE_WRONG)
    runs.run("--compile-dynamic=yes", "--compile-mode=max-autotune", backends="eager")
    assert (runs.sessions[-1].request.dynamic, runs.sessions[-1].request.mode) == (True, "max-autotune")


def test_the_summary_names_breaks_and_margins() -> None:
    from plumbline.pytest_plugin.reporting.compile_summary import compile_lines
    from plumbline.reports.rows import CaseRow

    broken = {"kind": "graph_break", "reason": "print: writes", "where": "/x/model.py:3"}
    cases = [
        CaseRow(
            run_id="", case_id="", test=f"t{n}", compiler="c", backend="b", outcome="passed", events=(broken,) * n,
            margin=0.1 * n, compile_seconds=2.0 * n,
        )
        for n in range(3)
    ]  # fmt: skip
    text = "\n".join(line for line, _ in compile_lines(cases))
    assert "2 x print: writes (/x/model.py:3)" in text
    assert text.index("0.20  t2") < text.index("0.10  t1")
    assert "4.0 s  t2 [c:b]" in text
