"""The result rows: one per run, one per test and backend, one per judged call.

Rows are plain data (text, whole numbers, floats, None, lists of these), so that they cross process
boundaries (pytest-xdist) and fit a database row and a JSON line.  Verdicts and outcomes are words here:
this folder does not know the judge.
"""

import hashlib
import math
import typing
import uuid
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import UTC, datetime
from typing import Self, TypeAlias

from plumbline.compiler.base.errors import UserError

SCHEMA_VERSION = 3
"""Of the database; raised when a field is added or changes its meaning, with a step in storage/migrations.py."""

KINDS = ("nightly", "pull", "local", "fuzz", "sweep", "import")
"""What a run is for.  Only nightly runs (and imported history) move the state of cases."""

# The result of a test under one backend.  `failed`, `error` and `vacuous` never count as passed.
OUTCOMES = ("passed", "xfailed", "xpassed", "skipped", "vacuous", "failed", "error")
FAILING_OUTCOMES = frozenset({"vacuous", "failed", "error"})

Scalar: TypeAlias = str | int | float | bool | None
Event: TypeAlias = Mapping[str, Scalar]
"""A small flat mapping; its "kind" says what happened ("graph_break", "recompile", ...)."""


class Row:
    """The common half of all rows: to plain data and back."""

    __slots__ = ()

    def to_dict(self) -> dict[str, object]:
        """Return the row as plain data: exact built-in types, tuples as lists."""
        return {name: _plain(getattr(self, name)) for name in field_types(type(self))}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> Self:
        """Return the row that `to_dict` wrote; fields with a default may be absent.

        Raises UserError that names the field when one is unknown, missing or of another type.
        """
        kinds = field_types(cls)
        for name in data:
            if name not in kinds:
                raise _unreadable(cls, f"unknown field {name!r}")
        for name in _required(cls):
            if name not in data:
                raise _unreadable(cls, f"field {name!r} is missing")
        read: dict[str, typing.Any] = {}
        for name, value in data.items():
            try:
                read[name] = _READERS[kinds[name]](value)
            except _Unfit:
                raise _unreadable(cls, f"field {name!r} holds {value!r:.60}") from None
        return cls(**read)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow(Row):
    """One session of a test runner or fuzzer: when, on what, by which command.

    utc, finished: ISO 8601 in UTC; `finished` is None while it runs and after an interruption.
    commit: of the project under test, empty outside version control; dirty: it had local edits.
    plumbline, torch, python: versions.  threads: as torch would use them.
    kind: one of KINDS.  suite, branch: the series that a run belongs to; nothing is compared across suites.
    machine: processor and cores, so that a run on another kind of machine can be told.
    cache: "cold", "warm" or "" for the compilers' caches at the start.  void: why it teaches nothing, else "".
    partial: why not every test had its turn ("-k adam"), else "".  rerun_of: the void run that this one repeats.
    shards: how many sessions share the run; it is finished when all of them are.
    """

    run_id: str
    utc: str
    commit: str = ""
    dirty: bool = False
    plumbline: str = ""
    torch: str = ""
    python: str = ""
    platform: str = ""
    threads: int = 0
    command: str = ""
    schema_version: int = SCHEMA_VERSION
    finished: str | None = None
    kind: str = "local"
    suite: str = ""
    branch: str = ""
    machine: str = ""
    cache: str = ""
    void: str = ""
    partial: str = ""
    rerun_of: str = ""
    shards: int = 1

    @property
    def complete(self) -> bool:
        """Return whether the run came to its end."""
        return self.finished is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements(Row):
    """The numbers of the worst difference, in units of the program's own noise.

    t_element, t_rms, t_bias: test statistics, <= 1 passes; None when no float tensor was judged.
    margin: the largest of them, 0.0 when all is bitwise equal; may be inf or nan.
    unstable: share of positions, 0 to 1, that rounding alone decides.
    worst_index, actual, eager, reference: the worst element and its values.
    error, scale: |actual - reference| there, and one unit of noise there.
    """

    margin: float = 0.0
    t_element: float | None = None
    t_rms: float | None = None
    t_bias: float | None = None
    unstable: float = 0.0
    worst_index: tuple[int, ...] | None = None
    actual: float | None = None
    eager: float | None = None
    reference: float | None = None
    error: float | None = None
    scale: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow(Measurements):
    """One test item under one compiler and backend.

    test: pytest node id without the backend part.  case_id: `identify_case` of the three names.
    verdict: the most serious verdict of all judged calls, empty when none was reached (a skip).
    outcome: one of OUTCOMES.  stage: first wrong backend of the ladder, None when none is known.
    sentence, aspect, where: of the most serious finding.  boundary: label of the call that has it.
    user_file, user_line: the user's line nearest to it, "" and 0 when unknown.
    boundaries, judged_calls: how many call sites and calls were judged.
    graphs, ops, breaks, recompiles: what the compiler did, summed over boundaries.
    *_seconds: wall time of the whole test, of compiling, of the eager and of the compiled runs.
    compile_cpu: CPU seconds of the calls that compiled, with their child processes; 0.0 when not measured.
    peak_bytes: most memory of the process during the test, the judge's runs included, beyond what it held before; 0
    when not measured.
    source: hash of the test's source without its name, by which a renamed test is known; "" when unknown.
    attempt: 1, or higher for a retry of a failure in a fresh process.
    notes: remarks that are not failures.  events: graph breaks, recompiles, ... in order, each a mapping with
    "kind" and "reason", and "where" and "seconds" if known (written in pytest_plugin/reporting/result_rows.py).
    """

    run_id: str
    case_id: str
    test: str
    compiler: str
    backend: str
    outcome: str
    verdict: str = ""
    stage: str | None = None
    sentence: str = ""
    aspect: str = ""
    where: str = ""
    user_file: str = ""
    user_line: int = 0
    boundary: str = ""
    boundaries: int = 0
    judged_calls: int = 0
    graphs: int = 0
    ops: int = 0
    breaks: int = 0
    recompiles: int = 0
    test_seconds: float = 0.0
    compile_seconds: float = 0.0
    eager_seconds: float = 0.0
    compiled_seconds: float = 0.0
    compile_cpu: float = 0.0
    peak_bytes: int = 0
    source: str = ""
    attempt: int = 1
    notes: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()

    @property
    def failing(self) -> bool:
        """Return whether this case must not count as passed."""
        return self.outcome in FAILING_OUTCOMES

    @property
    def column(self) -> str:
        """Return `compiler:backend`, the column of a case."""
        return f"{self.compiler}:{self.backend}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow(Measurements):
    """One judged call of one boundary; `call` counts the calls of that boundary from 1."""

    run_id: str
    case_id: str
    boundary: str
    call: int
    verdict: str
    aspect: str = ""
    where: str = ""
    sentence: str = ""
    graphs: int = 0
    ops: int = 0
    eager_seconds: float = 0.0
    compiled_seconds: float = 0.0


