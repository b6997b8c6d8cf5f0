"""The database's schema: made where there is none, moved forward where it is older, refused where it is newer.

Steps only go forward and lose nothing: a step adds tables and columns and, where rows moved to other tables, copies
them in the same transaction.  A step that fails leaves the database as it was.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import Column, Connection, Integer, MetaData, Table, inspect, select, update
from sqlalchemy.schema import CreateColumn

from plumbline.compiler.base.errors import UserError

from ..rows import SCHEMA_VERSION, CallRow, CaseRow, field_types
from .database import Database
from .name_numbers import NameNumbers, RunNumbers
from .result_values import store_calls, store_cases
from .schema import ATTEMPTS, COLUMN_NIGHTS, META, METADATA, RESULTS, RUNS, field_columns

_BATCH = 5_000  # rows that are moved at a time
_MAKING_TABLES = 0x706C756D62  # any number that other programs on the server are unlikely to lock
_NO_RUNS_HINT = "run pytest with --compile-backends=all first"


class SchemaMismatch(UserError):
    """The database was written by a plumbline whose rows have another shape."""


def prepare_schema(database: Database, *, write: bool, is_file: bool) -> None:
    """Check the schema of a database that is written to, making or migrating it.

    Raises SchemaMismatch for a newer schema, UserError for a database that is not ours.
    """
    with database.transaction() as connection:
        if database.is_postgres and write:  # two first runs at once must not both make tables
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MAKING_TABLES})")
        tables = inspect(connection).get_table_names()
        if META.name in tables:
            version = _version(connection, database.place)
            if version < SCHEMA_VERSION:
                _migrate(connection, version)
        elif not write or (is_file and tables):
            hint = "name another database" if tables else _NO_RUNS_HINT
            why = f"its tables are {', '.join(sorted(tables)[:3])}" if tables else "it is empty"
            raise UserError("not a result database of plumbline", where=database.place, why=why, hint=hint)
        else:
            METADATA.create_all(connection)
            connection.execute(META.insert(), [{"schema_version": SCHEMA_VERSION}])


def is_older(database: Database) -> bool:
    """Return whether a database of ours has an older schema; SchemaMismatch when it has a newer one."""
    with database.transaction() as connection:
        ours = META.name in inspect(connection).get_table_names()
        return ours and _version(connection, database.place) < SCHEMA_VERSION


def _version(connection: Connection, place: str) -> int:
    versions = [int(row.schema_version) for row in connection.execute(select(META))]
    if len(versions) != 1 or versions[0] > SCHEMA_VERSION or versions[0] < 1:
        known = ", ".join(map(str, versions)) or "none"
        raise SchemaMismatch(
            f"the database has schema version {known}, this plumbline writes {SCHEMA_VERSION}",
            where=place,
            hint="name a new database, or use the plumbline that wrote this one",
        )
    return versions[0]


def _migrate(connection: Connection, version: int) -> None:
    for step in range(version, SCHEMA_VERSION):
        _STEPS[step](connection)
    connection.execute(update(META).values(schema_version=SCHEMA_VERSION))


def add_columns(connection: Connection, table: Table, names: Sequence[str], defaults: dict[str, Any]) -> None:
    """Add columns that a table lacks, and fill them in the rows that are there."""
    there = {column["name"] for column in inspect(connection).get_columns(table.name)}
    for name in names:
        if name not in there:
            plain = Column(name, table.c[name].type)
            shape = CreateColumn(plain).compile(dialect=connection.dialect)
            connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {shape}")
    connection.execute(update(table).values({name: defaults[name] for name in names}))


_ADDED_TO_RUNS_IN_2 = {
    "kind": "local",
    "suite": "",
    "branch": "",
    "machine": "",
    "cache": "",
    "void": "",
    "partial": "",
    "rerun_of": "",
    "shards": 1,
}


def _from_1_to_2(connection: Connection) -> None:
    """Runs say what they are for; wide rows of cases become narrow results with details, under numbers."""
    METADATA.create_all(connection)
    add_columns(connection, RUNS, tuple(_ADDED_TO_RUNS_IN_2), _ADDED_TO_RUNS_IN_2)
    connection.execute(update(RUNS).values(schema_version=2))
    old = MetaData()
    names, runs = NameNumbers(), RunNumbers()
    old_cases = _old_table("plumbline_cases", CaseRow, old, ("source", "attempt", "compile_cpu", "peak_bytes"))
    cases_by_id: dict[str, tuple[str, str, str]] = {}
    for rows in _batches(connection, old_cases):
        cases = [CaseRow(**row) for row in rows]
        cases_by_id |= {case.case_id: (case.test, case.compiler, case.backend) for case in cases}
        store_cases(connection, cases, names, runs)
    old_calls = _old_table("plumbline_calls", CallRow, old, ())
    for rows in _batches(connection, old_calls):
        calls = [CallRow(**row) for row in rows]
        store_calls(connection, [call for call in calls if call.case_id in cases_by_id], cases_by_id, names, runs)
    old.drop_all(connection)


def _from_2_to_3(connection: Connection) -> None:
    """Results have the memory that they took, which is 0 for those of before: not measured."""
    for table in (RESULTS, ATTEMPTS, COLUMN_NIGHTS):
        add_columns(connection, table, ("peak_bytes",), {"peak_bytes": 0})
    connection.execute(update(RUNS).values(schema_version=3))


_STEPS: dict[int, Callable[[Connection], None]] = {1: _from_1_to_2, 2: _from_2_to_3}
"""Schema version -> what leads to the next one."""


def _old_table(name: str, kind: type[CaseRow] | type[CallRow], old: MetaData, later: Sequence[str]) -> Table:
    fields = tuple(field for field in field_types(kind) if field not in later)
    return Table(name, old, Column("id", Integer, primary_key=True), *field_columns(kind, fields))


def _batches(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    names = [column.name for column in table.columns if column.name != "id"]
    last = 0
    while True:
        query = select(table).where(table.c.id > last).order_by(table.c.id).limit(_BATCH)
        rows = list(connection.execute(query).mappings())
        if not rows:
            return
        last = rows[-1]["id"]
        yield [{name: row[name] for name in names} for row in rows]
