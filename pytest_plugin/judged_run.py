"""The run of one judged item: seeds, state, the session around the body, re-runs, the decision."""

import bdb
import contextlib
import io
import time
import unittest
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import VerdictKind

from .current import session_is
from .decision import Decision, Expectation, decide, most_serious, out_of_time, with_stage
from .items import Body, JudgedTestCase, applies, reason_of
from .judge_access import (
    CompilerFault,
    JudgeSession,
    RandomState,
    StateScope,
    faults_of,
    open_session,
    take_state,
)
from .limits.budget import over_budget
from .limits.known_failures import KnownFailures
from .limits.last_words import LastWords
from .limits.time_limit import OutOfTime, at_most
from .mutating.planted_faults_table import PlantedTrial
from .own_compilers import counts_outside
from .plugin_options import PluginOptions
from .rewinding import SharedState, all_roots
from .seeding import seed_test
from .variants import Variant

RERUN_SECONDS = 120.0
"""A body that took longer is not run again to find the first wrong backend."""

_NOT_JUDGED = (
    "the test passes with reference values, although no judged call explains it: it depends on something that is not "
    "judged, such as time, the identity of objects or whether code runs compiled"
)

STOPS: tuple[type[BaseException], ...] = (KeyboardInterrupt, pytest.exit.Exception, bdb.BdbQuit)
SKIPS: tuple[type[BaseException], ...] = (pytest.skip.Exception, unittest.SkipTest)


@dataclass(frozen=True, slots=True)
class Rerun:
    """What a body is run once more under: a variant, a mode of the session, and a fault of the compiler's if any."""

    variant: Variant
    mode: str
    fault: CompilerFault | None = None


@dataclass(slots=True)
class Progress:
    """The state of one item's run; its stages fill it in.

    trial: of a re-run, None in the real run.  seconds: of the real body.
    own: how the test itself ended, None for a plain end.  planted: what it made of planted faults.
    random: generators as the set-up left them; that of a unittest case runs with its body.
    judges_constructions: objects are made by judged calls, because the body calls nothing else that computes.
    """

    shared: SharedState
    before_body: StateScope | None = None
    session: JudgeSession | None = None
    trial: Rerun | None = None
    trial_session: JudgeSession | None = None
    effects: int = 0
    seconds: float = 0.0
    own: BaseException | None = None
    judges_constructions: bool = False
    random: RandomState | None = None
    decision: Decision | None = None
    planted: tuple[PlantedTrial, ...] = ()


PROGRESS = pytest.StashKey[Progress]()


