"""One judged call: eager as the reference, the compiled program on trial, then live.

The way of a call: snapshot; eager runs, rewound after each; the compiled program on trial, rewound; the comparison,
with float64 references where bits differ; at last the compiled program live on the caller's own arguments, its
result handed to the caller and held against the trial.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from .aspects import REPORTED_ONLY
from .compare import Pair, compare
from .compare_exceptions import exception_finding
from .cotangents import COTANGENTS, Gradients, differentiable
from .judge_options import JudgeOptions
from .numeric.bits import equal_bits, zero_sign_differences
from .numeric.distribution import judge_distribution
from .numeric.references import References
from .record import RunOutcome
from .runs import CallRuns, JudgedProgram
from .state.snapshot import Snapshot
from .verdict import Finding, Verdict, VerdictKind

MOST_FINDINGS = 40
"""Findings kept in a verdict; a broken call may differ everywhere, a person reads the first few."""


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

    rejected: stands in for `candidate` when eager raises (no draws to align then: the compiler's own random numbers).

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
    wanted = _wanted(eager, options)
    references = References(
        lambda shadow, cotangent: runs.shadow(reference, shadow, wanted, cotangent), snapshot.rewind, options
    )
    expected = {kind: runs.backward(reference, wanted, kind) for kind in (COTANGENTS if wanted else ())}
    trial = runs.forward(candidate)
    findings = _compare_outcomes(eager, trial, snapshot, references, options, runs, reference, candidate)
    if trial.error is None:
        found = {kind: runs.backward(candidate, wanted, kind) for kind in expected}
        findings += _compare_gradients(expected, found, references)
    if any(finding.kind is not VerdictKind.EQUAL for finding in findings):
        findings = _told_apart(findings, trial, runs.forward(candidate))
    references.open = False
    live, result = runs.live(candidate)
    findings += _compare_live(eager, trial, live, references)
    return Judgement(_verdict(findings, eager, live, options), result, live.error)


def _unjudged(runs: CallRuns, candidate: JudgedProgram, reasons: list[str]) -> Judgement:
    """Run the compiled program live only; the verdict says why nothing was judged."""
    live, result = runs.live(candidate)
    finding = Finding(VerdictKind.NO_REFERENCE, "python", "call", "; ".join(reasons[:3]))
    verdict = Verdict(VerdictKind.NO_REFERENCE, finding.sentence, (finding,), candidate_seconds=live.seconds)
    return Judgement(verdict, result, live.error)


def _wanted(eager: RunOutcome, options: JudgeOptions) -> tuple[str, ...]:
    """Return the paths of the outputs whose gradients are judged; none outside grad mode."""
    if not options.gradients or eager.error is not None or not torch.is_grad_enabled():
        return ()
    return tuple(differentiable(eager))


def _compare_outcomes(
    eager: RunOutcome,
    trial: RunOutcome,
    snapshot: Snapshot,
    references: References,
    options: JudgeOptions,
    runs: CallRuns,
    reference: JudgedProgram,
    candidate: JudgedProgram,
) -> list[Finding]:
    draws = bool(snapshot.random.differences(eager.random))
    native = options.rng == "native" and draws
    comparison = compare(eager, trial, compare_random=not native)
    findings = list(comparison.findings)
    if native and eager.error is None and trial.error is None:
        return findings + _compare_samples(comparison.pairs, options, runs, reference, candidate)
    for pair in comparison.pairs:
        findings += _values(pair, pair.path, None, references)
    return findings


def _values(pair: Pair, where: str, cotangent: str | None, references: References) -> list[Finding]:
    """Judge one pair; values equal but for the sign of zero are reported, not failed."""
    if equal_bits(pair.eager, pair.actual):
        return []
    if torch.equal(pair.eager, pair.actual):
        count = zero_sign_differences(pair.actual, pair.eager)
        return [Finding(VerdictKind.WRONG, "zero-sign", where, f"has {count} zeros of the other sign than eager's")]
    kind, numbers, sentence = references.decide(pair.path, pair.eager, pair.actual, cotangent)
    return [] if kind is VerdictKind.EQUAL else [Finding(kind, pair.aspect, where, sentence, numbers)]


def _compare_samples(
    pairs: tuple[Pair, ...], options: JudgeOptions, runs: CallRuns, reference: JudgedProgram, candidate: JudgedProgram
) -> list[Finding]:
    """Native random numbers: run both sides from many seeds and compare distributions, tensor by tensor."""
    samples: dict[str, dict[str, list[torch.Tensor]]] = {"eager": {}, "compiled": {}}
    for side, program in (("eager", reference), ("compiled", candidate)):
        for number in range(options.samples):
            torch.manual_seed(options.seed + 1000 + number)
            outcome = runs.forward(program)
            for path, record in outcome.tensors().items():
                samples[side].setdefault(path, []).append(record.value)
    findings = []
    for pair in pairs:
        kind, sentence = judge_distribution(samples["eager"][pair.path], samples["compiled"].get(pair.path, []))
        if kind is not VerdictKind.EQUAL:
            findings.append(Finding(kind, pair.aspect, pair.path, sentence))
    return findings


def _compare_gradients(
    expected: Mapping[str, Gradients | None], found: Mapping[str, Gradients | None], references: References
) -> list[Finding]:
    findings: list[Finding] = []
    for cotangent, mine in expected.items():
        theirs = found[cotangent]
        if mine is None or theirs is None:
            continue  # requires_grad differs; the comparison of metadata has said so
        findings += exception_finding(mine.error, theirs.error, "the backward")
        if mine.error is None and theirs.error is None:
            for name, gradient in mine.by_leaf.items():
                findings += _one_gradient(name, cotangent, gradient, theirs.by_leaf.get(name), references)
    return _worst_per_place(findings)


def _one_gradient(
    name: str, cotangent: str, eager: torch.Tensor | None, actual: torch.Tensor | None, references: References
) -> list[Finding]:
    where = f"gradient of {name}"
    if eager is None or actual is None:
        if eager is actual:
            return []
        words = ["None" if gradient is None else "a tensor" for gradient in (actual, eager)]
        return [Finding(VerdictKind.WRONG, "gradients", where, f"is {words[0]}, eager's is {words[1]}")]
    if eager.shape != actual.shape or eager.dtype != actual.dtype:
        sentence = f"is {actual.dtype}{list(actual.shape)}, eager's is {eager.dtype}{list(eager.shape)}"
        return [Finding(VerdictKind.WRONG, "gradients", where, sentence)]
    findings = _values(Pair("gradients", name, eager, actual), where, cotangent, references)
    findings = [replace(f, sentence=f"{f.sentence} ({cotangent} cotangent)") for f in findings]
    if eager.numel() > 1 and eager.stride() != actual.stride():
        sentence = f"stride is {tuple(actual.stride())}, eager's is {tuple(eager.stride())}"
        findings.append(Finding(VerdictKind.WRONG, "gradient-strides", where, sentence))
    return findings


def _worst_per_place(findings: list[Finding]) -> list[Finding]:
    """Keep the heaviest finding of each aspect and place: three cotangents tell one story."""
    worst: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.aspect, finding.where)
        if key not in worst or finding.kind.weight > worst[key].kind.weight:
            worst[key] = finding
    return list(worst.values())


def _same_values(first: RunOutcome, second: RunOutcome) -> list[str]:
    """Return the paths of tensors that differ between two runs of one program from one state."""
    mine, theirs = first.tensors(), second.tensors()
    return [
        path
        for path in mine.keys() & theirs.keys()
        if mine[path].shape != theirs[path].shape or not equal_bits(mine[path].value, theirs[path].value)
    ]


def _told_apart(findings: list[Finding], first: RunOutcome, second: RunOutcome) -> list[Finding]:
    """A compiled program that differs from itself is called so, whatever else it is."""
    return findings + [
        Finding(VerdictKind.NONDETERMINISTIC, "values", path, "differs between two compiled runs from one state")
        for path in _same_values(first, second)
    ]


def _compare_live(eager: RunOutcome, trial: RunOutcome, live: RunOutcome, references: References) -> list[Finding]:
    """Judge the live run where it is not the trial again; most live runs repeat it bit by bit."""
    findings = [finding for finding in compare(eager, live).findings if finding.aspect != "rng"]
    known = {(f.aspect, f.where) for f in compare(eager, trial).findings}
    findings = [finding for finding in findings if (finding.aspect, finding.where) not in known]
    if live.error is not None or trial.error is not None:
        return findings
    for path in _same_values(trial, live):
        record, mine = live.tensors()[path], eager.tensors().get(path)
        if mine is not None and mine.shape == record.shape and mine.dtype == record.dtype:
            pair = Pair("values" if path.startswith("output") else "mutations", path, mine.value, record.value)
            findings += _values(pair, path, None, references)
    return findings


def _verdict(findings: list[Finding], eager: RunOutcome, live: RunOutcome, options: JudgeOptions) -> Verdict:
    """Weigh the findings: the heaviest that counts decides; ignored and reported-only aspects are kept as notes."""
    silent = REPORTED_ONLY | options.ignore
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
