"""Every path, file and name that the documents and the docstrings and comments of the product mention exists."""

import re
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from plumbline.compiler.base.options import describe_options
from plumbline.pytest_plugin.settings import SETTINGS
from support.house_rules import Source, exceptions, files_of, sources_of
from support.mentions import (
    Text,
    ends_of_paths,
    missing_files,
    missing_names,
    missing_paths,
    prose_of,
    prose_of_document,
    words_of_code,
    words_of_modules,
    words_of_others,
)

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(path.relative_to(ROOT).as_posix() for path in files_of(ROOT) if path.suffix == ".md")


@cache
def files() -> tuple[str, ...]:
    return tuple(path.relative_to(ROOT).as_posix() for path in files_of(ROOT))


@cache
def known_ends() -> frozenset[str]:
    return ends_of_paths((*files(), *foreign()))


@cache
def sources() -> tuple[Source, ...]:
    return tuple(sources_of(ROOT))


@cache
def known_words() -> frozenset[str]:
    told = [source for source in sources() if source.path != "tests/test_mentions.py"]  # the lies below are in it
    words = words_of_code(told) | words_of_others() | foreign()
    for file in files():
        words.update(re.findall(r"\w+", file))
        if file.endswith((".toml", ".ini", ".css", ".js", ".c")) or file == "run":
            words.update(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8")))
    words.update(f"PLUMBLINE_{name.upper()}" for name, _, _ in describe_options())
    words.update(setting.ini_name for setting in SETTINGS)
    return frozenset(words)


@cache
def known_modules() -> dict[str, set[str]]:
    return words_of_modules(sources())


@cache
def foreign() -> frozenset[str]:
    return frozenset(name for entry in exceptions(ROOT, "foreign_names") for name in entry["names"])


def complaints_about(prose: Text, *, files_too: bool) -> list[str]:
    """Return what prose says of the tree and is not so; files_too: files named without the folder they lie in."""
    complaints = [
        *missing_paths(prose, ROOT, foreign()),
        *missing_names(prose, known_words(), known_modules()),
    ]
    if files_too:
        complaints += missing_files(prose, known_ends())
    return complaints


@cache
def product_prose() -> tuple[Text, ...]:
    return tuple(prose for source in sources() if source.top_folder for prose in prose_of(source))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_a_document_names_exists(document: str):
    prose = prose_of_document(document, (ROOT / document).read_text(encoding="utf-8"))
    assert complaints_about(prose, files_too=False) == []


def test_what_docstrings_and_comments_name_exists():
    complaints = [complaint for prose in product_prose() for complaint in complaints_about(prose, files_too=True)]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize(
    "lie",
    [
        "see tests/oracle/test_nowhere.py",
        "the folder `compiler/nowhere/`",
        "`tests/nowhere/<number>_<words>.py`",
        "done in `nowhere_to_be_seen`",
        "done by `api.nowhere_to_be_seen()`",
        "done by `api.render_page`",
        "done by `plumbline.api.render_page`",
        "see nowhere_at_all.py",
        "see reports/api.py",
    ],
)
def test_a_lie_is_seen(lie: str):
    assert complaints_about(Text("x.md", lie), files_too=True) != []


@pytest.mark.parametrize(
    "truth",
    [
        "`compiler/api.py`, tests/README.md; `tests/programs/test_<feature>.py`, `compiler/frontend/opcodes/*.py`",
        "`api.compile`, `plumbline.compile`, `page`, `torch.compile()`, `PLUMBLINE_LOGS`, gate.py and reports/gate.py",
        "`x + 1`, `--compile-db=PLACE`, https://example.org/tests/nowhere.py, https://example.org/x.py",
    ],
)
def test_the_truth_is_left_alone(truth: str):
    assert complaints_about(Text("x.md", truth), files_too=True) == []


def test_docstrings_comments_and_notes_are_read():
    source = Source("oracle/x.py", '"""One."""\nx = 1  # Two\n"""Three."""\n\n\ndef f():\n    "Four."\n')
    assert [prose.text for prose in prose_of(source)] == ["One.", "Three.", "Four.", "# Two"]
    assert words_of_code([source]) == {"oracle", "x", "def", "f"}


def test_blocks_about_the_readers_own_files_are_left_out():
    page = "tests/a.py\n\n<!-- not run: a suite of yours -->\n```console\n$ pytest tests/b.py\n```\ntests/c.py\n"
    assert prose_of_document("x.md", page).text.split() == [
        "tests/a.py", "<!--", "not", "run:", "a", "suite", "of", "yours", "-->", "```console", "tests/c.py",
    ]  # fmt: skip


def test_every_foreign_name_is_mentioned():
    texts = [prose.text for prose in product_prose()]
    texts += [(ROOT / document).read_text(encoding="utf-8") for document in DOCUMENTS]
    assert [name for name in sorted(foreign()) if not any(name in text for text in texts)] == []


# --- where tests lie --------------------------------------------------------------------------------------------


def misplaced(paths: tuple[str, ...]) -> list[str]:
    """Return complaints: a test that bears the name of a file of the product and lies elsewhere."""
    places: dict[str, set[str]] = {}
    for path in map(PurePosixPath, paths):
        if path.parts[0] != "tests" and path.suffix == ".py":
            places.setdefault(f"test_{path.name}", set()).add(f"tests/{path.parent}")
    tops = {folder.split("/")[1] for folders in places.values() for folder in folders if "/" in folder}
    complaints = []
    for path in map(PurePosixPath, paths):
        mirrors = path.parts[0] == "tests" and len(path.parts) > 2 and path.parts[1] in tops
        if mirrors and path.parent.as_posix() not in places.get(path.name, {path.parent.as_posix()}):
            complaints.append(f"{path}: lies in none of {', '.join(sorted(places[path.name]))}")
    return complaints


def test_a_test_named_for_a_file_lies_at_its_place():
    assert misplaced(tuple(file for file in files() if file.split("/")[0] not in ("benchmarks", "examples"))) == []


def test_a_misplaced_test_is_seen():
    paths = ("oracle/deep/walk.py", "oracle/judge.py", "tests/oracle/test_walk.py", "tests/oracle/test_judge.py")
    assert misplaced((*paths, "tests/oracle/test_subject.py", "tests/programs/test_judge.py")) == [
        "tests/oracle/test_walk.py: lies in none of tests/oracle/deep"
    ]