class ItemRuns:
    """Runs every judged item of one pytest session; remembers which variants were wrong.

    available: each compiler's backends.  keep_frames: keep the user's frames, for the debugger.
    """

    def __init__(
        self,
        options: PluginOptions,
        available: Mapping[str, tuple[str, ...]],
        *,
        keep_frames: bool,
        known: KnownFailures,
    ) -> None:
        self.options = options
        self.available = available
        self.known = known
        self.last_words: LastWords | None = None
        self.keep_frames = keep_frames
        self._shared: SharedState | None = None
        self._wrong: dict[tuple[str, Variant], bool] = {}

    def _shared_state(self, test_id: str) -> SharedState:
        if self._shared is None or self._shared.test_id != test_id or not self._shared.rewound:
            self._shared = SharedState(test_id)
        self._shared.rewound = False
        return self._shared

    def equip(self, item: Any) -> None:
        """Give a new item its hooks."""
        item.around_setup = self.around_setup
        item.around_body = self.around_body

    def around_setup(self, item: Any, setup: Body) -> None:
        """Run a set-up with this test's seed, then save what the siblings share, unless that is done already."""
        item.stash[PROGRESS] = progress = Progress(self._shared_state(item.test_id))
        for mark in item.iter_markers("compile_skip"):
            if applies(mark, item.variant):
                raise pytest.skip.Exception(reason_of(mark) or "compile_skip", _use_item_location=True)
        seed_test(item.test_id)
        setup()
        progress.shared.save_rest(item)
        progress.random = RandomState.now()

    def around_body(self, item: Any, body: Body) -> None:
        """Run a body under its session, or under that of a re-run."""
        progress = item.stash[PROGRESS]
        trial = progress.trial or Rerun(item.variant, "judge")
        if progress.trial is None and progress.random is not None and not isinstance(item, JudgedTestCase):
            progress.random.restore()  # as the set-up left it, whatever seeds other plugins have set since
        session = open_session(
            trial.variant,
            boundary=self.options.boundary,
            options=self._judge_options(item),
            targets=self.options.targets,
            request=self.options.request,
        )
        session.mode = trial.mode
        mutant = session.plant(trial.fault) if trial.fault is not None else None
        session.counts_outside = counts_outside(item)
        session.judges_constructions = progress.judges_constructions
        if progress.trial is None:
            progress.session = session
            progress.before_body = take_state(all_roots(item))
            session.keep_frames = self.keep_frames
        else:
            progress.trial_session = session
        started = time.perf_counter()
        try:
            with self._time_limit(), session_is(session), session:
                body()
        finally:
            progress.effects = mutant.effects if mutant is not None else 0
            if progress.trial is None:
                progress.seconds = time.perf_counter() - started

    @contextlib.contextmanager
    def _time_limit(self) -> Iterator[None]:
        seconds = self.options.timeout
        ends = self.last_words.at_most(seconds) if self.last_words is not None else contextlib.nullcontext()
        with ends, at_most(seconds):
            yield

    def _judge_what_was_learned(self, item: Any, progress: Progress, first: JudgeSession) -> None:
        """Run a body once more that has shown which of its calls compute; the first run counts if that fails.

        After the first run has wholly ended: a unittest case takes its method away then.
        """
        has_judged = most_serious(first.calls, first.statistics())[0] is not VerdictKind.VACUOUS
        if has_judged or not (first.learned or first.has_constructed) or not _can_run_again(item, progress):
            return
        progress.judges_constructions = not first.learned
        ended, again = self._run_again(item, progress, Rerun(item.variant, "judge"))
        if again is not None and again.calls and (ended or any(call.verdict.failed for call in again.calls)):
            progress.session = again
        else:
            progress.session = first

    def finish(self, item: Any, raised: BaseException | None) -> Decision | None:
        """Return the decision for an item whose body has run, None when it was not judged at all."""
        progress = item.stash.get(PROGRESS, None)
        if progress is None or progress.session is None:
            return None
        progress.own = own = raised if raised is not None else unittest_ending(item)
        if own is None:
            self._judge_what_was_learned(item, progress, progress.session)
        calls, statistics = progress.session.calls, progress.session.statistics()
        expectation = self._expectation(item)
        if isinstance(own, OutOfTime):
            decision = progress.decision = out_of_time(str(own), expectation)
            return decision
        decision = decide(
            calls,
            statistics,
            ended=own is None,
            expectation=expectation,
            require=self.options.require == 1.0,
        )
        for mark in item.iter_markers("compile_budget"):
            over = over_budget(mark.kwargs, statistics) if applies(mark, item.variant) else ""
            if over and decision.outcome in ("passed", "vacuous"):
                decision = replace(decision, outcome="failed", reason=f"over its compile_budget: {over}")
        self._wrong[item.test_id, item.variant] = decision.kind.fails
        if decision.kind.fails:
            decision = with_stage(decision, *self._first_wrong(item, progress))
        elif own is not None and calls and _is_failure(item, own):
            decision = self._own_failure(item, progress, decision, own)
        progress.decision = decision
        if self.options.faults and decision.outcome == "passed" and own is None and _can_run_again(item, progress):
            progress.planted = tuple(self._with_faults(item, progress))
        return decision

    def _with_faults(self, item: Any, progress: Progress) -> Iterator[PlantedTrial]:
        """Run a body that passes once more with each fault, unjudged, and then as it was for what comes after it."""
        for fault in faults_of(item.variant, self.options.faults):
            passed, _ = self._run_again(item, progress, Rerun(item.variant, "compiled", fault))
            effect = progress.effects > 0
            yield PlantedTrial(item.test_id, item.variant.label, fault.name, fault.sentence, effect, not passed)
        self._run_again(item, progress, Rerun(item.variant, "reference"))

    def _expectation(self, item: Any) -> Expectation | None:
        for mark in item.iter_markers("compile_xfail"):
            if applies(mark, item.variant):
                return Expectation(reason_of(mark), bool(mark.kwargs.get("strict", True)))
        known = None if self.options.update_known else self.known.reason(item.test_id, item.variant.label)
        return Expectation(known, True) if known is not None else None

    def _own_failure(self, item: Any, progress: Progress, decision: Decision, own: BaseException) -> Decision:
        """Tell a test whose own tolerance is too tight from one that fails without a compiler."""
        if not _can_run_again(item, progress):
            return replace(decision, note="not re-run with reference values")
        calls = progress.session.calls if progress.session is not None else []
        differs = any(call.verdict.kind not in (VerdictKind.EQUAL, VerdictKind.EAGER_FAILED) for call in calls)
        ended, _ = self._run_again(item, progress, Rerun(item.variant, "reference"))
        if ended and decision.kind is VerdictKind.DESIGN and decision.worst is not None:
            return replace(decision, outcome="xfailed", reason=f"DESIGN: {decision.worst.verdict.sentence}")
        if not ended:
            return replace(decision, kind=VerdictKind.EAGER_FAILED)
        if differs and isinstance(own, AssertionError):
            return replace(decision, kind=VerdictKind.SENSITIVE)
        return replace(decision, note=_NOT_JUDGED)

    def _first_wrong(self, item: Any, progress: Progress) -> tuple[str | None, str]:
        """Return the first wrong backend of the ladder, and, if it is unknown, why."""
        for lower in item.variant.lower():
            if lower.backend not in self.available.get(lower.compiler, ()):
                continue
            wrong = self._wrong.get((item.test_id, lower))
            if wrong is None:
                if not _can_run_again(item, progress):
                    return None, "stage not searched: the test cannot be run again, or took too long"
                _, session = self._run_again(item, progress, Rerun(lower, "judge"))
                wrong = session is not None and any(call.verdict.failed for call in session.calls)
                self._wrong[item.test_id, lower] = wrong
            if wrong:
                return lower.backend, ""
        return item.variant.backend, ""

    def _run_again(self, item: Any, progress: Progress, trial: Rerun) -> tuple[bool, JudgeSession | None]:
        """Run the body once more from the same state, without output; return whether it passed, and its session."""
        assert progress.before_body is not None
        progress.before_body.rewind()
        progress.trial, progress.trial_session = trial, None
        recorded = _exchange_endings(item, [])
        ended = True
        try:
            with _silence(item):
                item.runtest()
            ended = unittest_ending(item) is None
        except STOPS:
            raise
        except BaseException:
            ended = False
        finally:
            progress.trial = None
            _exchange_endings(item, recorded)
        return ended, progress.trial_session

    def _judge_options(self, item: Any) -> JudgeOptions:
        marked = frozenset(str(name) for mark in item.iter_markers("compile_ignore") for name in mark.args)
        return replace(self.options.judge, ignore=self.options.judge.ignore | marked)


