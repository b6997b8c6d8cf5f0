"""The outcome of a judged test body: from verdicts and the test's own ending."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plumbline.compiler.base.errors import PlumblineError
from plumbline.oracle.verdict import VerdictKind

from .judge_access import CompileStatistics, JudgedCall


class JudgementError(PlumblineError):
    """Raised in a test's place when its compiled code is judged wrong; the test cannot catch it."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The ending of one judged body.

    kind: the most serious verdict of all calls, VACUOUS when nothing was compiled, SENSITIVE or EAGER_FAILED when the
    test fails by itself.  outcome: passed, vacuous, failed (by the verdict), xfailed, xpassed (compile_xfail), or
    own (as the test itself ends).
    worst: the call that decides, None without one.  stage: first wrong backend, None while unknown.
    reason: of a compile_xfail.  note: a sentence for the user, "" for none.
    """

    kind: VerdictKind
    outcome: str
    worst: JudgedCall | None = None
    stage: str | None = None
    reason: str = ""
    note: str = ""

    @property
    def raises(self) -> bool:
        """Return whether the test must end with our exception."""
        return self.outcome in ("failed", "xfailed")


@dataclass(frozen=True, slots=True)
class Expectation:
    """A compile_xfail mark that means this variant."""

    reason: str
    strict: bool


def most_serious(calls: Sequence[JudgedCall], statistics: CompileStatistics) -> tuple[VerdictKind, JudgedCall | None]:
    """Return the verdict of a body and the first call that has it.

    A failing call decides whatever was compiled; else a body in which no operation was compiled is VACUOUS, unless
    the compiler was asked and refused what eager refuses.
    """
    failing = [call for call in calls if call.verdict.failed]
    compiled = [call for call in calls if call.verdict.kind is not VerdictKind.VACUOUS]
    refused = bool(calls) and all(call.verdict.kind is VerdictKind.EAGER_FAILED for call in calls)
    if not failing and not refused and (statistics.graphs == 0 or statistics.ops == 0 or not compiled):
        return VerdictKind.VACUOUS, None
    # A call that could not be judged, or that raises as it does in eager, says nothing about the others.
    judged = [call for call in compiled if call.verdict.kind not in _SAYS_NOTHING]
    worst = max(failing or judged or compiled, key=lambda call: call.verdict.kind.weight)
    return worst.verdict.kind, worst


_SAYS_NOTHING = frozenset({VerdictKind.NO_REFERENCE, VerdictKind.EAGER_FAILED})


def unjudged_note(calls: Sequence[JudgedCall]) -> str:
    """Return how many calls had no reference beside others that were judged, and why; "" where none had none."""
    without = [call for call in calls if call.verdict.kind is VerdictKind.NO_REFERENCE]
    if not without or len(without) == len(calls):
        return ""
    return f"{len(without)} of {len(calls)} calls were not judged: {without[0].verdict.sentence}"


def decide(
    calls: Sequence[JudgedCall],
    statistics: CompileStatistics,
    *,
    ended: bool,
    expectation: Expectation | None = None,
    require: bool = False,
) -> Decision:
    """Return the decision for a body.

    ended: the test came to its end without an exception, a skip or an xfail of its own.
    require: vacuous tests fail.
    """
    kind, worst = most_serious(calls, statistics)
    if kind is VerdictKind.EAGER_FAILED and ended:  # the test expects the exception, and compiled code raises it too
        kind = VerdictKind.EQUAL
    if kind.fails:
        if expectation is not None:
            return Decision(kind, "xfailed", worst, reason=expectation.reason)
        return Decision(kind, "failed", worst)
    if not ended:
        return Decision(kind, "own", worst)
    if expectation is not None and kind is not VerdictKind.VACUOUS:
        reason = f"[XPASS(strict)] {expectation.reason}" if expectation.strict else expectation.reason
        return Decision(kind, "failed" if expectation.strict else "xpassed", worst, reason=reason)
    if kind is VerdictKind.VACUOUS:
        return Decision(kind, "failed" if require else "vacuous")
    return Decision(kind, "passed", worst)


def out_of_time(reason: str, expectation: Expectation | None) -> Decision:
    """Return the decision for a body that was ended because it took too long."""
    if expectation is not None:
        return Decision(VerdictKind.CRASH, "xfailed", reason=expectation.reason)
    return Decision(VerdictKind.CRASH, "failed", reason=reason)


def with_stage(decision: Decision, stage: str | None, note: str = "") -> Decision:
    """Return the decision with the first wrong backend named."""
    return replace(decision, stage=stage, note=note)
