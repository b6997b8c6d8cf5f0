"""Cases on trial: many in one compiled function, judged against eager; then one by one where something differs."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from plumbline.compiler.base.events import recording, swallowed_error
from plumbline.oracle.harness.compilers import CompileRequest, CompilerUnderTest
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Verdict, VerdictKind

from ..generated_source import forget_sources
from .cases import SweepTask
from .written_outputs import reached_by_writing

OPTIONS = JudgeOptions()
SWALLOWED = "swallowed error"
"""The aspect of a finding about an error of the compiler's own that no user sees: the program ran eagerly."""

Program = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class CaseFault:
    """What is wrong with one case.

    kind: of the verdict, such as WRONG.  aspect: of the table of aspects, or SWALLOWED, "process".
    detail: class of an exception, or the error that was swallowed; tells faults of one aspect apart.
    together: it shows only beside other cases in one function; their names.
    """

    case: str
    kind: str
    aspect: str
    detail: str
    sentence: str
    together: tuple[str, ...] = ()

    def same_fault(self, other: "CaseFault") -> bool:
        """Return whether two cases fail in the same way."""
        return (self.kind, self.aspect, self.detail) == (other.kind, other.aspect, other.detail)


@dataclass(slots=True)
class Outcome:
    """What became of cases: how many had each kind of verdict, how many compiled to nothing, and the faults."""

    kinds: dict[str, int] = field(default_factory=dict)
    vacuous: int = 0
    breaks: dict[str, int] = field(default_factory=dict)
    faults: list[CaseFault] = field(default_factory=list)

    def count(self, kind: str, number: int = 1) -> None:
        """Count cases with a kind of verdict."""
        self.kinds[kind] = self.kinds.get(kind, 0) + number

    def include(self, other: "Outcome") -> None:
        """Add another outcome to this one."""
        for kind, number in other.kinds.items():
            self.count(kind, number)
        for reason, number in other.breaks.items():
            self.breaks[reason] = self.breaks.get(reason, 0) + number
        self.vacuous += other.vacuous
        self.faults += other.faults

    @property
    def cases(self) -> int:
        """Return the number of cases."""
        return sum(self.kinds.values())


@dataclass(frozen=True, slots=True)
class Runnable:
    """Some cases as one program; `names` are the cases, in the order of its arguments and results.

    arguments: returns fresh arguments, one item for each case.
    """

    names: tuple[str, ...]
    program: Program
    arguments: Callable[[], list[Any]]
    gradients: bool = True


Build = Callable[[Sequence[Any]], Runnable]


class Trial:
    """Tries the cases of one task.

    build: from prepared cases to one program.  say: told the name of what runs now, in case the process dies.
    """

    def __init__(self, task: SweepTask, compiler: CompilerUnderTest, build: Build, say: Callable[[str], None]) -> None:
        self.task, self.compiler, self.build, self.say = task, compiler, build, say

    def together(self, cases: Sequence[Any]) -> Outcome:
        """Judge cases that eager runs without an error in one function, and alone those that differ."""
        if not cases:
            return Outcome()
        runnable = self.build(cases)
        self.say(f"{len(cases)} cases from {runnable.names[0]}")
        judged = _judged(runnable, self.task, self.compiler)
        if judged.clean:
            return judged.outcome()
        if len(cases) == 1:
            return judged.outcome()
        suspects = judged.suspects
        if suspects is None:  # an exception or an error of ours: nothing says whose it was
            suspects = set(range(len(cases)))
        rest = self.together([case for number, case in enumerate(cases) if number not in suspects])
        alone = {number: self.alone(cases[number]) for number in sorted(suspects)}
        if not any(outcome.faults for outcome in alone.values()):  # it takes several of them
            return judged.outcome()
        for outcome in alone.values():
            rest.include(outcome)
        return rest

    def alone(self, case: Any) -> Outcome:
        """Judge one case; it may be one that eager refuses."""
        runnable = self.build([case])
        self.say(runnable.names[0])
        return _judged(runnable, self.task, self.compiler).outcome()


