"""The results of a run, collected on the controller: from serial runs and from xdist workers."""

import os
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from plumbline.compiler.base.errors import UserError
from plumbline.reports.atomic_file import write_whole
from plumbline.reports.places import page_file
from plumbline.reports.provenance import cache_state, describe_run
from plumbline.reports.rows import CallRow, CaseRow, RunRow, utc_now

from .limits.known_failures import read_known, updated, write_known
from .minifying import minify
from .mutating.planted_faults_table import PlantedTrial, score, table_lines
from .plugin_options import PluginOptions
from .recording.ranks import Meeting, Rows, first_line, gather, launched_group, part
from .recording.result_recorder import NoRecorder, ResultRecorder
from .recording.run_plan import partial_reason
from .reporting.compile_summary import compile_lines
from .reporting.github_annotations import annotations
from .reporting.junit_results import skip_in_junit
from .reporting.result_rows import ROWS, rows_of_run
from .reporting.summary import summary_lines

VACUOUS_MARK = "plumbline_vacuous"
JUDGED = "plumbline_judged"
PLANTED = "plumbline_planted"


class Results:
    """Collects rows from reports, stores them, and prints the summary at the end."""

    def __init__(self, config: pytest.Config, options: PluginOptions) -> None:
        self.options = options
        self._latest: dict[str, CaseRow] = {}
        self.planted: list[PlantedTrial] = []
        self.trouble = ""  # why the report is not written
        self.page = ""
        self.known_lines: list[str] = []
        self._group = launched_group(os.environ)
        self._held: list[Rows] = []  # of a run in several ranks, until they have met
        self._meeting: Meeting | None = None
        self._leads = self._group is None or self._group.leads
        self._recorder = (
            ResultRecorder(options.database, config.rootpath, options.plan) if self._leads else NoRecorder()
        )
        self._cache = cache_state()  # before anything is compiled
        self._run: RunRow | None = None
        self._attempts: Counter[str] = Counter()
        self._deselected = 0
        self._config = config

    @property
    def cases(self) -> list[CaseRow]:
        """Return the cases of this session; of one that was run again, what it came to in the end."""
        return list(self._latest.values())

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Count the tests that were chosen not to run."""
        self._deselected += len(items)

    @pytest.hookimpl(trylast=True)  # after the writer of JUnit's XML
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the rows of a finished item; one that is run again in this session (by a plugin) is a retry."""
        if getattr(report, VACUOUS_MARK, False) and report.when == "call":
            skip_in_junit(self._config, report, f"VACUOUS: {getattr(report, JUDGED, 'nothing was compiled')}")
        self.planted += [PlantedTrial(*values) for values in getattr(report, PLANTED, ())]
        data = getattr(report, ROWS, None)
        if data is not None:
            self._take(*rows_of_run(data, self._begun().run_id))

    def _take(self, case: CaseRow, calls: list[CallRow]) -> None:
        attempt = self.options.plan.attempt + self._attempts[case.case_id]
        self._attempts[case.case_id] += 1
        if attempt > 1:
            case, calls = replace(case, attempt=attempt), []
        self._latest[case.case_id] = case
        if self._group is None:
            self._recorder.add(case, calls)
        else:
            self._held.append((case, calls))

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
        """Close the run, write the page, and fail the session when too little was compiled or noticed."""
        if (self.missing_share() or self.missing_score()) and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if self._run is None:
            return
        self._meet(self._run)
        if self._leads:
            self._update_known()
        finished, partial = utc_now() if ran_to_its_end(session) else None, self._partial(session)
        self._recorder.finish(self._run, finished, partial)
        if self.options.report is not None and self._leads:
            self._write_page(finished)
        self.trouble = "; ".join(filter(None, (self._recorder.words(), self.trouble)))
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
        if self.options.faults:
            terminalreporter.section("planted faults")
            for line, markup in table_lines(self.planted):
                terminalreporter.line(line, **markup)
        for annotation in annotations(self.cases, os.environ, str(self._config.rootpath)):
            terminalreporter.line(annotation)
        for line in self.known_lines:
            terminalreporter.line(line)
        place = self.trouble or f"results: {self._recorder.place}"
        terminalreporter.line(place, **({"yellow": True} if self.trouble else {}))
        if self.page:
            terminalreporter.line(f"report: {self.page}")
        if self.options.minify != "off" and self._leads:
            for minified in minify(self.cases, self.options.minify, self._config.rootpath):
                colour = {"green": True} if minified.good else {"yellow": True}
                terminalreporter.line(f"minified: {minified.line()}", **colour)

    def pytest_unconfigure(self) -> None:
        """Close the database; of several ranks, all end together."""
        self._recorder.close()
        if self._group is not None and self._meeting is not None:
            part(self._group, self._meeting)

    def missing_share(self) -> bool:
        """Return whether fewer tests than required had compiled code; skipped ones do not count."""
        counted = [case for case in self.cases if case.outcome not in ("skipped", "error")]
        if self.options.require is None or not counted:
            return False
        return sum(case.ops > 0 for case in counted) < self.options.require * len(counted)

    def missing_score(self) -> bool:
        """Return whether tests noticed fewer of the planted faults than required; of none, no share is enough."""
        noticed, planted = score(self.planted)
        least = self.options.least_score if self.options.faults else 0.0
        return noticed < least * planted or (least > 0 and not planted)

    def _begun(self) -> RunRow:
        if self._run is None:
            plan = self.options.plan
            command = [*sys.argv[:1], *self._config.invocation_params.args]
            run = describe_run(command, self._config.rootpath, kind=plan.kind, suite=plan.suite)
            self._run = replace(run, run_id=plan.run or run.run_id, shards=plan.shards, cache=self._cache)
            self._recorder.begin(self._run)
        return self._run

    def _meet(self, run: RunRow) -> None:
        """Store what several ranks came to: one row a case, of the worst of them."""
        if self._group is None:
            return
        try:
            self._meeting = self._group.meeting()
            joined, self.trouble = gather(self._group, self._meeting, self._held, run.run_id)
        except RuntimeError as error:
            joined, self.trouble = self._held, f"rank {self._group.rank} met no other: {first_line(error)}"
        for case, calls in joined:
            self._latest[case.case_id] = case
            self._recorder.add(case, calls)

    def _partial(self, session: pytest.Session) -> str:
        stopped = str(session.shouldfail or session.shouldstop or "")
        if stopped:
            return stopped
        config = self._config
        typed = [str(arg) for arg in config.args] if config.args_source is config.ArgsSource.ARGS else []
        return partial_reason(vars(config.option), self.options.plan, typed, deselected=self._deselected)

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

    def _write_page(self, finished: str | None) -> None:
        from plumbline.reports.page import render_page, write_page

        assert self._run is not None
        assert self.options.report is not None
        target = page_file(str(self.options.report))
        try:
            store = self._recorder.store
            if store is not None:
                write_page(store, store.run(self._run.run_id), target)
            else:
                write_whole(target, render_page(replace(self._run, finished=finished), self.cases))
        except (UserError, OSError) as error:
            self.trouble = f"the report was not written: {error}"
        else:
            self.page = str(target)


def ran_to_its_end(session: pytest.Session) -> bool:
    """Return whether the run ended as it was meant to: not after Ctrl-C, `pytest.exit` or an error of pytest itself.

    One that `-x` or `--maxfail` stopped has, too; it is partial.
    """
    ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    return session.exitstatus in ended or _ENOUGH_FAILURES in str(session.shouldfail or session.shouldstop)


_ENOUGH_FAILURES = "stopping after"  # how pytest and xdist say it
