"""The tables of the result store.  Facts first: what happened; then the roll-ups, which `rebuild` makes from them.

Facts: runs and their shards; tests and columns, each with a number; results (one narrow row a case and run, first
attempts), details (words and numbers of a case, which retention drops of good ones), attempts (retries), calls,
and what was accepted.  The columns of results, details and calls are the fields of the row classes, so that the two
cannot differ.  Roll-ups: streams, nights, column_nights, strips, case_states, faults, findings.
Keys are made of names that a sender knows, so that rows that are sent twice are stored once.
"""

import json
import math
from typing import Any

from sqlalchemy import Boolean, Column, Double, Index, Integer, LargeBinary, MetaData, Table, Text, UniqueConstraint
from sqlalchemy.engine import Dialect
from sqlalchemy.types import BigInteger, TypeDecorator, TypeEngine, UserDefinedType

from ..rows import CallRow, CaseRow, Event, Row, RunRow, field_types


def visible_text(text: str) -> str:
    """Return text that every database takes: NUL and lone surrogates become visible escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


class Words(TypeDecorator[str]):
    """Text that every database takes: NUL and lone surrogates become visible escapes."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text with what databases refuse escaped."""
        del dialect
        return None if value is None else visible_text(value)


class _Real(UserDefinedType[Any]):
    """A REAL column of SQLite, its values untouched: SQLAlchemy's Double would make a float of every text."""

    cache_ok = True

    def get_col_spec(self, **options: object) -> str:
        """Return the type as DDL spells it."""
        del options
        return "REAL"


class Measure(TypeDecorator[float]):
    """A float that survives SQLite, which turns NaN into NULL and -0.0 into 0.0, but takes words in any column."""

    impl = Double
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """Return the column type for this database."""
        return dialect.type_descriptor(_Real() if dialect.name == "sqlite" else Double())

    def process_bind_param(self, value: float | None, dialect: Dialect) -> Any:
        """Return the value, or a word for one that SQLite would lose."""
        if value is None or dialect.name != "sqlite":
            return value
        if math.isnan(value):
            return "NaN"
        return _NEGATIVE_ZERO if value == 0.0 and math.copysign(1.0, value) < 0 else value

    def process_result_value(self, value: Any, dialect: Dialect) -> float | None:
        """Return the float again."""
        del dialect
        if value is None:
            return None
        return -0.0 if value == _NEGATIVE_ZERO else float(value)


_NEGATIVE_ZERO = "negative zero"  # SQLite would read "-0.0" as a number and store 0.0


class ListColumn(TypeDecorator[tuple[Any, ...]]):
    """A short list as JSON text; read as a tuple."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[Any, ...] | None, dialect: Dialect) -> str | None:
        """Return the list as JSON; ASCII only, so no database can refuse it."""
        del dialect
        return None if value is None else json.dumps(list(value))

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[Any, ...] | None:
        """Return the tuple again."""
        del dialect
        return None if value is None else tuple(json.loads(value))


_COLUMN_TYPES: dict[object, type[TypeEngine[Any]]] = {
    str: Words,
    bool: Boolean,
    int: BigInteger,
    float: Measure,
    str | None: Words,
    float | None: Measure,
    tuple[str, ...]: ListColumn,
    tuple[int, ...] | None: ListColumn,
    tuple[Event, ...]: ListColumn,
}

METADATA = MetaData()
META = Table("plumbline_meta", METADATA, Column("schema_version", Integer, nullable=False))


def field_columns(kind: type[Row], names: tuple[str, ...] | None = None) -> list[Column[Any]]:
    """Return a column for each field of a row class, or for those that are named."""
    hints = field_types(kind)
    return [Column(name, _COLUMN_TYPES[hints[name]]) for name in names or tuple(hints)]


def _numbers(*names: str) -> list[Column[Any]]:
    return [Column(name, BigInteger, nullable=False, default=0, server_default="0") for name in names]


def _measures(*names: str) -> list[Column[Any]]:
    return [Column(name, Measure, nullable=False, default=0.0, server_default="0") for name in names]


def _words(*names: str) -> list[Column[Any]]:
    return [Column(name, Words, nullable=False, default="", server_default="") for name in names]


def _key(*names: str) -> list[Column[Any]]:
    return [Column(name, Integer, primary_key=True, autoincrement=False) for name in names]


def _keyed(name: str, *columns: Any) -> Table:
    """Return a table whose rows lie in the order of their key: a third smaller than with a number of SQLite's own."""
    return Table(name, METADATA, *columns, sqlite_with_rowid=False)


# --- facts
RUNS = Table(
    "plumbline_runs",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *(
        Column(field, _COLUMN_TYPES[hint], unique=field == "run_id" or None)
        for field, hint in field_types(RunRow).items()
    ),
)
SHARDS = _keyed("plumbline_shards", *_key("run", "shard"), *_words("machine", "begun", "finished", "partial"))
TESTS = Table(
    "plumbline_tests",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Words, nullable=False, unique=True),
)
COLUMNS = Table(
    "plumbline_columns",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *_words("compiler", "backend"),
    UniqueConstraint("compiler", "backend"),
)
SOURCES = _keyed("plumbline_sources", *_key("test", "run"), *_words("source"))

