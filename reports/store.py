"""The result store: rows into a database by one transaction a call, and out again.

A plain path is an SQLite file; any SQLAlchemy URL works (`postgresql+psycopg://...` for teams).
Nothing is half-written: every public method is one transaction, and a run that was interrupted
stays readable and says so (`RunRow.finished` is None).
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection, Engine, Table, create_engine, event, insert, inspect, select, update
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from plumbline.compiler.base.errors import UserError

from .passwords import without_password
from .rows import SCHEMA_VERSION, CallRow, CaseRow, Row, RunRow, field_types, utc_now
from .schema import CALLS, CASES, META, METADATA, RUNS

LOCK_SECONDS = 30.0  # how long a writer waits for another one's transaction
_AnyRow = TypeVar("_AnyRow", bound=Row)


class SchemaMismatch(UserError):
    """The database was written by a plumbline whose rows have another shape."""


class ResultStore:
    """An open result database; a context manager, opened by `open_store`.

    One store belongs to one process and thread; several processes may write to one database.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self._engine = engine
        self.place = place

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the store."""
        self.close()

    def close(self) -> None:
        """Close the database; what was appended is stored already."""
        self._engine.dispose()

    def begin_run(self, run: RunRow) -> None:
        """Record the start of a run; it counts as interrupted until `finish_run`."""
        if run.schema_version != SCHEMA_VERSION:
            raise SchemaMismatch(
                f"a run of schema {run.schema_version} cannot be stored as schema {SCHEMA_VERSION}",
                where=self.place,
                hint="use one version of plumbline for the whole run",
            )
        with self._transaction() as connection:
            connection.execute(insert(RUNS), [_values(run)])

    def append(self, cases: Iterable[CaseRow] = (), calls: Iterable[CallRow] = ()) -> None:
        """Add rows of a begun run: all of them, or none when the database fails (UserError)."""
        case_values = [_values(row) for row in cases]
        call_values = [_values(row) for row in calls]
        if not case_values and not call_values:
            return
        with self._transaction() as connection:
            if case_values:
                connection.execute(insert(CASES), case_values)
            if call_values:
                connection.execute(insert(CALLS), call_values)

    def finish_run(self, run_id: str, utc: str | None = None) -> None:
        """Mark a run as complete."""
        with self._transaction() as connection:
            connection.execute(update(RUNS).where(RUNS.c.run_id == run_id).values(finished=utc or utc_now()))

    def runs(self, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        return self._read(RunRow, RUNS, select(RUNS).order_by(RUNS.c.id.desc()).limit(limit))

    def run(self, name: str | None = None) -> RunRow:
        """Return the newest run, or the one whose run_id is or begins with `name`.

        Raises UserError when there is none, or when a beginning fits several.
        """
        runs = self.runs()
        if not runs:
            raise UserError("no runs recorded", where=self.place, hint="run pytest with --compile-backends=all first")
        if name is None:
            return runs[0]
        exact = [run for run in runs if run.run_id == name]
        matching = exact or [run for run in runs if run.run_id.startswith(name)]
        if len(matching) == 1:
            return matching[0]
        what = f"no run {name!r}" if not matching else f"{len(matching)} runs begin with {name!r}"
        recent = ", ".join(run.run_id for run in (matching or runs)[:3])
        raise UserError(what, where=self.place, hint=f"name one of: {recent}")

    def cases(self, run_id: str) -> list[CaseRow]:
        """Return the cases of one run, in the order in which they were appended."""
        return self._read(CaseRow, CASES, select(CASES).where(CASES.c.run_id == run_id).order_by(CASES.c.id))

    def calls(self, run_id: str, case_id: str | None = None) -> list[CallRow]:
        """Return the judged calls of one run, or of one case of it."""
        query = select(CALLS).where(CALLS.c.run_id == run_id).order_by(CALLS.c.id)
        if case_id is not None:
            query = query.where(CALLS.c.case_id == case_id)
        return self._read(CallRow, CALLS, query)

    def history(self, run_id: str, limit: int = 20) -> dict[str, list[tuple[str, str, float]]]:
        """Return case_id -> (run_id, outcome, margin) of up to `limit` runs ending with this one, oldest first."""
        with self._transaction() as connection:
            last = connection.execute(select(RUNS.c.id).where(RUNS.c.run_id == run_id)).scalar()
            if last is None:
                return {}
            recent = select(RUNS.c.run_id).where(RUNS.c.id <= last).order_by(RUNS.c.id.desc()).limit(limit)
            names = [row.run_id for row in connection.execute(recent)]
            query = (
                select(CASES.c.case_id, CASES.c.run_id, CASES.c.outcome, CASES.c.margin)
                .join(RUNS, RUNS.c.run_id == CASES.c.run_id)
                .where(CASES.c.run_id.in_(names))
                .order_by(RUNS.c.id, CASES.c.id)
            )
            histories: dict[str, list[tuple[str, str, float]]] = {}
            for case_id, run, outcome, margin in connection.execute(query):
                histories.setdefault(case_id, []).append((run, outcome, margin))
            return histories

    def _read(self, kind: type[_AnyRow], table: Table, query: Any) -> list[_AnyRow]:
        names = tuple(field_types(kind))
        columns = query.with_only_columns(*(table.c[name] for name in names))
        with self._transaction() as connection:
            return [kind(**dict(zip(names, row, strict=True))) for row in connection.execute(columns)]

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with _as_user_errors(self.place), self._engine.begin() as connection:
            yield connection


def open_store(place: str, *, write: bool = False) -> ResultStore:
    """Open the result database at a path or URL; for writing, create it if it does not exist.

    Raises UserError (one line, with the next thing to do) when it cannot be opened, is not a database,
    or lacks its driver, and SchemaMismatch when another version of plumbline wrote it; the file is
    not touched then.
    """
    url = _parse(place)
    shown = _shown(url)
    file = _sqlite_file(url)
    if file is not None:
        _prepare(file, shown, write=write)
    store = ResultStore(_engine(url, file, shown, write=write), shown)
    try:
        _check_schema(store, write=write, is_file=file is not None)
    except BaseException:
        store.close()
        raise
    return store


def _values(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in field_types(type(row))}


def _parse(place: str) -> URL:
    if "://" not in place:
        return URL.create("sqlite", database=str(Path(place).expanduser().absolute()))
    try:
        url = make_url(place)
    except ArgumentError:
        raise UserError("not a database URL", hint="write a path, sqlite:///PATH or postgresql+psycopg://...") from None
    if url.drivername in ("postgresql", "postgres"):  # the driver that our `postgres` extra installs
        return url.set(drivername="postgresql+psycopg")
    return url


def _shown(url: URL) -> str:
    """Return how messages name a database: a path for a file, no password for a server."""
    file = _sqlite_file(url)
    return str(file) if file is not None else without_password(url.render_as_string(hide_password=True))


def _sqlite_file(url: URL) -> Path | None:
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return None if url.database.startswith("file:") else Path(url.database)


def _prepare(file: Path, shown: str, *, write: bool) -> None:
    if file.is_dir():
        raise UserError("the database is a directory", where=shown, hint="name a file in it, such as results.sqlite")
    if write:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            hint, folder = "choose another place for the database", str(file.parent)
            raise UserError("cannot make the directory", where=folder, why=_reason(error), hint=hint) from None
    elif not file.exists():
        hint = "run pytest with --compile-backends=all first, or name the database with --db"
        raise UserError("no result database here", where=shown, hint=hint)


def _engine(url: URL, file: Path | None, shown: str, *, write: bool) -> Engine:
    options: dict[str, Any] = {}
    if file is not None:
        options = {"poolclass": NullPool, "creator": _sqlite_connector(file, write=write)}
    elif url.get_backend_name() == "sqlite":
        options = {"poolclass": StaticPool}
    try:
        engine = create_engine(url, **options)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        ours = "psycopg" in str(error)
        hint = "pip install 'plumbline[postgres]'" if ours else "install the driver that the URL names"
        raise UserError("no driver for this database", where=shown, why=_reason(error), hint=hint) from None
    if url.get_backend_name() == "sqlite":
        _begin_transactions_ourselves(engine, "BEGIN IMMEDIATE" if write else "BEGIN")
    return engine


def _sqlite_connector(file: Path, *, write: bool) -> Any:
    # A reader opens for writing too, makes no file and writes nothing: a reader proper could not
    # clean up after a writer that was killed.  SQLite falls back to reading when the file forbids more.
    # The journal stays SQLite's default: a write-ahead log leaves two more files beside the database,
    # cannot be read from a read-only directory and fails on network drives; our transactions are short.
    address = f"{file.absolute().as_uri()}?mode={'rwc' if write else 'rw'}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, timeout=LOCK_SECONDS, isolation_level=None)
        if not write:
            connection.execute("PRAGMA query_only=ON")
        return connection

    return connect


def _begin_transactions_ourselves(engine: Engine, statement: str) -> None:
    # A write transaction takes its lock at once and so waits its turn; begun as a reader it would fail
    # without waiting when another process wrote in between.
    @event.listens_for(engine, "connect")
    def leave_transactions_to_us(connection: Any, record: object) -> None:
        del record
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(statement)


_MAKING_TABLES = 0x706C756D62  # any number that other programs on the server are unlikely to lock


def _check_schema(store: ResultStore, *, write: bool, is_file: bool) -> None:
    with store._transaction() as connection:
        if write and connection.dialect.name == "postgresql":  # two first runs at once must not both make tables
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MAKING_TABLES})")
        tables = inspect(connection).get_table_names()
        if META.name in tables:
            versions = [row.schema_version for row in connection.execute(select(META))]
            if versions != [SCHEMA_VERSION]:
                raise _mismatch(store.place, versions)
        elif not write or (is_file and tables):
            hint = "name another database" if tables else "run pytest with --compile-backends=all first"
            why = f"its tables are {', '.join(sorted(tables)[:3])}" if tables else "it is empty"
            raise UserError("not a result database of plumbline", where=store.place, why=why, hint=hint)
        else:
            METADATA.create_all(connection)
            connection.execute(insert(META), [{"schema_version": SCHEMA_VERSION}])


def _mismatch(place: str, versions: Sequence[int]) -> SchemaMismatch:
    known = ", ".join(map(str, versions)) or "none"
    return SchemaMismatch(
        f"the database has schema version {known}, this plumbline writes {SCHEMA_VERSION}",
        where=place,
        hint="name a new database, or use the plumbline that wrote this one",
    )


# What SQLite says -> what we say, and the next thing to do.
_SQLITE_TROUBLE = (
    ("file is not a database", "not an SQLite database", "name another file"),
    ("file is encrypted", "not an SQLite database", "name another file"),
    ("malformed", "the database is damaged", "move it away; the next run makes a new one"),
    ("readonly database", "the database cannot be written", "make it writable, or name another one"),
    ("unable to open", "the database cannot be opened", "check its path and permissions"),
    ("is locked", "another process holds the database", "try again when it is done"),
    ("disk is full", "no space left for the database", "free some space"),
    ("UNIQUE constraint", "this run is recorded already", "give every run its own run_id"),
    ("unique constraint", "this run is recorded already", "give every run its own run_id"),
)


@contextmanager
def _as_user_errors(place: str) -> Iterator[None]:
    """Turn what a driver raises into one line with the next thing to do."""
    try:
        yield
    except (SQLAlchemyError, sqlite3.Error, OverflowError) as error:
        cause = getattr(error, "orig", None) or error
        for sign, what, hint in _SQLITE_TROUBLE:
            if sign in str(cause):
                raise UserError(what, where=place, why=_reason(cause), hint=hint) from error
        hint = "check the address, the network and the permissions"
        raise UserError("the database failed", where=place, why=_reason(cause), hint=hint) from error


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return without_password(str(text).strip().splitlines()[0])[:200]
