"""One judged call: eager as the reference, the compiled program on trial, then live.

The steps of a call: snapshot; eager runs, rewound after each; the compiled program on trial, rewound; the comparison,
with float64 references where bits differ; finally the compiled program live on the caller's own arguments.  The live
result goes to the caller and is compared with the trial.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from .comparison.aspects import reported_only
from .comparison.compare import compare
from .cotangents import differentiable
from .judge_options import JudgeOptions
from .numeric.references import References
from .run_differences import (
    gradient_findings,
    live_findings,
    repetition_findings,
    sample_findings,
    unless_eager_does,
    value_findings,
)
from .runs import CallRuns, JudgedProgram
from .state.random_state import RandomState
from .state.run_outcome import RunOutcome
from .state.snapshot import Snapshot
from .verdict import Finding, Verdict, VerdictKind

MOST_FINDINGS = 40
"""Findings in a verdict at most; a broken call may differ everywhere, and people read the first few."""

EAGER_RUNS = 8
"""Runs of eager that may show that it differs from itself, where the compiled program does."""


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """A verdict together with what the live compiled run gave: a result, or the exception it raised."""

    verdict: Verdict
    result: Any
    error: BaseException | None

    def unwrap(self) -> Any:
        """Return the live result, or raise what the live run raised."""
        if self.error is not None:
            raise self.error
        return self.result


def judge_call(
    reference: JudgedProgram,
    candidate: JudgedProgram,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: JudgeOptions,
    roots: Mapping[str, object],
    rejected: JudgedProgram | None = None,
) -> Judgement:
    """Judge one call of `candidate` against `reference` and return the live result with the verdict.

    rejected: replaces `candidate` when eager raises; there are no draws to align then, so the compiler may use its
    own random numbers.
    roots: named objects from which everything the call may change can be reached (arguments, module, function).
    An exception of either program becomes part of the verdict; none is raised here.
    """
    snapshot = Snapshot.take(roots)
    runs = CallRuns(snapshot, args, kwargs, options.seed)
    eager = runs.forward(reference) if not snapshot.obstacles else None
    if eager is not None and not runs.lost:
        program = rejected if eager.error is not None and rejected is not None else candidate
        return _judge(runs, reference, program, eager, options)
    return _unjudged(runs, candidate, snapshot.obstacles or runs.lost)


def _judge(
    runs: CallRuns, reference: JudgedProgram, candidate: JudgedProgram, eager: RunOutcome, options: JudgeOptions
) -> Judgement:
    """Run the compiled program on trial, compare, and run it live."""
    paths = _gradient_paths(eager, options)
    references = References(
        lambda shadow, cotangent: runs.shadow(reference, shadow, paths, cotangent), runs.snapshot.rewind, options
    )
    expected = runs.gradients(reference, paths)
    trial = runs.forward(candidate)
    actual = runs.gradients(candidate, paths) if trial.error is None else {}

    native = _draws_natively(eager, runs.snapshot, options)
    comparison = compare(eager, trial, without={"rng"} if native else ())
    findings = list(comparison.findings)
    if native and eager.error is None and trial.error is None:
        samples = (runs.samples(program, options.samples) for program in (reference, candidate))
        findings += sample_findings(comparison.pairs, *samples)
    else:
        findings += value_findings(comparison.pairs, references)
    findings += gradient_findings(expected, actual, references)
    differs = any(finding.kind is not VerdictKind.EQUAL for finding in findings)
    if differs:
        repeated = repetition_findings(trial, runs.forward(candidate))
        more = (runs.forward(reference) for _ in range(EAGER_RUNS if repeated else 0))
        findings += unless_eager_does(repeated, eager, more)
    references.open = False
    live, result = runs.live(candidate)
    findings += live_findings(eager, trial, live, comparison.findings, references)
    return Judgement(_verdict(findings, eager, live, options), result, live.error)


def _draws_natively(eager: RunOutcome, snapshot: Snapshot, options: JudgeOptions) -> bool:
    """Return whether eager draws random numbers and the compiler is to use its own generator for them."""
    if options.rng != "native":
        return False
    state = eager.observed["rng"]
    assert isinstance(state, RandomState)
    return bool(snapshot.random.differences(state))


def _unjudged(runs: CallRuns, candidate: JudgedProgram, reasons: list[str]) -> Judgement:
    """Run only the compiled program, live; the verdict says why nothing was judged."""
    live, result = runs.live(candidate)
    finding = Finding(VerdictKind.NO_REFERENCE, "python", "call", "; ".join(reasons[:3]))
    verdict = Verdict(VerdictKind.NO_REFERENCE, finding.sentence, (finding,), candidate_seconds=live.seconds)
    return Judgement(verdict, result, live.error)


def _gradient_paths(eager: RunOutcome, options: JudgeOptions) -> tuple[str, ...]:
    """Return the paths of the outputs whose gradients are judged; none outside grad mode."""
    if not options.gradients or eager.error is not None or not torch.is_grad_enabled():
        return ()
    return tuple(differentiable(eager))


def _verdict(findings: list[Finding], eager: RunOutcome, live: RunOutcome, options: JudgeOptions) -> Verdict:
    """Weigh the findings: the heaviest that counts decides; ignored and reported-only aspects become notes."""
    silent = reported_only() | options.ignore
    counted = sorted((f for f in findings if f.aspect not in silent), key=lambda f: -f.kind.weight)
    notes = tuple(f"{f.aspect}: {f.where} {f.sentence}" for f in findings if f.aspect in silent)[:MOST_FINDINGS]
    kind = counted[0].kind if counted else VerdictKind.EQUAL
    if not kind.fails and eager.error is not None:
        kind = VerdictKind.EAGER_FAILED
    if counted:
        sentence = f"{counted[0].where} {counted[0].sentence}"
    elif eager.error is not None:
        sentence = f"eager raises {type(eager.error).__name__}, and so does the compiled program"
    else:
        sentence = "bitwise equal to eager"
    return Verdict(
        kind,
        sentence,
        tuple(counted[:MOST_FINDINGS]),
        reference_seconds=eager.seconds,
        candidate_seconds=live.seconds,
        notes=notes,
    )