RESULT_FIELDS = (
    "outcome",
    "verdict",
    "margin",
    "boundaries",
    "judged_calls",
    "graphs",
    "ops",
    "breaks",
    "recompiles",
    "test_seconds",
    "compile_seconds",
    "eager_seconds",
    "compiled_seconds",
    "compile_cpu",
    "peak_bytes",
)
_NAMES_OF_A_CASE = ("run_id", "case_id", "test", "compiler", "backend", "source", "attempt")
DETAIL_FIELDS = tuple(name for name in field_types(CaseRow) if name not in (*RESULT_FIELDS, *_NAMES_OF_A_CASE))

RESULTS = _keyed(
    "plumbline_results",
    *_key("run", "test", "col"),
    *field_columns(CaseRow, RESULT_FIELDS),
    Column("failing", Boolean, nullable=False),
)
Index("plumbline_results_of_case", RESULTS.c.test, RESULTS.c.col, RESULTS.c.run)
Index(
    "plumbline_results_failing",
    RESULTS.c.run,
    RESULTS.c.test,
    RESULTS.c.col,
    sqlite_where=RESULTS.c.failing,
    postgresql_where=RESULTS.c.failing,
)
DETAILS = _keyed("plumbline_details", *_key("run", "test", "col"), *field_columns(CaseRow, DETAIL_FIELDS))
ATTEMPTS = _keyed(
    "plumbline_attempts",
    *_key("run", "test", "col", "attempt"),
    *field_columns(CaseRow, (*RESULT_FIELDS, *DETAIL_FIELDS)),
)
CALL_FIELDS = tuple(name for name in field_types(CallRow) if name not in ("run_id", "case_id"))
CALLS = _keyed("plumbline_judged_calls", *_key("run", "test", "col", "number"), *field_columns(CallRow, CALL_FIELDS))
ACCEPTED = _keyed(
    "plumbline_accepted", *_key("run", "number"), *_words("what", "test", "column_name", "issue", "expires")
)

# --- roll-ups
STREAMS = Table(
    "plumbline_streams",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    *_words("suite", "branch"),
    UniqueConstraint("suite", "branch"),
)
NIGHT_COUNTS = ("cases", "good", "failing", "new", "still", "flaky", "fixed", "vacuous", "skipped", "missing")
NIGHTS = _keyed(
    "plumbline_nights",
    *_key("run"),
    *_numbers("stream"),
    *_words("verdict", "sentence"),
    *_numbers(*NIGHT_COUNTS),
    Column("changed", ListColumn),
)
Index("plumbline_nights_of_stream", NIGHTS.c.stream, NIGHTS.c.run)
COLUMN_COUNTS = ("cases", "good", "weak", "failing", "vacuous", "skipped", "graphs", "ops", "breaks", "recompiles")
COLUMN_MEASURES = (
    "compile_seconds",
    "compile_cpu",
    "paired_cpu",
    "other_cpu",
    "eager_seconds",
    "compiled_seconds",
    "worst_margin",
    "peak_bytes",
)
COLUMN_NIGHTS = _keyed(
    "plumbline_column_nights",
    *_key("run", "col"),
    *_numbers(*COLUMN_COUNTS, "near_limit"),
    *_measures(*COLUMN_MEASURES),
)
STRIPS = _keyed(
    "plumbline_strips", *_key("run", "col"), *(Column(n, LargeBinary) for n in ("marks", "margins", "seconds"))
)
STATE_NUMBERS = ("since", "streak", "clean", "recent", "rises", "last_flaky", "last_good", "last_run")
CASE_STATES = _keyed(
    "plumbline_case_states",
    *_key("stream", "test", "col"),
    *_words("state"),
    *_numbers(*STATE_NUMBERS),
    *_words("outcome", "verdict", "cause"),
    *_measures("margin"),
    *_numbers("graphs", "ops", "breaks"),
)
Index("plumbline_case_states_by_state", CASE_STATES.c.stream, CASE_STATES.c.state)
FAULTS = _keyed(
    "plumbline_faults",
    Column("fault", BigInteger, primary_key=True, autoincrement=False),
    *_numbers("stream", "first", "last", "fixed"),
    *_words("mark", "aspect", "stage", "file", "suspect", "why", "title"),
    Column("columns", ListColumn),
    Column("changed", ListColumn),
)
Index("plumbline_faults_of_stream", FAULTS.c.stream, FAULTS.c.fixed, FAULTS.c.first)
FAULT_CASES = _keyed(
    "plumbline_fault_cases",
    Column("fault", BigInteger, primary_key=True, autoincrement=False),
    *_key("test", "col"),
)
FINDINGS = _keyed("plumbline_findings", *_key("run", "number"), *_words("level", "rule", "test", "column_name", "text"))
RENAMES = _keyed("plumbline_renames", *_key("run", "test"), *_numbers("was"), *_words("why"))

ROLL_UPS = (NIGHTS, COLUMN_NIGHTS, STRIPS, CASE_STATES, FAULT_CASES, FAULTS, FINDINGS, RENAMES)
"""Everything that `rebuild` makes again from the facts."""
