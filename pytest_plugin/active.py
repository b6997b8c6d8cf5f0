"""The active half of the plugin: hooks that exist only while backends are chosen."""

from collections.abc import Generator
from dataclasses import astuple
from typing import Any

import pytest

from plumbline.compiler.base.errors import UserError

from .asked_variants import AskedVariants
from .decision import Decision
from .fixtures import announce, withdraw
from .items import JudgedItem, check_markers, multiply, side_by_side
from .judge_access import available_compilers
from .judged_run import PROGRESS, STOPS, ItemRuns, forget_unittest_ending
from .limits.known_failures import read_known
from .limits.last_words import LAST_WORDS, LastWords
from .limits.worker_deaths import WorkerDeaths
from .plugin_options import PluginOptions, read_options
from .recording.item_source import source_hash
from .recording.peak_memory import PeakMemory
from .reporting.failure_text import failure_repr, judgement_error, label_own_failure, traceback_to
from .reporting.judged_share import judged_share
from .reporting.junit_results import properties_of
from .reporting.result_rows import ROWS, item_rows
from .results import JUDGED, PLANTED, VACUOUS_MARK, Results
from .rewriting.call_rewriting import CallRewriter
from .seeding import seeded_fixture

OUTCOME = pytest.StashKey[str]()
SECONDS = pytest.StashKey[float]()
MEMORY = pytest.StashKey[PeakMemory]()
PEAK = pytest.StashKey[int]()


def activate(config: pytest.Config) -> None:
    """Check the settings and register the hooks; raises pytest.UsageError with one line for a bad setting."""
    is_worker = hasattr(config, "workerinput")
    try:
        available = available_compilers()
        options = read_options(config, available)
        asked = AskedVariants(config, options.variants)
        # Last, because it creates a file: an earlier error must leave nothing behind.
        results = None if is_worker else Results(config, options)
    except UserError as error:
        raise pytest.UsageError(error.one_line()) from None
    words = getattr(config, "workerinput", {}).get(LAST_WORDS)
    try:
        known = read_known(options.known, update=options.update_known)
    except UserError as error:
        raise pytest.UsageError(error.one_line()) from None
    runs = ItemRuns(options, available, keep_frames=bool(config.getoption("usepdb", False)), known=known)
    runs.last_words = LastWords(words) if words else None
    hooks = JudgingHooks(config, options, runs, asked)
    config.pluginmanager.register(hooks, "plumbline-judging")
    config.pluginmanager.register(VariantHooks(hooks), "plumbline-variants")
    if results is not None:
        config.pluginmanager.register(results, "plumbline-results")
        if options.isolate:
            config.pluginmanager.register(WorkerDeaths(known), "plumbline-worker-deaths")


class VariantHooks:
    """The first of all hooks that see what was collected; the others see variants."""

    def __init__(self, hooks: "JudgingHooks") -> None:
        self.hooks = hooks

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item], config: pytest.Config) -> None:
        """Make the variants."""
        self.hooks.make_variants(items, config)


