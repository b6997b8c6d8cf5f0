"""What README.md and the other documents show is run: Python blocks, and console commands with their output."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plumbline.compiler.base.options import describe_options
from plumbline.oracle.comparison.aspects import aspect_names
from plumbline.oracle.verdict import VerdictKind
from plumbline.pytest_plugin.settings import SETTINGS
from support.document_blocks import EMPTY_DIRECTORY, blocks_of
from support.other_plugins import WITHOUT_OTHERS

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").glob("*.md"),
        ROOT / "benchmarks" / "README.md",
        ROOT / "tests" / "README.md",
    ]
)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def documents_with_commands() -> list:
    """Return a parameter for each document with console blocks that are to be run."""
    cases = []
    for path in DOCUMENTS:
        blocks = [b for b in blocks_of(path.read_text(encoding="utf-8")) if b.language == "console" and not b.not_run]
        marks = [pytest.mark.slow, pytest.mark.cc] if any(b.status for b in blocks) else []  # a failure is compiled
        if blocks:
            cases.append(pytest.param(path, id=path.relative_to(ROOT).as_posix(), marks=marks))
    return cases


def run_command(command: str, home: Path, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command as a user would, with this environment's programs first.

    folder: where it runs; results go to `home` instead of the tree.
    """
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "PYTEST_ADDOPTS": " ".join(WITHOUT_OTHERS),  # this environment has plugins that a reader of the page does not
        "HOME": str(home),
    }
    if folder == ROOT:
        environment["PLUMBLINE_DB"] = str(home / "results.sqlite")
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=900,
        check=False,
    )


def matches(expected: str, actual: str) -> bool:
    return doctest.OutputChecker().check_output(expected, actual, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


@pytest.mark.parametrize(
    "path",
    [path for path in DOCUMENTS if "```python" in path.read_text(encoding="utf-8")],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_python_blocks_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """Blocks of one document share their names; a block marked `output` is what was printed since the last one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("plumbline.compiler.backends._USERS", {})  # what a document registers is its own
    names: dict[str, object] = {"__name__": "document"}
    for block in blocks_of(path.read_text(encoding="utf-8")):
        if block.language == "output":
            printed = capsys.readouterr().out
            assert matches(block.text, printed), printed
        if block.file:
            block.save(tmp_path)
        if block.language != "python" or block.not_run or block.file:
            continue
        file = tmp_path / f"block_{block.line}.py"  # a real file: what is printed may quote its lines
        file.write_text("\n" * (block.line - 1) + block.text, encoding="utf-8")
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), names)


@pytest.mark.parametrize("path", documents_with_commands())
def test_console_blocks_run(path: Path, tmp_path: Path):
    document = path.read_text(encoding="utf-8")
    folder = ROOT
    if EMPTY_DIRECTORY in document:
        folder = tmp_path / "empty"
        folder.mkdir()
    for block in blocks_of(document):
        if block.file:
            block.save(folder)
        if block.language != "console" or block.not_run:
            continue
        for command, expected in block.commands():
            result = run_command(command, tmp_path, folder)
            assert result.returncode == block.status, f"$ {command}\n{result.stdout}"
            assert not expected or matches(expected, result.stdout), f"$ {command}\n{result.stdout}"


def test_files_are_saved_in_empty_directories_only():
    """A document that runs in the root of the tree must not write there."""
    documents = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}
    with_files = {name for name, text in documents.items() if any(block.file for block in blocks_of(text))}
    assert {name for name in with_files if EMPTY_DIRECTORY not in documents[name]} == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path):
    missing = [link for link in LINK.findall(path.read_text(encoding="utf-8")) if not (path.parent / link).exists()]
    assert not missing


def test_blocks_are_found_and_told_apart():
    document = (
        "# x\n\n```python\na = 1\n```\n\n<!-- not run: slow -->\n```console\n$ one \\\n    two\nout\n$ three\n```\n"
        "<!-- exits 2 -->\n```console\n$ false\n```\n<!-- file: a/b.py -->\n```python\nb = 2\n```\n"
    )
    python, console, failing, saved = blocks_of(document)
    assert (python.language, python.text, python.line, python.not_run) == ("python", "a = 1\n", 4, "")
    assert console.not_run == "slow"
    assert console.commands() == [("one      two", "out\n"), ("three", "")]
    assert (console.status, failing.status, failing.not_run) == (0, 2, "")
    assert (saved.file, python.file) == ("a/b.py", "")


def test_block_is_saved_under_its_name(tmp_path: Path):
    (block,) = blocks_of("<!-- file: a/b.py -->\n```python\nb = 2\n```\n")
    block.save(tmp_path)
    assert (tmp_path / "a" / "b.py").read_text(encoding="utf-8") == "b = 2\n"


def test_wrong_output_is_seen():
    assert matches("a ... c\n", "a b c\n")
    assert not matches("a ... d\n", "a b c\n")


def test_command_runs_in_the_root(tmp_path: Path):
    assert "pyproject.toml" in run_command("ls", tmp_path).stdout
    assert run_command("false", tmp_path).returncode == 1
    assert run_command("ls", tmp_path, tmp_path).stdout == ""


# --- the tables name everything there is ------------------------------------------------------------------------


def table_names(document: str) -> set[str]:
    """Return what stands in backticks, up to `=` or `[`, in the first two cells of the document's table rows."""
    rows = [line for line in document.splitlines() if line.startswith("| `")]
    cells = [cell for row in rows for cell in re.split(r"(?<!\\)\|", row)[1:3]]
    return {name for cell in cells for name in re.findall(r"`([\w-]+)", cell)}


def documented_names() -> set[str]:
    """Return the names in the tables of the README and of the page on configuration."""
    pages = (ROOT / "README.md", ROOT / "docs" / "configuration.md")
    return set().union(*(table_names(page.read_text(encoding="utf-8")) for page in pages))


def test_every_option_of_the_plugin_has_a_row():
    names = {name for setting in SETTINGS for name in (setting.option, setting.ini_name)}
    assert names - documented_names() == set()


def test_every_verdict_has_a_row():
    assert {kind.value for kind in VerdictKind} - documented_names() == set()


def test_every_aspect_has_a_row():
    assert set(aspect_names()) - documented_names() == set()


def test_every_option_of_the_compiler_has_a_row():
    names = {name for option, _, _ in describe_options() for name in (option, f"PLUMBLINE_{option.upper()}")}
    assert names - documented_names() == set()


def test_every_row_of_the_compiler_is_an_option():
    """A row whose option is gone is seen; other variables are listed apart, by who reads them."""
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = page[page.index("## Options of the compiler") : page.index("## Other environment variables")]
    names = {name for name in table_names(section) if name.islower()}
    assert names == {option for option, _, _ in describe_options()}


def test_names_in_text_are_not_rows():
    assert table_names("`--a` is an option\n\n| `--b=X\\|Y` | `c_d` | `e` |\n|---|---|---|\n") == {"--b", "c_d"}


def test_every_benchmark_has_its_row():
    page = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "benchmarks").glob("*.py")}
    assert set(re.findall(r"^\| `(benchmarks/\w+\.py)` \|", page, re.M)) == files
