"""The tables of the result store, made from the row classes, so that the two cannot differ."""

import json
import math
from typing import Any

from sqlalchemy import Boolean, Column, Double, ForeignKey, Integer, MetaData, Table, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import BigInteger, TypeDecorator, TypeEngine, UserDefinedType

from .rows import CallRow, CaseRow, Event, Row, RunRow, field_types


class Words(TypeDecorator[str]):
    """Text that every database takes: NUL and lone surrogates become visible escapes."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text with what databases refuse escaped."""
        del dialect
        if value is None:
            return None
        return value.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")


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


def _table(name: str, kind: type[Row], *, indexed: tuple[str, ...] = ()) -> Table:
    columns: list[Column[Any]] = [Column("id", Integer, primary_key=True, autoincrement=True)]
    for field, hint in field_types(kind).items():
        to_run = [ForeignKey("plumbline_runs.run_id")] if field == "run_id" and kind is not RunRow else []
        unique = field == "run_id" and kind is RunRow
        column_type = _COLUMN_TYPES[hint]
        columns.append(Column(field, column_type, *to_run, unique=unique or None, index=field in indexed))
    return Table(name, METADATA, *columns)


RUNS = _table("plumbline_runs", RunRow)
CASES = _table("plumbline_cases", CaseRow, indexed=("run_id", "case_id"))
CALLS = _table("plumbline_calls", CallRow, indexed=("run_id", "case_id"))
