"""Bad input: one line that says what to do, exit code 4, nothing run, nothing half-written."""

from pathlib import Path

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.pytest_plugin.variants import Variant, select_variants
from support.plugin_runs import PluginRuns

pytest_plugins = ["pytester"]
AVAILABLE = {"torch": ("eager", "aot_eager", "inductor"), "other": ("eager", "inductor")}


def labels(backends: str, compilers: str | None = None, available: dict[str, tuple[str, ...]] = AVAILABLE) -> list[str]:
    return [variant.label for variant in select_variants(backends, compilers, available)]


def test_selection_of_variants() -> None:
    assert labels("all") == ["torch:eager", "torch:aot_eager", "torch:inductor"]
    assert labels("inductor,eager") == ["torch:eager", "torch:inductor"]
    assert labels("other:eager, eager,eager") == ["torch:eager", "other:eager"]
    assert labels("other:inductor") == ["other:inductor"]
    assert labels("all", "other,torch") == ["other:eager", "other:inductor", *labels("all")]
    assert labels("eager", None, {**AVAILABLE, "plumbline": ("eager",)}) == ["plumbline:eager"]


def test_what_is_below_on_the_ladder() -> None:
    assert [lower.backend for lower in Variant("torch", "inductor").lower()] == ["eager", "aot_eager"]
    assert Variant("torch", "eager").lower() == ()
    assert [lower.backend for lower in Variant("plumbline", "triton").lower()] == ["eager", "aot_eager", "inductor"]


@pytest.mark.parametrize("backends", ["nonsense", "torch:nonsense", "nonsense:eager", "other:aot_eager"])
def test_unknown_names_are_refused_with_what_is_available(backends: str) -> None:
    with pytest.raises(UserError) as caught:
        select_variants(backends, None, AVAILABLE)
    assert "eager" in caught.value.one_line() or "torch" in caught.value.one_line()


BAD = {
    "backend": (["--compile-backends=fast"], "*unknown backend 'fast'*eager, aot_eager, inductor*=all*"),
    "compiler": (["--compile-compilers=gcc"], "*unknown compiler 'gcc'*available: torch*"),
    "boundary": (["--compile-boundary=line"], "*unknown boundary 'line'*module, call, explicit*"),
    "aspect": (["--compile-ignore=values,colour"], "*unknown aspect 'colour'*values, gradients*"),
    "grad": (["--compile-grad=yes"], "*unknown grad 'yes'*auto, off*"),
    "rng": (["--compile-rng=mine"], "*unknown rng 'mine'*eager, native*"),
    "fraction": (["--compile-require=1.5"], "*'1.5' is not a fraction from 0 to 1*"),
    "fraction eats a path": (["--compile-require", "test_it.py"], "*'test_it.py' is not a fraction*"),
    "target": (["--compile-target=no.such.thing"], "*--compile-target*no.such.thing*"),
    "target name": (["--compile-target=json.nothing"], "*--compile-target*json.nothing*"),
    "target value": (["--compile-target=math.pi"], "*--compile-target*math.pi*"),
    "target raises": (["--compile-target=broken_module.f"], "*--compile-target*ValueError: boom*"),
    "database": (["--compile-db=folder"], "*the database is a directory*"),
    "not a database": (["--compile-db=text.txt"], "*not an SQLite database*"),
    "database url": (["--compile-db=postgresql+nodriver://x/y"], "*driver*"),
    "report": (["--compile-report=text.txt"], "*the report directory is a file*"),
    "report below a file": (["--compile-report=text.txt/deep"], "*text.txt/deep*"),
    "unwritable report": (["--compile-report=/proc/nothing"], "*/proc/nothing*cannot be written*"),
}


@pytest.mark.parametrize(("args", "line"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line_and_nothing_else(runs: PluginRuns, args: list[str], line: str) -> None:
    directory = Path(runs.pytester.path)
    (directory / "folder").mkdir()
    (directory / "text.txt").write_text("no database, and long enough to be looked at: " + "x" * 200)
    (directory / "broken_module.py").write_text("raise ValueError('boom')")
    runs.write("""
def test_it():
    open("ran", "w").close()
""")
    runs.pytester.syspathinsert()
    before = sorted(path.name for path in directory.rglob("*") if "__pycache__" not in str(path))
    result = runs.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [text for text in result.errlines if text.strip()]
    assert len(errors) == 1, errors
    result.stderr.fnmatch_lines([f"ERROR: {line}"])
    assert "Traceback" not in result.stdout.str() + result.stderr.str()
    assert sorted(path.name for path in directory.rglob("*") if "__pycache__" not in str(path)) == before


def test_a_database_of_another_schema_is_refused_and_untouched(runs: PluginRuns) -> None:
    import sqlite3

    with sqlite3.connect("old.db") as connection:
        connection.execute("create table plumbline_meta (schema_version integer)")
        connection.execute("insert into plumbline_meta values (9999)")
    connection.close()
    before = Path("old.db").read_bytes()
    runs.write("def test_it(): pass")
    result = runs.run("--compile-db=old.db")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *schema version 9999*"])
    assert Path("old.db").read_bytes() == before


def test_an_option_without_backends_is_refused(runs: PluginRuns) -> None:
    runs.write("def test_it(): pass")
    result = runs.run("--compile-boundary=call", backends=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --compile-boundary does nothing alone; add --compile-backends=all"])


@pytest.mark.parametrize(
    ("mark", "line"),
    [
        ("compile_ignore('colour')", "*test_it*unknown aspect 'colour'*"),
        ("compile_xfail(backends='eager')", "*unknown argument of compile_xfail 'backends'*did you mean 'backend'?*"),
        ("compile_skip('a', 'b')", "*compile_skip takes a reason and names*"),
    ],
)
def test_bad_marks_are_refused_before_any_test_runs(runs: PluginRuns, mark: str, line: str) -> None:
    runs.write(f"""
@pytest.mark.{mark}
def test_it():
    open("ran", "w").close()
""")
    result = runs.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {line}"])
    assert not Path("ran").exists()


def test_ini_entries_turn_the_plugin_on_and_options_win(runs: PluginRuns) -> None:
    runs.pytester.makeini("""
[pytest]
compile_backends = eager
compile_boundary = explicit
compile_ignore = rng
compile_targets =
    json.dumps
    json:loads
""")
    runs.write("""
def test_it(compiled):
    compiled(planned(lambda: 1))()
""")
    runs.run("--compile-boundary=module", "--compile-target=json.load", backends=None)
    (session,) = runs.sessions
    assert session.boundary == "module"
    assert session.targets == ("json.dumps", "json:loads", "json.load")
    assert session.options.ignore == {"rng"}
    runs.sessions.clear()
    runs.run(backends="none")
    assert not runs.sessions


def test_results_go_to_the_default_database_below_the_root(runs: PluginRuns) -> None:
    runs.write("""
def test_it(compiled):
    compiled(planned(lambda: 1))()
""")
    runs.run("--compile-report=page")
    assert Path(".plumbline/results.sqlite").exists()
    assert "torch:inductor" in Path("page/index.html").read_text()


def test_strict_markers_know_our_marks(runs: PluginRuns) -> None:
    runs.write("""
@pytest.mark.compile_xfail
@pytest.mark.compile_skip
@pytest.mark.compile_ignore("rng")
def test_it():
    pass
""")
    assert runs.run("--strict-markers", backends=None).ret == 0
