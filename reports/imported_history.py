"""History that exists: JUnit XML of a test run, or CSV tables as PyTorch's benchmarks write them.

Every file is one run; its name is made of its content, so that a file is imported once.  Runs are stored and judged in
the order of their times: a JUnit file says its own; else the date in the file's name counts, else when it was changed.
"""

import contextlib
import csv
import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree

from plumbline.compiler.base.errors import UserError

from .nights import judge_run
from .rows import CaseRow, RunRow, identify_case
from .store import ResultStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPlan:
    """What the files are: kind junit or csv, the suite and branch, and the column (compiler:backend) of every row."""

    kind: str
    suite: str = ""
    branch: str = ""
    column: str = "torch:inductor"
    torch: str = ""


@dataclass(frozen=True, slots=True)
class _OldRun:
    file: Path
    utc: str
    content: bytes
    cases: tuple[tuple[str, str, str, float, int], ...]


def import_files(store: ResultStore, files: Sequence[Path], plan: ImportPlan) -> Iterator[str]:
    """Store and judge the runs of some files; yields a line for each.

    Raises UserError, before anything is stored, for a file that cannot be read as the plan says.
    """
    compiler, separator, backend = plan.column.partition(":")
    if not (compiler and separator and backend):
        raise UserError(f"{plan.column!r} is no column", hint="write --column torch:inductor")
    read = _read_junit if plan.kind == "junit" else _read_csv
    runs = sorted((read(file) for file in files), key=lambda run: (run.utc, str(run.file)))
    for old in runs:
        run_id = f"import-{_digest(old, plan)}"
        if store.has_shard(run_id):
            yield f"{old.file}: imported before, as {run_id}"
            continue
        run = RunRow(
            run_id=run_id,
            utc=old.utc,
            torch=plan.torch,
            kind="import",
            suite=plan.suite,
            branch=plan.branch,
            command=f"plumbline import {plan.kind} {old.file.name}",
        )
        store.begin_run(run)
        store.append(_case(old_case, run_id, compiler, backend) for old_case in old.cases)
        store.finish_run(run_id, old.utc)
        report = judge_run(store, run_id)
        yield f"{old.file}: {len(old.cases)} cases as run {run_id}, {report.verdict}"


def _digest(run: _OldRun, plan: ImportPlan) -> str:
    text = "\0".join((plan.kind, plan.suite, plan.branch, plan.column)).encode()
    return hashlib.blake2s(text + b"\0" + run.content, digest_size=6).hexdigest()


def _case(old: tuple[str, str, str, float, int], run_id: str, compiler: str, backend: str) -> CaseRow:
    test, outcome, sentence, seconds, breaks = old
    return CaseRow(
        run_id=run_id,
        case_id=identify_case(test, compiler, backend),
        test=test,
        compiler=compiler,
        backend=backend,
        outcome=outcome,
        sentence=sentence[:500],
        test_seconds=seconds,
        breaks=breaks,
    )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError("cannot read", where=str(file), why=error.strerror or "", hint="check its path") from None


def _read_junit(file: Path) -> _OldRun:
    content = _content(file)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:  # entities that grow without end
        raise UserError("a JUnit file has no DOCTYPE", where=str(file), hint="write it with pytest --junitxml=FILE")
    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise UserError("not JUnit XML", where=str(file), why=str(error), hint="pytest --junitxml=FILE") from None
    if root.tag not in ("testsuites", "testsuite"):
        raise UserError("not JUnit XML", where=str(file), why=f"it holds a <{root.tag}>", hint="pytest --junitxml=FILE")
    times = [suite.get("timestamp") for suite in root.iter("testsuite")]
    utc = _utc(next(filter(None, times), None), file)
    return _OldRun(file, utc, content, tuple(_junit_cases(root)))


def _junit_cases(root: ElementTree.Element) -> Iterator[tuple[str, str, str, float, int]]:
    for case in root.iter("testcase"):
        name = case.get("name") or ""
        place = _place(case.get("file"), case.get("classname") or "")
        outcome, sentence = "passed", ""
        for tag, word in (("skipped", "skipped"), ("failure", "failed"), ("error", "error")):
            found = case.find(tag)
            if found is not None:
                outcome = "xfailed" if found.get("type") == "pytest.xfail" else word
                sentence = " ".join((found.get("message") or found.text or "").split())
        yield f"{place}::{name}", outcome, sentence, _number(case.get("time")), 0


def _place(file: str | None, name: str) -> str:
    """Return where a test is, as pytest writes it: file::Class for the class `package.module.Class`.

    Modules have small names and classes have capitals, which is all that the dots leave to go by.
    """
    parts = name.split(".")
    classes = next((n for n, part in enumerate(parts) if part.lstrip("_")[:1].isupper()), len(parts))
    if file is None and classes:
        file = "/".join(parts[:classes]) + ".py"
    return "::".join([file or "", *parts[classes:]] if file else parts[classes:])


_GOOD = frozenset({"pass", "pass_due_to_skip", "passed", "ok", "true", "1"})
_SKIPPED = frozenset({"", "skip", "skipped", "eager_fail_to_run", "model_fail_to_load", "0.0000", "timeout_skipped"})


def _read_csv(file: Path) -> _OldRun:
    content = _content(file)
    try:
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8"))))
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError("not CSV", where=str(file), why=str(error), hint="see plumbline import --help") from None
    names = set(rows[0]) if rows else set()
    result = next((name for name in ("accuracy", "outcome", "status") if name in names), None)
    if "name" not in names or result is None:
        hint = "it needs the columns name and accuracy (or outcome); graph_breaks and seconds may be there"
        raise UserError("not a table of results", where=str(file), why=f"columns: {sorted(names)}"[:200], hint=hint)
    return _OldRun(file, _utc(None, file), content, tuple(_csv_cases(rows, result)))


def _csv_cases(rows: Iterable[dict[str, str]], result: str) -> Iterator[tuple[str, str, str, float, int]]:
    for row in rows:
        said = (row[result] or "").strip()
        word = said.lower()
        outcome = "passed" if word in _GOOD else "skipped" if word in _SKIPPED else "failed"
        breaks = int(_number(row.get("graph_breaks")))
        yield row["name"], outcome, "" if outcome == "passed" else said, _number(row.get("seconds")), breaks


def _number(text: str | None) -> float:
    try:
        return float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0


def _utc(text: str | None, file: Path) -> str:
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        moment = _date_in(file.name) or datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")


_DATE = re.compile(r"(?<!\d)(20\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")


def _date_in(name: str) -> datetime | None:
    """Return the date that a file's name has, such as inductor_2026-11-22.csv; every copy of a file has it."""
    for year, _, month, day in _DATE.findall(name):
        with contextlib.suppress(ValueError):  # digits that are no date
            return datetime(int(year), int(month), int(day), tzinfo=UTC)
    return None
