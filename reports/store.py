"""The result store: rows into a database by one transaction a call, and out again.

Nothing is half-written: every public method is one transaction, and a run that was interrupted stays readable and
says so (`RunRow.finished` is None).  Nothing is doubled: rows are keyed by run, test, column and attempt, so that
whoever does not know whether rows arrived sends them again.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from plumbline.compiler.base.errors import UserError

from .rows import SCHEMA_VERSION, CallRow, CaseRow, RunRow, field_types, identify_case, utc_now
from .storage.database import Database, connect, is_file
from .storage.migrations import SchemaMismatch, is_older, prepare_schema
from .storage.name_numbers import NameNumbers, RunNumbers, insert_new
from .storage.result_values import read_attempts, read_calls, read_cases, store_calls, store_cases
from .storage.schema import COLUMNS, RESULTS, RUNS, SHARDS, TESTS

__all__ = ["ResultStore", "SchemaMismatch", "open_store"]


class ResultStore(Database):
    """An open result database; a context manager, opened by `open_store`.

    One store belongs to one process and thread; several processes may write to one database.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database.engine, database.place)
        self._names, self._runs = NameNumbers(), RunNumbers()

    def begin_run(self, run: RunRow, *, shard: int = 1) -> None:
        """Record the start of a run; it counts as interrupted until `finish_run`.

        shard: which of the run's sessions this is; those of one run have the same row but for times and machines, and
        the first of them stores it.  Raises UserError for a run (or shard of it) that was begun before.
        """
        if run.schema_version != SCHEMA_VERSION:
            raise SchemaMismatch(
                f"a run of schema {run.schema_version} cannot be stored as schema {SCHEMA_VERSION}",
                where=self.place,
                hint="use one version of plumbline for the whole run",
            )
        with self.transaction() as connection:
            self._one_at_a_time(connection, run.run_id)
            there = connection.execute(select(RUNS.c.id, RUNS.c.shards).where(RUNS.c.run_id == run.run_id)).first()
            if there is not None and (run.shards == 1 or there.shards != run.shards):
                what = "this run is recorded already" if run.shards == 1 else f"the run has {there.shards} shards"
                raise UserError(what, where=self.place, why=run.run_id, hint="give every run its own run_id")
            if there is None:
                values = {name: getattr(run, name) for name in field_types(RunRow)}
                connection.execute(insert(RUNS), [values])
            number = self._runs.number(connection, run.run_id)
            begun = {"run": number, "shard": shard, "machine": run.machine, "begun": run.utc}
            insert_new(connection, SHARDS, [begun])

    def append(self, cases: Iterable[CaseRow] = (), calls: Iterable[CallRow] = ()) -> None:
        """Add rows of begun runs that are not stored yet: all of them, or none when the database fails (UserError)."""
        cases, calls = list(cases), list(calls)
        if not cases and not calls:
            return
        try:
            with self.transaction() as connection:
                for run_id in sorted({case.run_id for case in cases} | {call.run_id for call in calls}):
                    self._one_at_a_time(connection, run_id)
                new = store_cases(connection, cases, self._names, self._runs)
                named = {case.case_id: (case.test, case.compiler, case.backend) for case in cases}
                late = [call for call in calls if call.case_id not in named]
                if late:
                    named |= self._stored_names(connection, {call.run_id for call in late})
                kept = [call for call in calls if (call.run_id, call.case_id) in new or call in late]
                store_calls(connection, kept, named, self._names, self._runs)
        except BaseException:
            self._names.forget()  # numbers that the failed transaction gave are gone with it
            self._runs.known.clear()
            raise

    def finish_run(self, run_id: str, utc: str | None = None, *, shard: int = 1, partial: str = "") -> bool:
        """Mark a run, or one shard of it, as complete; return whether the whole run is.

        partial: why not every test of this shard had its turn.
        """
        with self.transaction() as connection:
            self._one_at_a_time(connection, run_id)
            number = self._runs.number(connection, run_id)
            ended = {"finished": utc or utc_now(), "partial": partial}
            connection.execute(update(SHARDS).where(SHARDS.c.run == number, SHARDS.c.shard == shard).values(ended))
            shards = list(connection.execute(select(SHARDS).where(SHARDS.c.run == number)))
            planned = connection.execute(select(RUNS.c.shards).where(RUNS.c.id == number)).scalar() or 1
            done = [row for row in shards if row.finished]
            if len(done) < planned:
                return False
            reasons = "; ".join(dict.fromkeys(row.partial for row in done if row.partial))
            values = {"finished": max(row.finished for row in done)} | ({"partial": reasons} if reasons else {})
            connection.execute(update(RUNS).where(RUNS.c.id == number).values(values))
            return True

    def has_shard(self, run_id: str, shard: int = 1) -> bool:
        """Return whether a run, or this shard of it, was begun."""
        query = select(SHARDS.c.run).join(RUNS, RUNS.c.id == SHARDS.c.run)
        with self.transaction() as connection:
            found = connection.execute(query.where(RUNS.c.run_id == run_id, SHARDS.c.shard == shard)).first()
        return found is not None

    def runs(self, limit: int | None = None) -> list[RunRow]:
        """Return the runs, newest first."""
        names = tuple(field_types(RunRow))
        query = select(*(RUNS.c[name] for name in names)).order_by(RUNS.c.id.desc()).limit(limit)
        with self.transaction() as connection:
            return [RunRow(**dict(zip(names, row, strict=True))) for row in connection.execute(query)]

    def run(self, name: str | None = None) -> RunRow:
        """Return the newest run, or the one whose run_id is or begins with `name`.

        Raises UserError when there is none, or when a beginning fits several.
        """
        runs = self.runs(1 if name is None else None)
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
        """Return the cases of one run, first attempts, tests in the order in which the database met them."""
        with self.transaction() as connection:
            return read_cases(connection, run_id)

    def attempts(self, run_id: str) -> list[CaseRow]:
        """Return the retries of one run: attempt 2 and higher."""
        with self.transaction() as connection:
            return read_attempts(connection, run_id)

    def calls(self, run_id: str, case_id: str | None = None) -> list[CallRow]:
        """Return the judged calls of one run, or of one case of it."""
        with self.transaction() as connection:
            return read_calls(connection, run_id, case_id)

    def history(self, run_id: str, limit: int = 20) -> dict[str, list[tuple[str, str, float]]]:
        """Return case_id -> (run_id, outcome, margin) of up to `limit` runs ending with this one, oldest first.

        Only runs of the same kind, suite and branch count, and no void ones.
        """
        with self.transaction() as connection:
            last = connection.execute(select(RUNS).where(RUNS.c.run_id == run_id)).first()
            if last is None:
                return {}
            alike = [RUNS.c[name] == getattr(last, name) for name in ("kind", "suite", "branch")]
            recent = select(RUNS.c.id, RUNS.c.run_id).where(*alike, RUNS.c.id <= last.id, RUNS.c.void == "")
            runs = {row.id: row.run_id for row in connection.execute(recent.order_by(RUNS.c.id.desc()).limit(limit))}
            query = (
                select(RESULTS.c.run, TESTS.c.name, COLUMNS.c.compiler, COLUMNS.c.backend)
                .add_columns(RESULTS.c.outcome, RESULTS.c.margin)
                .join(TESTS, TESTS.c.id == RESULTS.c.test)
                .join(COLUMNS, COLUMNS.c.id == RESULTS.c.col)
                .where(RESULTS.c.run.in_(list(runs)))
                .order_by(RESULTS.c.run)
            )
            names: dict[tuple[str, str, str], str] = {}
            histories: dict[str, list[tuple[str, str, float]]] = {}
            for number, *named, outcome, margin in connection.execute(query):
                case = (named[0], named[1], named[2])
                case_id = names.get(case) or names.setdefault(case, identify_case(*case))
                histories.setdefault(case_id, []).append((runs[number], outcome, margin))
            return histories

    def count(self, run_id: str) -> int:
        """Return how many cases of a run are stored."""
        query = select(func.count()).select_from(RESULTS.join(RUNS, RUNS.c.id == RESULTS.c.run))
        with self.transaction() as connection:
            return int(connection.execute(query.where(RUNS.c.run_id == run_id)).scalar() or 0)

    def change_run(self, run: RunRow, **fields: Any) -> RunRow:
        """Change fields of a stored run, such as why it is void; return the row as it is then."""
        with self.transaction() as connection:
            connection.execute(update(RUNS).where(RUNS.c.run_id == run.run_id).values(**fields))
        return replace(run, **fields)

    def _one_at_a_time(self, connection: Connection, run_id: str) -> None:
        # SQLite's write transactions wait for each other anyway.
        if self.is_postgres:
            connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"plumbline {run_id}"))))

    def _stored_names(self, connection: Connection, run_ids: Iterable[str]) -> dict[str, tuple[str, str, str]]:
        cases = [case for run_id in run_ids for case in read_cases(connection, run_id)]
        self._names.learn_tests(connection, (case.test for case in cases))
        self._names.learn_columns(connection, ((case.compiler, case.backend) for case in cases))
        return {case.case_id: (case.test, case.compiler, case.backend) for case in cases}


def open_store(place: str, *, write: bool = False) -> ResultStore:
    """Open the result database at a path or URL; for writing, create it if it does not exist.

    A database of an earlier schema is moved to today's, by readers too.
    Raises UserError (one line, with the next thing to do) when it cannot be opened, is not a database,
    or lacks its driver, and SchemaMismatch when a later version of plumbline wrote it; the file is
    not touched then.
    """
    store = ResultStore(connect(place, write=write))
    try:
        if not write and is_older(store):
            with connect(place, write=True) as writer:
                prepare_schema(writer, write=True, is_file=is_file(place))
        prepare_schema(store, write=write, is_file=is_file(place))
    except BaseException:
        store.close()
        raise
    return store
