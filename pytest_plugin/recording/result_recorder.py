"""Rows of a session on their way into the database: each into the spool first, then stored, then forgotten there."""

import contextlib
import time
from pathlib import Path

from plumbline.compiler.base.errors import UserError
from plumbline.reports.rows import CallRow, CaseRow, RunRow
from plumbline.reports.spool import Spool, send_waiting, spool_folders
from plumbline.reports.storage.database import DatabaseTrouble, is_file, shown_place
from plumbline.reports.store import ResultStore, open_store

from .run_plan import RunPlan

STORE_SECONDS = 1.0
"""How long a row waits for others: a transaction costs more than many a test, and the spool has the row."""


class ResultRecorder:
    """Stores the rows of one session; a database that fails ends nothing, and its rows stay in the spool.

    store: None once the database has failed.  trouble: what failed, in words, else "".
    """

    def __init__(self, database: str, root: Path, plan: RunPlan) -> None:
        self.trouble = ""
        self.place = shown_place(database)
        self.store: ResultStore | None = None
        self._folders = spool_folders(root)
        self._plan = plan
        self._spool: Spool | None = None
        self._waiting: list[tuple[CaseRow, list[CallRow]]] = []
        self._stored_at = time.monotonic()
        try:
            self.store = open_store(database, write=True)
            send_waiting(self.store, self._folders)
        except DatabaseTrouble as error:
            if is_file(database):  # nothing has run yet, and a file that cannot be used is a mistake to correct
                raise
            self._give_up(error)

    def begin(self, run: RunRow) -> None:
        """Begin the run, or a shard of it; retries belong to a run that has begun."""
        plan = self._plan
        self._spool = Spool(self._folders, self.place, f"{run.run_id}-{plan.shard}-{plan.attempt}".replace("/", "_"))
        self._spool.begin(run, plan.shard)
        if self.store is not None and plan.attempt == 1:
            try:
                self.store.begin_run(run, shard=plan.shard)
            except UserError as error:
                self._give_up(error)

    def add(self, case: CaseRow, calls: list[CallRow]) -> None:
        """Take a finished row: into the spool now, into the database now or soon."""
        assert self._spool is not None
        self._spool.add(case, calls)
        self._waiting.append((case, calls))
        if calls or time.monotonic() - self._stored_at >= STORE_SECONDS:  # the next item may end the process
            self.store_waiting()

    def store_waiting(self) -> None:
        """Store what waits."""
        self._stored_at = time.monotonic()
        waiting, self._waiting = self._waiting, []
        if self.store is None or self._spool is None or not waiting:
            return
        try:
            self.store.append([case for case, _ in waiting], [call for _, calls in waiting for call in calls])
        except UserError as error:
            self._give_up(error)
        else:
            self._spool.sent()

    def finish(self, run: RunRow, finished: str | None, partial: str) -> None:
        """Mark the run, or this shard of it, as complete, unless it was interrupted (`finished` is None)."""
        self.store_waiting()
        if finished is None or self._plan.attempt > 1:
            return
        if self.store is not None:
            try:
                self.store.finish_run(run.run_id, finished, shard=self._plan.shard, partial=partial)
            except UserError as error:
                self._give_up(error)
        if self.store is None and self._spool is not None:
            self._spool.finish(finished, partial)

    def words(self) -> str:
        """Return what to tell the user about trouble: what failed, and where the rows are."""
        if not self.trouble:
            return ""
        kept = self._spool.path if self._spool is not None else None
        lost = f"; {self._spool.lost} rows are lost, no disk took them" if self._spool and self._spool.lost else ""
        where = f"; they wait in {kept}, and `plumbline spool` sends them" if kept is not None else ""
        return f"results are not stored: {self.trouble}{where}{lost}"

    def close(self) -> None:
        """Close the database."""
        if self._spool is not None:
            self._spool.close()
        if self.store is not None:
            self.store.close()

    def _give_up(self, error: UserError) -> None:
        self.trouble = error.one_line()
        if self.store is not None:
            with contextlib.suppress(UserError):
                self.store.close()
        self.store = None


class NoRecorder:
    """Stores nothing: of several ranks, rank 0 stores the rows of all."""

    place = "with rank 0"
    store = None

    def begin(self, run: RunRow) -> None:
        """Begin nothing."""

    def add(self, case: CaseRow, calls: list[CallRow]) -> None:
        """Keep nothing."""

    def finish(self, run: RunRow, finished: str | None, partial: str) -> None:
        """Finish nothing."""

    def words(self) -> str:
        """Return that there is no trouble."""
        return ""

    def close(self) -> None:
        """Close nothing."""
