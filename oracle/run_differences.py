"""What two runs of one call differ in, as findings: values, samples, gradients, and what is not repeated.

`comparison` finds every difference but those of values; values are judged here, by bits first, then by `references`,
which know the program's own rounding error.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import torch

from .comparison.aspects import ASPECTS
from .comparison.compare import compare
from .comparison.compare_exceptions import exception_difference
from .comparison.compare_tensors import GradientPair, Pair
from .cotangents import Gradients
from .numeric.bits import equal_bits, equal_values
from .numeric.distribution import judge_distribution
from .numeric.references import References
from .state.run_outcome import RunOutcome
from .verdict import Finding, VerdictKind

Samples = Mapping[str, Sequence[torch.Tensor]]  # by path, the tensors of successive runs


def value_findings(pairs: Iterable[Pair], references: References) -> list[Finding]:
    """Judge pairs of tensors by value."""
    return [finding for pair in pairs for finding in _compare_values(pair, pair.path, None, references)]


def _compare_values(pair: Pair, where: str, cotangent: str | None, references: References) -> list[Finding]:
    """Judge one pair by value; differences in bits alone (the sign of zero) go to the aspects that compare them."""
    if equal_bits(pair.eager, pair.actual):
        return []
    if equal_values(pair.eager, pair.actual):
        return [
            Finding(VerdictKind.WRONG, aspect.name, where, sentence)
            for aspect in ASPECTS
            if aspect.equal_values is not None
            for sentence in aspect.equal_values(pair)
        ]
    kind, statistics, sentence = references.decide(pair.path, pair.eager, pair.actual, cotangent)
    return [] if kind is VerdictKind.EQUAL else [Finding(kind, pair.aspect, where, sentence, statistics)]


def sample_findings(pairs: Iterable[Pair], eager: Samples, compiled: Samples) -> list[Finding]:
    """Compare the distributions of what both sides drew from many seeds, tensor by tensor."""
    findings = []
    for pair in pairs:
        kind, sentence = judge_distribution(eager[pair.path], compiled.get(pair.path, []))
        if kind is not VerdictKind.EQUAL:
            findings.append(Finding(kind, pair.aspect, pair.path, sentence))
    return findings


def gradient_findings(
    expected: Mapping[str, Gradients | None], actual: Mapping[str, Gradients | None], references: References
) -> list[Finding]:
    """Compare the gradients of every leaf, by cotangent; actual: empty where the compiled program raised."""
    findings: list[Finding] = []
    for cotangent, eager in expected.items():
        compiled = actual.get(cotangent)
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


def repetition_findings(first: RunOutcome, second: RunOutcome) -> list[Finding]:
    """Return what differs between two compiled runs: a program that differs from itself is reported as such."""
    return [
        Finding(VerdictKind.NONDETERMINISTIC, "values", path, "differs between two compiled runs from one state")
        for path in _differing_paths(first, second)
    ]


def unless_eager_does(repeated: list[Finding], eager: RunOutcome, others: Iterable[RunOutcome]) -> list[Finding]:
    """Return the findings of a repetition; nothing is wrong about places where eager differs from itself as well.

    LAPACK's driver gelsy reads memory that nobody wrote, for instance.  others: further runs of eager from one state.
    """
    unsteady = {path for other in others for path in _differing_paths(eager, other)}
    sentence = "differs between two runs, compiled and in eager"
    return [
        Finding(VerdictKind.NO_REFERENCE, one.aspect, one.where, sentence) if one.where in unsteady else one
        for one in repeated
    ]


def live_findings(
    eager: RunOutcome, trial: RunOutcome, live: RunOutcome, known: Iterable[Finding], references: References
) -> list[Finding]:
    """Judge the live run where it does not repeat the trial; most live runs repeat it bit by bit.

    known: what the comparison of the trial found, values left out.
    """
    places = {(finding.aspect, finding.where) for finding in known}
    findings = [f for f in compare(eager, live, without={"rng"}).findings if (f.aspect, f.where) not in places]
    if live.error is not None or trial.error is not None:
        return findings
    live_tensors, eager_tensors = live.tensors(), eager.tensors()
    for path in _differing_paths(trial, live):
        record, expected = live_tensors[path], eager_tensors.get(path)
        if expected is not None and expected.shape == record.shape and expected.dtype == record.dtype:
            aspect = "values" if path.startswith("output") else "mutations"
            findings += _compare_values(Pair(aspect, path, expected.value, record.value), path, None, references)
    return findings
