"""What a run is compared with: one expectation a case, from a database or a file under version control.

The file is JSON with one case a line, sorted, each line beginning with its comma: two branches that
add, change or remove different cases merge without conflict, and every merge of them is valid JSON.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from .atomic_file import write_whole
from .rows import CaseRow, Row, RunRow, field_types
from .store import ResultStore, SchemaMismatch, open_store

BASELINE_VERSION = 1  # of the file; the database has a version of its own
_HEADER_KEY = "plumbline_baseline"
_EXPORT_HINT = "write it again with: plumbline gate --write-baseline FILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedCase(Row):
    """What one case did when the baseline was made; fields as in CaseRow."""

    test: str
    compiler: str
    backend: str
    outcome: str
    verdict: str = ""
    margin: float = 0.0
    graphs: int = 0
    ops: int = 0
    breaks: int = 0


@dataclass(frozen=True, slots=True)
class Baseline:
    """The expectations of all cases; `source` says where they come from, for messages."""

    source: str
    cases: tuple[ExpectedCase, ...]


def baseline_of(cases: Iterable[CaseRow], source: str) -> Baseline:
    """Return what a run did as the expectation of later ones."""
    names = field_types(ExpectedCase)
    return Baseline(source, tuple(ExpectedCase(**{name: getattr(case, name) for name in names}) for case in cases))


def load_baseline(place: str, *, run: str | None = None, judged: RunRow | None = None, home: str = "") -> Baseline:
    """Return the baseline at a place: a file of `write_baseline`, or a result database.

    run: of a database, take this run; by default its newest complete one.
    judged, home: the run to be compared, and `Store.place` of its database; when that is the
    baseline too, the newest complete run before it is taken.
    Raises UserError when the place is neither, SchemaMismatch when another version wrote it.
    """
    file = Path(place)
    if "://" not in place and file.is_file() and not _is_sqlite(file):
        if run is not None:
            raise UserError("a baseline file holds no runs", where=place, hint="drop --baseline-run")
        return Baseline(place, _read_file(file))
    if "://" not in place and not file.exists():
        hint = "make one with: plumbline gate --write-baseline FILE"
        raise UserError("no baseline here", where=place, hint=hint)
    with open_store(place) as store:
        before = judged if store.place == home else None
        chosen = store.run(run) if run is not None else _newest_complete(store, before)
        return baseline_of(store.cases(chosen.run_id), f"{store.place}, run {chosen.run_id}")


def write_baseline(file: Path, cases: Sequence[CaseRow]) -> None:
    """Write the cases of a run as a baseline file; UserError when it cannot be written."""
    expected = baseline_of(cases, "").cases
    lines = sorted(json.dumps(_strict(case)) for case in expected)
    header = json.dumps({_HEADER_KEY: BASELINE_VERSION})
    write_whole(file, "\n".join([f"[{header}", *(f",{line}" for line in lines), "]", ""]))


def _strict(case: ExpectedCase) -> dict[str, object]:
    # Two digits: a margin that moves in its third digit must not make a difference under version control.
    data = case.to_dict()
    rounded = float(f"{case.margin:.2g}")
    data["margin"] = rounded if math.isfinite(rounded) else _not_finite(rounded)
    return data


def _not_finite(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _is_sqlite(file: Path) -> bool:
    with file.open("rb") as opened:
        start = opened.read(16)
    return not start or start == b"SQLite format 3\0"


def _read_file(file: Path) -> tuple[ExpectedCase, ...]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError("not a baseline", where=str(file), why=str(error)[:120], hint=_EXPORT_HINT) from None
    except OSError as error:
        hint = "check the path and its permissions"
        raise UserError("cannot read the baseline", where=str(file), why=str(error.strerror), hint=hint) from None
    header = data[0] if isinstance(data, list) and data and isinstance(data[0], dict) else {}
    if _HEADER_KEY not in header:
        raise UserError("not a baseline", where=str(file), why="it lacks the header line", hint=_EXPORT_HINT)
    if header[_HEADER_KEY] != BASELINE_VERSION:
        what = f"the baseline has schema version {header[_HEADER_KEY]}, this plumbline reads {BASELINE_VERSION}"
        raise SchemaMismatch(what, where=str(file), hint=_EXPORT_HINT)
    return tuple(_expected(item, f"{file}, entry {index}") for index, item in enumerate(data[1:], 1))


def _expected(item: object, where: str) -> ExpectedCase:
    if not isinstance(item, dict):
        raise UserError("not a case", where=where, hint=_EXPORT_HINT)
    try:
        return ExpectedCase.from_dict(item)
    except UserError as error:
        raise UserError(error.what, where=where, why=error.why, hint=_EXPORT_HINT) from None


def _newest_complete(store: ResultStore, before: RunRow | None) -> RunRow:
    runs = store.runs()
    if before is not None:
        runs = runs[[run.run_id for run in runs].index(before.run_id) + 1 :]
    for run in runs:
        if run.complete:
            return run
    raise UserError("no earlier complete run", where=store.place, hint="name one with --baseline-run")