@dataclass(frozen=True, slots=True)
class _Judged:
    """A program after its judgement."""

    runnable: Runnable
    verdict: Verdict
    swallowed: tuple[str, ...]
    leaks: dict[int, str]
    operations: int
    breaks: tuple[str, ...]

    @property
    def clean(self) -> bool:
        return (
            not (self.verdict.failed or self.verdict.kind is VerdictKind.JUDGE_FAILED)
            and not self.swallowed
            and not self.leaks
        )

    @property
    def suspects(self) -> set[int] | None:
        """Return the numbers of the cases that differ; None if that is not known."""
        if self.swallowed:
            return None
        numbers = {_number(f.where) for f in self.verdict.findings if f.kind.fails} | set(self.leaks)
        return None if None in numbers else {number for number in numbers if number is not None}

    def faults_of(self, number: int, *, together: bool) -> list[CaseFault]:
        """Return the faults of one case, the worst of each aspect."""
        name = self.runnable.names[number]
        others = tuple(one for one in self.runnable.names if one != name) if together else ()
        faults: dict[tuple[str, str], CaseFault] = {}
        for finding in self.verdict.findings:
            if finding.kind.fails and _number(finding.where) in (number, None):
                detail = _detail(finding.aspect, finding.sentence)
                sentence = f"{finding.where} {finding.sentence}"
                fault = CaseFault(name, finding.kind.value, finding.aspect, detail, sentence, others)
                faults.setdefault((finding.aspect, detail), fault)
        for error in self.swallowed:
            detail = _error_class(error)
            faults.setdefault((SWALLOWED, detail), CaseFault(name, "SWALLOWED", SWALLOWED, detail, error, others))
        if number in self.leaks:
            faults.setdefault(("aliasing", ""), CaseFault(name, "WRONG", "aliasing", "", self.leaks[number], others))
        return list(faults.values())

    def outcome(self) -> Outcome:
        """Return the counts, with the faults."""
        outcome = Outcome()
        worst: dict[int, VerdictKind] = {}
        for finding in self.verdict.findings:
            number = _number(finding.where)
            if number is not None and finding.kind.weight > worst.get(number, VerdictKind.EQUAL).weight:
                worst[number] = finding.kind
        if self.verdict.kind in (VerdictKind.EAGER_FAILED, VerdictKind.NO_REFERENCE) and not worst:
            worst = dict.fromkeys(range(len(self.runnable.names)), self.verdict.kind)
        together = len(self.runnable.names) > 1
        for number in range(len(self.runnable.names)):
            faults = [] if self.clean else self.faults_of(number, together=together)
            outcome.faults += faults
            outcome.count(faults[0].kind if faults else worst.get(number, VerdictKind.EQUAL).value)
        if not self.operations:
            outcome.vacuous = len(self.runnable.names)
        outcome.breaks = dict.fromkeys(self.breaks, 1)
        return outcome


def _judged(runnable: Runnable, task: SweepTask, compiler: CompilerUnderTest) -> _Judged:
    args = runnable.arguments()
    request = CompileRequest(dynamic=task.dynamic)
    candidate = compiler.compile(runnable.program, task.backend, request, rng=OPTIONS.rng)
    with recording() as events, torch.set_grad_enabled(runnable.gradients):
        verdict = judge_call(runnable.program, candidate, (args,), {}, OPTIONS, {"args": args}).verdict
        leaks = {}
        if not verdict.failed and verdict.kind is not VerdictKind.EAGER_FAILED:
            leaks = _leaks(runnable, candidate)
    swallowed = [error for event in events if (error := swallowed_error(event))]
    done = candidate.statistics()
    forget_sources()
    return _Judged(runnable, verdict, tuple(dict.fromkeys(swallowed)), leaks, done.ops, done.breaks)


def _leaks(runnable: Runnable, candidate: Callable[..., Any]) -> dict[int, str]:
    """Return by case what writing to its outputs changes and should not, or the other way round."""
    try:
        expected = reached_by_writing(runnable.program, runnable.arguments())
    except Exception:  # the verdict need not say that eager refuses: it may have had to leave the call unjudged
        return {}
    actual = reached_by_writing(candidate, runnable.arguments())
    leaks = {}
    for number, (eager, compiled) in enumerate(zip(expected, actual, strict=True)):
        if eager != compiled:
            output, other = sorted(eager ^ compiled)[0]
            changes = "changes" if (output, other) in compiled else "does not change"
            leaks[number] = f"writing to output {output} {changes} {other}, unlike eager"
    return leaks


def _number(where: str) -> int | None:
    match = re.search(r"\b(?:output|args)\[(\d+)\]", where)
    return int(match.group(1)) if match else None


def _detail(aspect: str, sentence: str) -> str:
    if aspect != "exceptions":
        return ""
    raised = re.match(r"raises (\w+)(?:.*eager raises (\w+))?", sentence, re.DOTALL)
    return "-".join(filter(None, raised.groups())) if raised else ""


def _error_class(error: str) -> str:
    return re.sub(r"[\d\s]+", " ", error)[:60].strip()