def identify_case(test: str, compiler: str, backend: str) -> str:
    """Return the stable name of a case: 16 hex digits, the same on every machine and run."""
    text = "\0".join((test, compiler, backend))
    return hashlib.blake2s(text.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def new_run_id() -> str:
    """Return a fresh name of a run that sorts by its start and is unique across machines."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


def utc_now() -> str:
    """Return the present time as ISO 8601 text in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def field_types(kind: type[Row]) -> Mapping[str, object]:
    """Return the type of every field of a row class, in the order of declaration."""
    known = _FIELD_TYPES.get(kind)
    if known is None:
        hints = typing.get_type_hints(kind)
        known = {field.name: hints[field.name] for field in _fields(kind)}
        _FIELD_TYPES[kind] = known  # reading hints is slow, and there is one row a call
    return known


_FIELD_TYPES: dict[type[Row], Mapping[str, object]] = {}


def _fields(kind: type[Row]) -> tuple[Field[object], ...]:
    return fields(typing.cast("type[RunRow]", kind))


def _required(kind: type[Row]) -> tuple[str, ...]:
    return tuple(field.name for field in _fields(kind) if field.default is MISSING)


def _unreadable(kind: type[Row], why: str) -> UserError:
    return UserError(f"cannot read a {kind.__name__}", why=why, hint="write it again with this version of plumbline")


def _plain(value: object) -> object:
    # numpy scalars are floats and ints to isinstance but not to execnet or json: force the built-in type.
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


class _Unfit(Exception):
    pass


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Unfit
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Unfit
    return value


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _Unfit
    return value


_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}  # how strict JSON has to say them


def _number(value: object) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    return float(value if isinstance(value, float) else _whole(value))


def _event(value: object) -> Event:
    if not isinstance(value, Mapping):
        raise _Unfit
    if not all(item is None or isinstance(item, (str, int, float)) for item in value.values()):
        raise _Unfit
    return {str(key): item for key, item in value.items()}


def _optional(read: Callable[[object], object]) -> Callable[[object], object]:
    return lambda value: None if value is None else read(value)


def _several(read: Callable[[object], object]) -> Callable[[object], object]:
    def read_all(value: object) -> object:
        if not isinstance(value, (list, tuple)):
            raise _Unfit
        try:
            return tuple(read(item) for item in value)
        except _Unfit:
            raise _Unfit from None

    return read_all


_READERS: dict[object, Callable[[object], object]] = {
    str: _text,
    bool: _truth,
    int: _whole,
    float: _number,
    str | None: _optional(_text),
    float | None: _optional(_number),
    tuple[str, ...]: _several(_text),
    tuple[int, ...] | None: _optional(_several(_whole)),
    tuple[Event, ...]: _several(_event),
}