class JudgingHooks:
    """Thin hooks around collection and the three phases of an item."""

    def __init__(self, config: pytest.Config, options: PluginOptions, runs: ItemRuns, asked: AskedVariants) -> None:
        self.options = options
        self.runs = runs
        self.asked = asked
        kinds = frozenset(options.boundary.split(","))
        self.calls = CallRewriter(config, kinds) if kinds != {"explicit"} else None
        announce(config)

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Undo the changes of test modules."""
        withdraw(config)
        if self.calls is not None:
            self.calls.undo()

    def make_variants(self, items: list[pytest.Item], config: pytest.Config) -> None:
        """Put the variants of each collected test in its place.

        Tests are chosen by ids that know nothing of variants, so these are made after the choice, before any other.
        """
        prefixes = tuple(config.getoption("deselect", None) or ())
        left_out = [item for item in items if item.nodeid.startswith(prefixes)] if prefixes else []
        if left_out:
            config.hook.pytest_deselected(items=left_out)
        kept = [item for item in items if item not in left_out]
        before = len(items)
        items[:] = multiply(kept, lambda item: self.asked.of(item, self.options.variants), self.runs.equip)
        self.asked.note([item for item in items if isinstance(item, JudgedItem)])
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:  # it counts what is collected, and later subtracts what is left out
            terminal._numcollected += len(items) + len(left_out) - before

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Bring variants together and refuse marks with unknown arguments."""
        side_by_side(items, self.options.variants)
        try:
            check_markers(items)
        except UserError as error:
            raise pytest.UsageError(error.one_line()) from None
        if self.calls is not None:
            self.calls.rewrite(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, object, object]:
        """Seed fixtures of wider scope by their own name, and save shared state before an item's own fixtures run."""
        item = request._pyfuncitem
        progress = item.stash.get(PROGRESS, None) if isinstance(item, JudgedItem) else None
        if progress is None:
            return (yield)
        if fixturedef.scope == "function":
            progress.shared.save_before_own_fixtures(item)
            return (yield)
        with seeded_fixture(fixturedef.argname, request):
            value = yield
        progress.shared.save_late(fixturedef.argname, value)
        return value

    # Outermost, so that nothing can catch what is raised here.
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Let the body run, then end it as the judge says."""
        if not isinstance(item, JudgedItem):
            return (yield)
        item.stash[MEMORY] = PeakMemory()
        try:
            result = yield
        except STOPS:
            raise
        except BaseException as own:
            self._raise_judgement(item, self.runs.finish(item, own), own)
            raise
        decision = self.runs.finish(item, None)
        self._raise_judgement(item, decision, item.stash[PROGRESS].own if decision is not None else None)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write the decision into the report, and the item's rows into its last report."""
        report = yield
        if not isinstance(item, JudgedItem):
            return report
        progress = item.stash.get(PROGRESS, None)
        decision = progress.decision if progress is not None else None
        if call.when == "call" and MEMORY in item.stash:
            item.stash[PEAK] = item.stash[MEMORY].bytes()
        if call.when == "call" and decision is not None:
            self._apply(item, decision, report)
            setattr(report, PLANTED, [astuple(trial) for trial in progress.planted] if progress is not None else [])
        _note_outcome(item, report)
        if call.when == "teardown":
            session = progress.session if progress is not None else None
            rows = item_rows(
                item.test_id,
                item.variant,
                outcome=item.stash[OUTCOME],
                decision=decision,
                session=session,
                seconds=item.stash[SECONDS],
                source=source_hash(item),
                peak_bytes=item.stash.get(PEAK, 0),
            )
            setattr(report, ROWS, rows)
            report.user_properties.extend(properties_of(rows["case"]))
        elif call.when == "call" and progress is not None and progress.session is not None:
            setattr(report, JUDGED, judged_share(progress.session).sentence)
        return report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, None, None]:
        """After an item's own fixtures are gone, put shared state back for its next variant."""
        try:
            return (yield)
        finally:
            progress = item.stash.get(PROGRESS, None) if isinstance(item, JudgedItem) else None
            if progress is not None and isinstance(item, JudgedItem):
                sibling = isinstance(nextitem, JudgedItem) and nextitem.test_id == item.test_id
                wrong = progress.decision is not None and progress.decision.kind.fails
                # After the last variant the effects of the test stay, as without the plugin; wrong ones do not.
                if sibling or wrong:
                    progress.shared.rewind()

    def _raise_judgement(self, item: Any, decision: Decision | None, own: BaseException | None) -> None:
        if decision is None or not decision.raises:
            return
        forget_unittest_ending(item)
        error = judgement_error(decision, item)
        raise error.with_traceback(traceback_to(decision.worst)) from own

    def _apply(self, item: Any, decision: Decision, report: pytest.TestReport) -> None:
        progress = item.stash[PROGRESS]
        calls = progress.session.calls if progress.session is not None else []
        if decision.outcome == "failed":
            report.outcome = "failed"
            report.__dict__.pop("wasxfail", None)
            report.longrepr = failure_repr(decision, item, calls, progress.own)
        elif decision.outcome == "xfailed":
            report.outcome = "skipped"
            report.wasxfail = decision.reason
            report.longrepr = failure_repr(decision, item, calls, progress.own)
        elif decision.outcome == "xpassed" and report.passed:
            report.wasxfail = decision.reason
        elif decision.outcome == "vacuous" and report.passed and not hasattr(report, "wasxfail"):
            setattr(report, VACUOUS_MARK, True)
        elif report.failed:
            label_own_failure(report, decision, item, calls)


def _note_outcome(item: Any, report: pytest.TestReport) -> None:
    """Remember the word for an item's ending over its three reports."""
    item.stash[SECONDS] = item.stash.get(SECONDS, 0.0) + report.duration
    if report.when != "call" and report.failed:
        item.stash[OUTCOME] = "error"
    elif report.when == "setup":
        item.stash[OUTCOME] = "skipped" if report.skipped else "passed"
        item.stash[SECONDS] = report.duration
        if hasattr(report, "wasxfail"):
            item.stash[OUTCOME] = "xfailed"
    elif report.when == "call":
        item.stash[OUTCOME] = _call_outcome(report)


def _call_outcome(report: pytest.TestReport) -> str:
    if getattr(report, VACUOUS_MARK, False):
        return "vacuous"
    if hasattr(report, "wasxfail"):
        return "xfailed" if report.skipped else "xpassed"
    return report.outcome
