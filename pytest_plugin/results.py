"""The results of a run, collected on the controller: from serial runs and from xdist workers."""

import contextlib
import os
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.reports.atomic_file import write_whole
from plumbline.reports.page import render_page, write_page
from plumbline.reports.passwords import without_password
from plumbline.reports.places import page_file
from plumbline.reports.provenance import describe_run
from plumbline.reports.rows import CallRow, CaseRow, RunRow, utc_now
from plumbline.reports.store import ResultStore, open_store

from .limits.known_failures import read_known, updated, write_known
from .minifying import minify
from .plugin_options import PluginOptions
from .reporting.compile_summary import compile_lines
from .reporting.github_annotations import annotations
from .reporting.junit_results import skip_in_junit
from .reporting.result_rows import ROWS, rows_of_run
from .reporting.summary import summary_lines

VACUOUS_MARK = "plumbline_vacuous"
JUDGED = "plumbline_judged"
STORE_SECONDS = 1.0
"""How long the row of a test that judged nothing waits for others: a transaction costs more than such a test."""


class Results:
    """Collects rows from reports, stores them, and prints the summary at the end."""

    def __init__(self, config: pytest.Config, options: PluginOptions) -> None:
        self.options = options
        self.cases: list[CaseRow] = []
        self.trouble = ""  # why results are not, or no longer, stored
        self.page = ""
        self.known_lines: list[str] = []
        self._store: ResultStore | None = open_store(options.database, write=True)
        self._run: RunRow | None = None
        self._waiting: list[tuple[CaseRow, list[CallRow]]] = []
        self._stored_at = time.monotonic()
        self._config = config

    @pytest.hookimpl(trylast=True)  # after the writer of JUnit's XML
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the rows of a finished item and store them: at once if it judged anything, else soon."""
        if getattr(report, VACUOUS_MARK, False) and report.when == "call":
            skip_in_junit(self._config, report, f"VACUOUS: {getattr(report, JUDGED, 'nothing was compiled')}")
        data = getattr(report, ROWS, None)
        if data is not None:
            self._take(*rows_of_run(data, self._begun().run_id))

    def _take(self, case: CaseRow, calls: list[CallRow]) -> None:
        self.cases.append(case)
        self._waiting.append((case, calls))
        if calls or time.monotonic() - self._stored_at >= STORE_SECONDS:  # the next item may end the process
            self._store_waiting()

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, object] | None:
        """Show a vacuous test as such, and not among the passed."""
        if getattr(report, VACUOUS_MARK, False) and report.when == "call":
            return "vacuous", "V", (f"VACUOUS {getattr(report, JUDGED, '')}".strip(), {"yellow": True})
        judged = getattr(report, JUDGED, "")
        if judged and report.passed and report.when == "call" and not hasattr(report, "wasxfail"):
            return "passed", ".", (f"PASSED {judged}", {"green": True})
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Close the run, write the page, and fail the session when too few tests compiled anything."""
        if self.missing_share() and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._run is None:
            return
        self._store_waiting()
        self._update_known()
        finished = utc_now() if ran_to_its_end(session) else None
        if self._store is not None and finished is not None:
            try:
                self._store.finish_run(self._run.run_id, finished)
            except UserError as error:
                self._give_up(error)
        if self.options.report is not None:
            self._write_page(finished)
        if self.trouble and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED  # whoever reads the results would miss some

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the table, the failures by stage and warnings."""
        lines = summary_lines(self.cases, require=self.options.require)
        if not lines:
            return
        terminalreporter.section("compiled code, judged by plumbline")
        for line, markup in [*lines, *compile_lines(self.cases)]:
            terminalreporter.line(line, **markup)
        for annotation in annotations(self.cases, os.environ, str(self._config.rootpath)):
            terminalreporter.line(annotation)
        for line in self.known_lines:
            terminalreporter.line(line)
        place = self.trouble or f"results: {self._shown_database()}"
        terminalreporter.line(place, **({"yellow": True} if self.trouble else {}))
        if self.page:
            terminalreporter.line(f"report: {self.page}")
        if self.options.minify != "off":
            for minified in minify(self.cases, self.options.minify, self._config.rootpath):
                colour = {"green": True} if minified.good else {"yellow": True}
                terminalreporter.line(f"minified: {minified.test}: {minified.sentence}", **colour)

    def pytest_unconfigure(self) -> None:
        """Close the database."""
        if self._store is not None:
            self._store.close()

    def missing_share(self) -> bool:
        """Return whether fewer tests than required had compiled code; skipped ones do not count."""
        counted = [case for case in self.cases if case.outcome not in ("skipped", "error")]
        if self.options.require is None or not counted:
            return False
        return sum(case.ops > 0 for case in counted) < self.options.require * len(counted)

    def _begun(self) -> RunRow:
        if self._run is None:
            self._run = describe_run([*sys.argv[:1], *self._config.invocation_params.args], self._config.rootpath)
            if self._store is not None:
                try:
                    self._store.begin_run(self._run)
                except UserError as error:
                    self._give_up(error)
        return self._run

    def _store_waiting(self) -> None:
        self._stored_at = time.monotonic()
        waiting, self._waiting = self._waiting, []
        if self._store is None:
            return
        try:
            self._store.append([case for case, _ in waiting], [call for _, calls in waiting for call in calls])
        except UserError as error:
            self._give_up(error)

    def _update_known(self) -> None:
        place = self.options.known
        if place is None or not self.options.update_known:
            return
        entries = updated(read_known(place, update=True), self.cases)
        try:
            write_known(place, entries)
        except OSError as error:
            self.trouble = f"the known failures were not written: {error}"
        else:
            self.known_lines = [f"known failures: {len(entries)} in {place}"]

    def _give_up(self, error: UserError) -> None:
        # A database that fails during the run must not end the test run.
        self.trouble = f"results are not stored: {error.one_line()}"
        if self._store is not None:
            with contextlib.suppress(UserError):
                self._store.close()
        self._store = None

    def _write_page(self, finished: str | None) -> None:
        assert self._run is not None
        assert self.options.report is not None
        target = page_file(str(self.options.report))
        try:
            if self._store is not None:
                write_page(self._store, self._store.run(self._run.run_id), target)
            else:
                write_whole(target, render_page(replace(self._run, finished=finished), self.cases))
        except (UserError, OSError) as error:
            self.trouble = f"the report was not written: {error}"
        else:
            self.page = str(target)

    def _shown_database(self) -> str:
        return self._store.place if self._store is not None else without_password(self.options.database)


def ran_to_its_end(session: pytest.Session) -> bool:
    """Return whether every test had its turn: not after Ctrl-C, `pytest.exit`, `-x` or an error of pytest itself."""
    ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    return session.exitstatus in ended and not (session.shouldstop or session.shouldfail)
