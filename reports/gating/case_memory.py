"""What the gate remembers of a case, what it sees of it in one night, and how the one follows from the other."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..rows import CaseRow
from ..verdict_marks import mark_of
from .thresholds import Thresholds

GOOD, LONELY, NEW, FAILING, FLAKY, INTERMITTENT, VANISHED = (
    "good",
    "lonely",
    "new",
    "failing",
    "flaky",
    "intermittent",
    "vanished",
)
STATES = {
    GOOD: "good on the last night that judged it",
    LONELY: "failed every attempt last night, alone of its kind, for the first time: amber",
    NEW: "failed every attempt last night, with others like it, for the first time: red",
    FAILING: "still failing: red until it is repaired or accepted by name",
    FLAKY: "passed and failed on the same code: it runs and is shown, and does not count",
    INTERMITTENT: "fails often on the first attempt and was not flaky before: red when it fails, amber when it passes",
    VANISHED: "was not among the tests of the last whole run",
}

PASSED, CLEARED, FAILED, NOT_JUDGED = "passed", "cleared", "failed", "not judged"
"""The fates of a case in a night: passed at once; failed and passed a retry; failed every attempt; skipped."""

_BITS = 60  # nights that `recent` and `rises` reach back; a signed 64-bit column holds them
_KEEPS_ITS_FAILURE = "NONDETERMINISTIC"  # a verdict about many runs: no luckier run takes it back


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One case in one night.

    fate: see above.  mark, aspect, stage: of its failure.  text: how it failed, in words.  crash: the process or the
    compiler broke down.  attempts: how often it ran.  The rest as in CaseRow, of the first attempt.
    """

    fate: str
    outcome: str
    verdict: str = ""
    margin: float = 0.0
    graphs: int = 0
    ops: int = 0
    breaks: int = 0
    mark: str = ""
    aspect: str = ""
    stage: str = ""
    text: str = ""
    crash: bool = False
    attempts: int = 1
    break_reason: str = ""

    @property
    def cause(self) -> str:
        """Return what its failure has in common with others of the same fault."""
        return f"{self.mark}|{self.aspect}|{self.stage}" if self.fate in (FAILED, CLEARED) else ""