def unittest_ending(item: Any) -> BaseException | None:
    """Return the first exception that a unittest case has recorded instead of raising it."""
    recorded = getattr(item, "_excinfo", None)
    ending: BaseException | None = recorded[0].value if recorded else None
    return ending


def forget_unittest_ending(item: Any) -> None:
    """Drop what a unittest case has recorded, so that our exception is what pytest reports."""
    _exchange_endings(item, [])


def _exchange_endings(item: Any, endings: list[Any]) -> list[Any]:
    before = list(getattr(item, "_excinfo", None) or ())
    if before or endings:
        item._excinfo = list(endings)
    return before


def _is_failure(item: Any, own: BaseException) -> bool:
    """Return whether `own` is a failure: not a skip, not an xfail, not what its xfail mark expects."""
    if isinstance(own, (*SKIPS, pytest.xfail.Exception)):
        return False
    return item.get_closest_marker("xfail") is None or bool(item.config.option.runxfail)


def _can_run_again(item: Any, progress: Progress) -> bool:
    # pytest's subtests fixture reports each sub-test at once: a second run would report them twice.
    # Under --pdb pytest postpones the tearDown of a unittest case, without which it cannot start again.
    postponed = isinstance(item, JudgedTestCase) and bool(item.config.getoption("usepdb", False))
    return progress.seconds <= RERUN_SECONDS and "subtests" not in (item.funcargs or {}) and not postponed


@contextlib.contextmanager
def _silence(item: Any) -> Iterator[None]:
    item.silent = True  # read by JudgedTestCase
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            warnings.catch_warnings(record=True),
        ):
            yield
    finally:
        item.silent = False
