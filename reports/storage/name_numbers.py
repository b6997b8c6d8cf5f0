"""Names as numbers: tests, columns and runs are named once, and numbered everywhere else.

A result then takes a quarter of the room, and strips (one byte a test) have their positions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Table, select
from sqlalchemy.dialects import postgresql, sqlite

from plumbline.compiler.base.errors import UserError

from .schema import COLUMNS, RUNS, TESTS, visible_text

_IN_ONE_QUERY = 500  # SQLite takes 999 values in one statement

Column = tuple[str, str]
"""A compiler and a backend."""


def insert_new(connection: Connection, table: Table, values: Sequence[dict[str, Any]]) -> None:
    """Insert rows whose keys are not there; those that are stay as they are, whoever wrote them."""
    if values:
        connection.execute(_dialect(connection).insert(table).on_conflict_do_nothing(), values)


def replace_rows(connection: Connection, table: Table, values: Sequence[dict[str, Any]]) -> None:
    """Insert whole rows, in place of those with the same keys."""
    if not values:
        return
    statement = _dialect(connection).insert(table)
    others = {column.name: statement.excluded[column.name] for column in table.columns if not column.primary_key}
    key = [column.name for column in table.primary_key.columns]
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=others), values)


def _dialect(connection: Connection) -> Any:
    return postgresql if connection.dialect.name == "postgresql" else sqlite


@dataclass(slots=True)
class NameNumbers:
    """Numbers of tests and columns that this process has met; forgotten when a transaction fails."""

    tests: dict[str, int] = field(default_factory=dict)
    columns: dict[Column, int] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget everything: what a failed transaction had numbered is not in the database."""
        self.tests.clear()
        self.columns.clear()

    def learn_tests(self, connection: Connection, names: Iterable[str]) -> None:
        """Give every name a number, in the order given."""
        new = [name for name in dict.fromkeys(map(visible_text, names)) if name not in self.tests]
        if not new:
            return
        self._find_tests(connection, new)
        unknown = [name for name in new if name not in self.tests]
        insert_new(connection, TESTS, [{"name": name} for name in unknown])
        self._find_tests(connection, unknown)

    def _find_tests(self, connection: Connection, names: Sequence[str]) -> None:
        for start in range(0, len(names), _IN_ONE_QUERY):
            query = select(TESTS.c.name, TESTS.c.id).where(TESTS.c.name.in_(names[start : start + _IN_ONE_QUERY]))
            self.tests.update((row.name, row.id) for row in connection.execute(query))

    def learn_columns(self, connection: Connection, pairs: Iterable[Column]) -> None:
        """Give every compiler and backend a number."""
        new = [pair for pair in dict.fromkeys(_visible_pair(*pair) for pair in pairs) if pair not in self.columns]
        if not new:
            return
        self._find_columns(connection)
        unknown = [pair for pair in new if pair not in self.columns]
        if unknown:
            insert_new(
                connection, COLUMNS, [{"compiler": compiler, "backend": backend} for compiler, backend in unknown]
            )
            self._find_columns(connection)

    def _find_columns(self, connection: Connection) -> None:
        rows = connection.execute(select(COLUMNS.c.compiler, COLUMNS.c.backend, COLUMNS.c.id))
        self.columns.update(((row.compiler, row.backend), row.id) for row in rows)

    def test(self, name: str) -> int:
        """Return the number of a test that was learnt."""
        return self.tests[visible_text(name)]

    def column(self, compiler: str, backend: str) -> int:
        """Return the number of a column that was learnt."""
        return self.columns[_visible_pair(compiler, backend)]


def _visible_pair(compiler: str, backend: str) -> Column:
    return visible_text(compiler), visible_text(backend)


@dataclass(slots=True)
class RunNumbers:
    """Numbers of runs: they count up in the order in which runs begin."""

    known: dict[str, int] = field(default_factory=dict)

    def number(self, connection: Connection, run_id: str) -> int:
        """Return the number of a run; UserError when it was never begun here."""
        found = self.known.get(run_id)
        if found is None:
            found = connection.execute(select(RUNS.c.id).where(RUNS.c.run_id == run_id)).scalar()
            if found is None:
                raise UserError("rows of a run that was not begun here", where=run_id, hint="call begin_run first")
            self.known[run_id] = int(found)
        return int(found)