def seen_of(case: CaseRow, retries: Sequence[CaseRow] = ()) -> Seen:
    """Return what a night saw of a case: its first attempt, and whether a retry cleared it."""
    mark = mark_of(case)
    if case.outcome in ("skipped", "xfailed"):
        fate = NOT_JUDGED
    elif not case.failing:
        fate = PASSED
    else:
        cleared = any(not retry.failing for retry in retries) and case.verdict != _KEEPS_ITS_FAILURE
        fate = CLEARED if cleared else FAILED
    first_break = next((e for e in case.events if e.get("kind") == "graph_break" and e.get("reason")), None)
    said = f"{case.where}: {case.sentence}" if case.where else case.sentence
    return Seen(
        fate=fate,
        outcome=case.outcome,
        verdict=case.verdict,
        margin=case.margin,
        graphs=case.graphs,
        ops=case.ops,
        breaks=case.breaks,
        mark=mark.letter,
        aspect=case.aspect,
        stage=case.stage or "",
        text=f"{mark.word} {said}".rstrip(),
        crash=case.outcome == "error" or case.verdict == "CRASH",
        attempts=1 + len(retries),
        break_reason=str(first_break["reason"]) if first_break else "",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseMemory:
    """What is remembered of a case between nights; nights are counted by the numbers of their runs.

    state: one of STATES, since the run `since`.  streak: nights in a row in which it failed every attempt.
    clean: nights since any attempt failed.  recent: bit n says that the first attempt failed n judged nights ago.
    rises: the same for a margin that rose.  last_flaky, last_good, last_run: runs, 0 for never.
    cause: of its failure.  outcome to breaks: of the last good night, or of the last one if there was none.
    """

    state: str = GOOD
    since: int = 0
    streak: int = 0
    clean: int = 0
    recent: int = 0
    rises: int = 0
    last_flaky: int = 0
    last_good: int = 0
    last_run: int = 0
    cause: str = ""
    outcome: str = "passed"
    verdict: str = ""
    margin: float = 0.0
    graphs: int = 0
    ops: int = 0
    breaks: int = 0

    @property
    def lively(self) -> bool:
        """Return whether a night in which the case passes as always changes this memory."""
        return self.state != GOOD or self.recent != 0 or self.rises != 0


def after_passing(memory: CaseMemory, run: int, limits: Thresholds, *, nothing_changed: bool) -> CaseMemory:
    """Return the memory after a night in which the first attempt passed.

    nothing_changed: the code was that of the night before, so that a failure which is gone was flaky.
    """
    clean, recent = memory.clean + 1, _shifted(memory.recent, failed=False)
    quiet = replace(memory, clean=clean, recent=recent, streak=0)
    if memory.state in (NEW, LONELY, FAILING):
        if nothing_changed:
            return replace(quiet, state=FLAKY, since=run, last_flaky=memory.last_run)
        return replace(quiet, state=GOOD, since=run, cause="")
    needed = {FLAKY: limits.flaky_clean_to_leave, INTERMITTENT: limits.intermittent_clean_to_leave}
    if clean >= needed.get(memory.state, 0) and memory.state == INTERMITTENT:
        return replace(quiet, state=FLAKY, since=run)
    if clean >= needed.get(memory.state, 0) and memory.state == FLAKY:
        return replace(quiet, state=GOOD, since=run, cause="")
    return quiet


def after_cleared(memory: CaseMemory, seen: Seen, run: int, limits: Thresholds) -> CaseMemory:
    """Return the memory after a night in which a retry passed after a failure."""
    failed = replace(
        memory, clean=0, streak=0, recent=_shifted(memory.recent, failed=True), last_flaky=run, cause=seen.cause
    )
    if memory.state == INTERMITTENT:
        return failed
    if _turns_intermittent(failed, limits):
        return replace(failed, state=INTERMITTENT, since=run)
    return failed if memory.state == FLAKY else replace(failed, state=FLAKY, since=run)


def after_failing(memory: CaseMemory, seen: Seen, run: int, limits: Thresholds, *, clustered: bool) -> CaseMemory:
    """Return the memory after a night in which every attempt failed; clustered: others failed alike, newly."""
    streak = memory.streak + 1
    failed = replace(memory, clean=0, streak=streak, recent=_shifted(memory.recent, failed=True), cause=seen.cause)
    if memory.state in (GOOD, VANISHED):
        return replace(failed, state=NEW if clustered else LONELY, since=run)
    if memory.state in (FLAKY, INTERMITTENT):
        if streak >= limits.flaky_nights_to_fail:
            return replace(failed, state=FAILING, since=run)
        return replace(failed, state=INTERMITTENT, since=run) if _turns_intermittent(failed, limits) else failed
    return replace(failed, state=FAILING)


def _turns_intermittent(memory: CaseMemory, limits: Thresholds) -> bool:
    window = limits.intermittent_window
    recently = (memory.recent & ((1 << window) - 1)).bit_count() >= limits.intermittent_failures
    before = (memory.recent >> window) & ((1 << limits.flaky_clean_to_leave) - 1)
    return recently and not before and memory.state != INTERMITTENT


def _shifted(bits: int, *, failed: bool) -> int:
    return ((bits << 1) | int(failed)) & ((1 << _BITS) - 1)


def with_numbers(memory: CaseMemory, seen: Seen, run: int, *, accepted_breaks: bool = False) -> CaseMemory:
    """Return the memory with the numbers of this night, where the case passed; what got worse is not learnt.

    accepted_breaks: more graph breaks were accepted by name, so that they are the new normal.
    """
    if seen.fate != PASSED:
        outcome = seen.outcome if seen.fate == NOT_JUDGED or not memory.last_good else memory.outcome
        return replace(memory, last_run=run, outcome=outcome)
    first = not memory.last_good
    rose = not first and seen.margin > memory.margin
    return replace(
        memory,
        last_run=run,
        last_good=run,
        rises=_shifted(memory.rises, failed=rose),
        outcome=seen.outcome,
        verdict=seen.verdict,
        margin=seen.margin,
        graphs=max(seen.graphs, memory.graphs) if seen.graphs == 0 else seen.graphs,
        ops=seen.ops,
        breaks=seen.breaks if first or accepted_breaks else min(seen.breaks, memory.breaks),
    )
