"""A result database and how it is reached: places, engines, transactions, and what its troubles mean.

A plain path is an SQLite file; a URL names a PostgreSQL server (`postgresql+psycopg://...`), for teams.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool, StaticPool

from plumbline.compiler.base.errors import UserError

from ..passwords import without_password

LOCK_SECONDS = 30.0  # how long a writer waits for another one's transaction


class DatabaseTrouble(UserError):
    """The database failed while it was used: it is lost, full or refuses; what was to be stored is not."""


class Database:
    """An open database; every use of `transaction` is stored whole or not at all.

    place: its path or URL, without a password, for messages.  One belongs to one process and thread.
    """

    def __init__(self, engine: Engine, place: str) -> None:
        self.engine = engine
        self.place = place

    def __enter__(self) -> Self:
        """Return the database itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the database."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    @property
    def is_postgres(self) -> bool:
        """Return whether this is a PostgreSQL server."""
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Give a connection within a transaction; DatabaseTrouble, in one line, when the database fails."""
        with _as_user_errors(self.place), self.engine.begin() as connection:
            yield connection


def connect(place: str, *, write: bool) -> Database:
    """Reach the database at a path or URL; its tables are not looked at.

    Raises UserError when the place cannot be, or its driver is missing.
    """
    url = _parse(place)
    shown = shown_place(url)
    file = _sqlite_file(url)
    if file is not None:
        _prepare(file, shown, write=write)
    return Database(_engine(url, file, shown, write=write), shown)


def is_file(place: str) -> bool:
    """Return whether a place is an SQLite file, which may hold anything before it is opened."""
    return _sqlite_file(_parse(place)) is not None


def shown_place(place: str | URL) -> str:
    """Return how messages name a database: a path for a file, no password for a server."""
    url = _parse(place) if isinstance(place, str) else place
    file = _sqlite_file(url)
    return str(file) if file is not None else without_password(url.render_as_string(hide_password=True))


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
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        hint = "name an SQLite file or a PostgreSQL URL"
        raise UserError("this kind of database is not supported", where=shown, hint=hint)
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


# What SQLite says -> what we say, and the next thing to do.
_SQLITE_TROUBLE = (
    ("file is not a database", "not an SQLite database", "name another file"),
    ("file is encrypted", "not an SQLite database", "name another file"),
    ("malformed", "the database is damaged", "move it away; the next run makes a new one"),
    ("readonly database", "the database cannot be written", "make it writable, or name another one"),
    ("unable to open", "the database cannot be opened", "check its path and permissions"),
    ("is locked", "another process holds the database", "try again when it is done"),
    ("disk is full", "no space left for the database", "free some space"),
    ("disk I/O error", "the database cannot be written", "check the disk and its free space"),
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
                raise DatabaseTrouble(what, where=place, why=_reason(cause), hint=hint) from error
        hint = "check the address, the network and the permissions"
        raise DatabaseTrouble("the database failed", where=place, why=_reason(cause), hint=hint) from error


def _reason(error: BaseException) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return without_password(str(text).strip().splitlines()[0])[:200]
