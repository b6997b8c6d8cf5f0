"""One judged call: eager as the reference, the compiled program on trial, then live.

The steps of a call: snapshot; eager runs, rewound after each; the compiled program on trial, rewound; the comparison,
with float64 references where bits differ; finally the compiled program live on the caller's own arguments.  The live
result goes to the caller and is compared with the trial.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from .comparison.aspects import ASPECTS, reported_only
from .comparison.compare import compare
from .comparison.compare_exceptions import exception_difference
from .comparison.compare_tensors import GradientPair, Pair
from .cotangents import COTANGENTS, Gradients, differentiable
from .judge_options import JudgeOptions
from .numeric.bits import equal_bits
from .numeric.distribution import judge_distribution
from .numeric.references import References
from .record import RunOutcome
from .runs import CallRuns, JudgedProgram
from .state.random_state import RandomState
from .state.snapshot import Snapshot
from .verdict import Finding, Verdict, VerdictKind

MOST_FINDINGS = 40
"""Findings in a verdict at most; a broken call may differ everywhere, and people read the first few."""


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


@dataclass(frozen=True, slots=True, eq=False)
class _CallUnderJudgement:
    """One call while it is being judged: both programs, what runs them, and the references for their values.

    eager: what the reference run left behind.  gradient_paths: outputs whose gradients are judged.
    """

    reference: JudgedProgram
    candidate: JudgedProgram
    options: JudgeOptions
    runs: CallRuns
    references: References
    eager: RunOutcome
    gradient_paths: tuple[str, ...]

    @property
    def draws_natively(self) -> bool:
        """Return whether eager draws random numbers and the compiler is to use its own generator for them."""
        if self.options.rng != "native":
            return False
        state = self.eager.observed["rng"]
        assert isinstance(state, RandomState)
        return bool(self.runs.snapshot.random.differences(state))


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
    if snapshot.obstacles:
        return _unjudged(runs, candidate, snapshot.obstacles)
    eager = runs.forward(reference)
    if runs.lost:
        return _unjudged(runs, candidate, runs.lost)
    if eager.error is not None and rejected is not None:
        candidate = rejected
    paths = _gradient_paths(eager, options)
    references = References(
        lambda shadow, cotangent: runs.shadow(reference, shadow, paths, cotangent), snapshot.rewind, options
    )
    return _judge(_CallUnderJudgement(reference, candidate, options, runs, references, eager, paths))


def _judge(call: _CallUnderJudgement) -> Judgement:
    """Run the compiled program on trial, compare, and run it live."""
    runs, candidate, paths = call.runs, call.candidate, call.gradient_paths
    expected = {kind: runs.backward(call.reference, paths, kind) for kind in (COTANGENTS if paths else ())}
    trial = runs.forward(candidate)
    findings = _compare_outcomes(call, trial)
    if trial.error is None:
        actual = {kind: runs.backward(candidate, paths, kind) for kind in expected}
        findings += _compare_gradients(expected, actual, call.references)
    if any(finding.kind is not VerdictKind.EQUAL for finding in findings):
        findings += _nondeterminism(trial, runs.forward(candidate))
    call.references.open = False
    live, result = runs.live(candidate)
    findings += _compare_live(call, trial, live)
    return Judgement(_verdict(findings, call.eager, live, call.options), result, live.error)


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


def _compare_outcomes(call: _CallUnderJudgement, trial: RunOutcome) -> list[Finding]:
    native = call.draws_natively
    comparison = compare(call.eager, trial, without={"rng"} if native else ())
    findings = list(comparison.findings)
    if native and call.eager.error is None and trial.error is None:
        return findings + _compare_samples(call, comparison.pairs)
    for pair in comparison.pairs:
        findings += _compare_values(pair, pair.path, None, call.references)
    return findings


def _compare_values(pair: Pair, where: str, cotangent: str | None, references: References) -> list[Finding]:
    """Judge one pair by value; differences in bits alone (the sign of zero) go to the aspects that compare them."""
    if equal_bits(pair.eager, pair.actual):
        return []
    if torch.equal(pair.eager, pair.actual):
        return [
            Finding(VerdictKind.WRONG, aspect.name, where, sentence)
            for aspect in ASPECTS
            if aspect.equal_values is not None
            for sentence in aspect.equal_values(pair)
        ]
    kind, statistics, sentence = references.decide(pair.path, pair.eager, pair.actual, cotangent)
    return [] if kind is VerdictKind.EQUAL else [Finding(kind, pair.aspect, where, sentence, statistics)]


def _compare_samples(call: _CallUnderJudgement, pairs: tuple[Pair, ...]) -> list[Finding]:
    """Run both sides from many seeds and compare distributions, tensor by tensor: random numbers are native."""
    eager, compiled = (_samples(call, program) for program in (call.reference, call.candidate))
    findings = []
    for pair in pairs:
        kind, sentence = judge_distribution(eager[pair.path], compiled.get(pair.path, []))
        if kind is not VerdictKind.EQUAL:
            findings.append(Finding(kind, pair.aspect, pair.path, sentence))
    return findings


def _samples(call: _CallUnderJudgement, program: JudgedProgram) -> dict[str, list[torch.Tensor]]:
    """Return the tensors of successive runs by path, each run with another seed."""
    samples: dict[str, list[torch.Tensor]] = {}
    for number in range(call.options.samples):
        torch.manual_seed(call.options.seed + 1000 + number)
        for path, record in call.runs.forward(program).tensors().items():
            samples.setdefault(path, []).append(record.value)
    return samples


def _compare_gradients(
    expected: Mapping[str, Gradients | None], actual: Mapping[str, Gradients | None], references: References
) -> list[Finding]:
    findings: list[Finding] = []
    for cotangent, eager in expected.items():
        compiled = actual[cotangent]
        if eager is None or compiled is None:
            continue  # requires_grad differs; the comparison of metadata has said so
        difference = exception_difference(eager.error, compiled.error, "the backward")
        if difference is not None:
            findings.append(Finding(difference.kind, "exceptions", difference.where, difference.sentence))
        if eager.error is None and compiled.error is None:
            for leaf, gradient in eager.by_leaf.items():
                pair = GradientPair(leaf, gradient, compiled.by_leaf.get(leaf))
                findings += _compare_gradient(pair, cotangent, references)
    return _worst_per_place(findings)


def _compare_gradient(pair: GradientPair, cotangent: str, references: References) -> list[Finding]:
    where = f"gradient of {pair.leaf}"
    values = pair.same_form()
    findings = _compare_values(values, where, cotangent, references) if values is not None else []
    findings = [replace(f, sentence=f"{f.sentence} ({cotangent} cotangent)") for f in findings]
    return findings + [
        Finding(VerdictKind.WRONG, aspect.name, where, sentence)
        for aspect in ASPECTS
        if aspect.gradients is not None
        for sentence in aspect.gradients(pair)
    ]


def _worst_per_place(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the heaviest finding of each aspect and place: three cotangents show one fault."""
    worst: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.aspect, finding.where)
        if key not in worst or finding.kind.weight > worst[key].kind.weight:
            worst[key] = finding
    return list(worst.values())


