"""What a run is compared with: the state of a branch, an earlier run, or a file under version control.

The file is JSON with one case a line, sorted, each line beginning with its comma: two branches that
add, change or remove different cases merge without conflict, and every merge of them is valid JSON.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from .atomic_file import write_whole
from .gating.case_memory import FAILING, GOOD, CaseMemory
from .gating.gate_findings import Case
from .history import CaseState, states, streams
from .rows import FAILING_OUTCOMES, CaseRow, Row, RunRow, field_types
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
    """What every case did before; `source` says where that is from, for messages.

    cases: of a file or a run.  states: of a branch, in place of cases.  rounded: margins have two digits.
    """

    source: str
    cases: tuple[ExpectedCase, ...] = ()
    states: Mapping[Case, CaseMemory] = field(default_factory=dict)
    rounded: bool = False

    @property
    def memories(self) -> Mapping[Case, CaseMemory]:
        """Return what is remembered of every case."""
        return self.states or {(case.test, f"{case.compiler}:{case.backend}"): _memory_of(case) for case in self.cases}


def _memory_of(case: ExpectedCase) -> CaseMemory:
    return CaseMemory(
        state=FAILING if case.outcome in FAILING_OUTCOMES else GOOD,
        outcome=case.outcome,
        verdict=case.verdict,
        margin=case.margin,
        graphs=case.graphs,
        ops=case.ops,
        breaks=case.breaks,
    )


def baseline_of(cases: Iterable[CaseRow], source: str) -> Baseline:
    """Return what a run did as the expectation of later ones."""
    names = field_types(ExpectedCase)
    return Baseline(source, tuple(ExpectedCase(**{name: getattr(case, name) for name in names}) for case in cases))


def branch_baseline(store: ResultStore, suite: str, branch: str | None) -> Baseline | None:
    """Return the states of the cases of a suite on a branch, None where no night of it was judged.

    branch: by default the one with the newest night.
    """
    for stream in streams(store):
        if stream.suite == suite and branch in (None, stream.branch):
            kept = {(each.test_name, each.column): _memory_from(each) for each in states(store, stream)}
            name = f"{stream.suite or 'the suite'} on {stream.branch or 'no branch'}"
            return Baseline(f"the nights of {name} in {store.place}", states=kept)
    return None


def _memory_from(state: CaseState) -> CaseMemory:
    return CaseMemory(**{name: getattr(state, name) for name in CaseMemory.__slots__})


def load_baseline(
    place: str,
    *,
    run: str | None = None,
    branch: str | None = None,
    judged: RunRow | None = None,
    home: str = "",
) -> Baseline:
    """Return the baseline at a place: a file of `write_baseline`, or a result database.

    run: of a database, take this run.  branch: of a database, take the state of its nights.
    By default the nights of the judged run's suite, or, where there are none, the newest complete whole run of the
    same kind and suite.
    judged, home: the run to be compared, and `Store.place` of its database; when that is the
    baseline too, the newest complete run before it is taken.
    Raises UserError when the place is neither, SchemaMismatch when another version wrote it.
    """
    file = Path(place)
    if "://" not in place and file.is_file() and not _is_sqlite(file):
        if run is not None:
            raise UserError("a baseline file holds no runs", where=place, hint="drop --baseline-run")
        return Baseline(place, _read_file(file), rounded=True)
    if "://" not in place and not file.exists():
        hint = "make one with: plumbline gate --write-baseline FILE"
        raise UserError("no baseline here", where=place, hint=hint)
    with open_store(place) as store:
        if run is None:
            nights = branch_baseline(store, judged.suite if judged else "", branch)
            if nights is not None:
                return nights
            if branch is not None:
                hint = "run plumbline nightly on it first"
                raise UserError(f"no nights of branch {branch!r}", where=store.place, hint=hint)
        chosen = store.run(run) if run is not None else _newest_complete(store, judged, home)
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


def _newest_complete(store: ResultStore, judged: RunRow | None, home: str) -> RunRow:
    runs = store.runs()
    if judged is not None and store.place == home:
        runs = runs[[run.run_id for run in runs].index(judged.run_id) + 1 :]
    for run in runs:
        alike = judged is None or (run.kind, run.suite) == (judged.kind, judged.suite)
        if run.complete and alike and not run.partial and not run.void:
            return run
    hint = "name one with --baseline-run"
    raise UserError("no earlier complete run of this kind and suite", where=store.place, hint=hint)
