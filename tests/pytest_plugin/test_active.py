"""The outcomes of judged tests, with planned verdicts."""

import pytest

from support.plugin_runs import PluginRuns, outcomes

pytest_plugins = ["pytester"]


def test_a_wrong_call_fails_a_test_that_would_pass(runs: PluginRuns) -> None:
    runs.write("""
def test_it(compiled):
    compiled(planned(lambda: 1, aot_eager="WRONG", inductor="WRONG"))()
""")
    result = runs.run("-v")
    assert outcomes(result) == {"passed": 1, "failed": 2}
    result.stdout.fnmatch_lines(
        [
            "E   WRONG at aot_eager: output*0*: planned WRONG",
            "*error    0.25, 25 times its scale of 0.01",
            "*stage    first wrong at aot_eager (eager is right)",
            "*test_it.py:5",
            "*>    5     compiled(planned(lambda: 1, aot_eager=*",
            "*WRONG gradients: gradient of weight: also planned",
            "*rerun: pytest 'test_it.py::test_it*torch:aot_eager*' --compile-backends=torch:aot_eager",
            "E   WRONG at inductor (first wrong at aot_eager): *",
            "FAILED test_it.py::test_it*torch:aot_eager* - WRONG at aot_eager: output*0*: planned WRONG",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "judged_run" not in result.stdout.str()


@pytest.mark.parametrize("kind", ["WRONG", "CRASH", "NONDETERMINISTIC"])
def test_no_way_of_ending_a_test_swallows_a_failing_verdict(runs: PluginRuns, kind: str) -> None:
    runs.write(f"""
wrong = planned(lambda: 1, eager="{kind}")

def boom():
    raise ValueError

def test_raises(compiled):
    with pytest.raises(ValueError):
        compiled(wrong)()
        boom()

def test_except(compiled):
    try:
        compiled(wrong)()
        raise ValueError
    except BaseException:
        pass

@pytest.mark.xfail
def test_mark(compiled):
    compiled(wrong)()
    assert False

@pytest.mark.xfail(strict=True, raises=BaseException)
def test_strict(compiled):
    compiled(wrong)()

def test_imperative(compiled):
    compiled(wrong)()
    pytest.xfail("known")

def test_skip(compiled):
    compiled(wrong)()
    pytest.skip("later")
""")
    result = runs.run(backends="eager")
    assert outcomes(result) == {"failed": 6}
    assert result.stdout.str().count(f"E   {kind} at eager:") == 6


def test_the_tests_own_failure_stands_below_ours(runs: PluginRuns) -> None:
    runs.write("""
def test_it(compiled):
    value = compiled(planned(lambda: 1, value=2, eager="WRONG"))()
    assert value == 1
""")
    result = runs.run(backends="eager")
    result.stdout.fnmatch_lines(
        [
            "E   WRONG at eager*",
            "The test itself ended with this:",
            "*assert value == 1",
            "E * assert 2 == 1",
            "FAILED * - WRONG at eager*",
        ]
    )


def test_a_failure_whose_traceback_was_taken_is_reported_all_the_same(runs: PluginRuns) -> None:
    runs.write("""
import sys

def test_it(compiled):
    if sys.exception() is not None:  # the stage is being looked for: the first run has ended with this
        sys.exception().__traceback__ = None
    assert compiled(planned(lambda: 1, value=2, inductor="WRONG"))() == 1
""")
    result = runs.run(backends="inductor")
    assert outcomes(result) == {"failed": 1}
    result.stdout.fnmatch_lines(
        ["E   WRONG at inductor*", "The test itself ended with this:", "*AssertionError: assert 2 == 1*"]
    )


def test_expected_failures_still_work_when_compiled_code_is_right(runs: PluginRuns) -> None:
    runs.write("""
@pytest.mark.xfail
def test_mark(compiled):
    compiled(planned(lambda: 1))()
    assert False

def test_raises(compiled):
    with pytest.raises(ZeroDivisionError):
        compiled(planned(lambda: 1 / 0))()
    compiled(planned(lambda: 1))()

def test_skip(compiled):
    pytest.skip("later")
""")
    assert outcomes(runs.run()) == {"passed": 3, "xfailed": 3, "skipped": 3}


def test_a_too_tight_tolerance_is_sensitive_and_fails_as_the_test_does(runs: PluginRuns) -> None:
    runs.write("""
def test_it(compiled):
    assert compiled(planned(lambda: 1.0, value=1.001, inductor="NOISE"))() == 1.0
""")
    result = runs.run(backends="inductor")
    assert outcomes(result) == {"failed": 1}
    result.stdout.fnmatch_lines(["*tolerance is tighter*", "FAILED * - SENSITIVE at inductor: *assert 1.001 == 1.0"])
    assert [session.mode for session in runs.sessions] == ["judge", "reference"]


def test_a_test_that_fails_without_us_fails_the_same_way(runs: PluginRuns) -> None:
    runs.write("""
def test_it(compiled):
    assert compiled(planned(lambda: 1))() == 2
""")
    result = runs.run(backends="inductor")
    result.stdout.fnmatch_lines(["E * assert 1 == 2", "*EAGER_FAILED*", "FAILED * - assert 1 == 2"])


def test_a_test_that_compiles_nothing_is_vacuous_and_not_passed(runs: PluginRuns) -> None:
    runs.write("""
def test_it():
    pass
""")
    result = runs.run("-v")
    assert outcomes(result) == {"vacuous": 3}
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*test_it*torch:eager* VACUOUS*", "nothing was compiled in 1 test: *"])


def test_require_fails_vacuous_tests_and_says_what_to_do(runs: PluginRuns) -> None:
    runs.write("""
def test_it():
    pass
""")
    result = runs.run("--compile-require", backends="eager")
    assert outcomes(result) == {"failed": 1}
    result.stdout.fnmatch_lines(["E   VACUOUS at eager: nothing was compiled", "*--compile-boundary=call*"])


@pytest.mark.parametrize(("share", "ret"), [("0.5", 0), ("0.6", 1)])
def test_require_a_share_judges_the_run(runs: PluginRuns, share: str, ret: int) -> None:
    runs.write("""
def test_empty():
    pass

def test_full(compiled):
    compiled(planned(lambda: 1))()
""")
    result = runs.run(f"--compile-require={share}", backends="eager")
    assert outcomes(result) == {"passed": 1, "vacuous": 1}
    assert result.ret == ret
    result.stdout.fnmatch_lines([f"50% of the tests compiled something, {float(share):.0%} are required"])


MARKED = """
@pytest.mark.compile_xfail("bug 7", backend="inductor")
def test_known(compiled):
    compiled(planned(lambda: 1, inductor="WRONG"))()

@pytest.mark.compile_xfail(backend=["aot_eager", "inductor"], reason="bug 8")
def test_fixed(compiled):
    compiled(planned(lambda: 1))()

@pytest.mark.compile_xfail("bug 9", strict=False)
def test_perhaps(compiled):
    compiled(planned(lambda: 1))()

@pytest.mark.compile_skip("too slow", backend="inductor")
def test_slow(compiled):
    compiled(planned(lambda: 1))()
"""


def test_compile_xfail_and_compile_skip(runs: PluginRuns) -> None:
    runs.write(MARKED)
    result = runs.run("-v", "-rxXs")
    assert outcomes(result) == {"passed": 5, "xfailed": 1, "failed": 2, "xpassed": 3, "skipped": 1}
    result.stdout.fnmatch_lines(
        [
            "*test_known*torch:inductor* XFAIL (bug 7)*",
            "*test_slow*torch:inductor* SKIPPED (too slow)*",
            "E   *XPASS(strict)* bug 8: compiled code is right (EQUAL) at aot_eager",
        ]
    )


def test_compile_ignore_reaches_the_judge_with_the_option(runs: PluginRuns) -> None:
    runs.write("""
@pytest.mark.compile_ignore("metadata", "aliasing")
def test_it(compiled):
    compiled(planned(lambda: 1))()
""")
    runs.run("--compile-ignore=rng", "--compile-grad=off", "--compile-rng=native", backends="eager")
    (session,) = runs.sessions
    assert session.options.ignore == {"metadata", "aliasing", "rng"}
    assert not session.options.gradients
    assert session.options.rng == "native"


def test_the_stage_is_searched_when_lower_backends_did_not_run(runs: PluginRuns) -> None:
    runs.write("""
def test_it(compiled):
    print("once")
    compiled(planned(lambda: 1, aot_eager="WRONG", inductor="WRONG"))()
""")
    result = runs.run(backends="inductor")
    result.stdout.fnmatch_lines(["E   WRONG at inductor (first wrong at aot_eager)*"])
    assert result.stdout.str().count("once\n") == 1  # the re-runs are silent
    assert [session.variant.backend for session in runs.sessions] == ["inductor", "eager", "aot_eager"]


def test_the_stage_is_known_without_a_re_run_when_lower_backends_ran(runs: PluginRuns) -> None:
    runs.write("""
def test_it(compiled):
    compiled(planned(lambda: 1, inductor="WRONG"))()
""")
    runs.run()
    assert len(runs.sessions) == 3


def test_x_stops_at_a_verdict_and_lf_repeats_it(runs: PluginRuns) -> None:
    runs.write("""
def test_a(compiled):
    compiled(planned(lambda: 1, aot_eager="WRONG"))()

def test_b(compiled):
    compiled(planned(lambda: 1))()
""")
    plain = ("-p", "no:randomly")
    assert outcomes(runs.run("-x", *plain, quiet=False)) == {"passed": 1, "failed": 1}
    again = runs.run("--lf", "-v", *plain, quiet=False)
    assert outcomes(again) == {"failed": 1, "deselected": 2}
    again.stdout.fnmatch_lines(["*test_a?torch:aot_eager? FAILED*"])


def test_xdist_tells_what_a_serial_run_tells(runs: PluginRuns) -> None:
    runs.pytester.makeconftest("""
import pytest
from support.fake_judge import COMPILERS, FakeSession

@pytest.fixture(autouse=True, scope="session")
def fake_judge():  # a worker is another process: the patches of this one do not reach it
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plumbline.pytest_plugin.judged_run.open_session", FakeSession)
        yield
""")
    runs.write("""
def test_wrong(compiled):
    compiled(planned(lambda: 1, aot_eager="WRONG", inductor="WRONG"))()

def test_vacuous():
    pass

def test_own(compiled):
    assert compiled(planned(lambda: 1))() == 2

@pytest.mark.compile_xfail("known")
def test_known(compiled):
    compiled(planned(lambda: 1, eager="WRONG"))()
""")

    def told(*args: str) -> tuple[dict[str, int], list[str]]:
        result = runs.run("-rA", *args)
        lines = [line for line in result.outlines if line.startswith(("FAILED", "XFAIL", "E   ", "torch:"))]
        return outcomes(result), sorted(line for line in lines if " at 0x" not in line)

    torch = "--compile-compilers=torch"
    assert told("-n1", torch) == told(torch)


def test_pdb_lands_in_the_users_frame(runs: PluginRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    runs.write("""
def test_it(compiled):
    mine = 42
    compiled(planned(lambda: 1, eager="WRONG"))()
""")
    monkeypatch.setattr("sys.stdin", __import__("io").StringIO("p mine + 1\nq\n"))
    result = runs.run("--pdb", "-s", backends="eager")
    text = result.stdout.str()
    assert "-> compiled(planned(lambda: 1" in text, text
    assert "43" in text


def test_warnings_as_errors_change_nothing(runs: PluginRuns) -> None:
    runs.write("""
def test_it(compiled):
    compiled(planned(lambda: 1, inductor="WRONG"))()
""")
    assert outcomes(runs.run("-W", "error")) == {"passed": 2, "failed": 1}


def test_setup_and_teardown_errors_stay_errors(runs: PluginRuns) -> None:
    runs.write("""
@pytest.fixture
def broken():
    raise ValueError

@pytest.fixture
def late():
    yield
    raise ValueError

def test_a(broken):
    pass

def test_b(late, compiled):
    compiled(planned(lambda: 1))()
""")
    result = runs.run(backends="eager")
    assert outcomes(result) == {"errors": 2, "passed": 1}
    result.stdout.fnmatch_lines(["torch:eager *2*"])