def _differing_paths(first: RunOutcome, second: RunOutcome) -> list[str]:
    """Return the paths of tensors that differ between two runs of one program from one state."""
    before, after = first.tensors(), second.tensors()
    return [
        path
        for path in before.keys() & after.keys()
        if before[path].shape != after[path].shape or not equal_bits(before[path].value, after[path].value)
    ]


def _nondeterminism(first: RunOutcome, second: RunOutcome) -> list[Finding]:
    """Return what differs between two compiled runs: a program that differs from itself is reported as such."""
    return [
        Finding(VerdictKind.NONDETERMINISTIC, "values", path, "differs between two compiled runs from one state")
        for path in _differing_paths(first, second)
    ]


def _compare_live(call: _CallUnderJudgement, trial: RunOutcome, live: RunOutcome) -> list[Finding]:
    """Judge the live run where it does not repeat the trial; most live runs repeat it bit by bit."""
    known = {(f.aspect, f.where) for f in compare(call.eager, trial).findings}
    findings = [f for f in compare(call.eager, live, without={"rng"}).findings if (f.aspect, f.where) not in known]
    if live.error is not None or trial.error is not None:
        return findings
    live_tensors, eager_tensors = live.tensors(), call.eager.tensors()
    for path in _differing_paths(trial, live):
        record, eager = live_tensors[path], eager_tensors.get(path)
        if eager is not None and eager.shape == record.shape and eager.dtype == record.dtype:
            aspect = "values" if path.startswith("output") else "mutations"
            findings += _compare_values(Pair(aspect, path, eager.value, record.value), path, None, call.references)
    return findings


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
