"""What two runs of one call differ in, as findings: values, samples, gradients, and what is not repeated.

`comparison` finds every difference but those of values; values are judged here, by bits first, then by `references`,
which know the program's own rounding error.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import torch

from .comparison.aspects import ASPECTS
from .comparison.compare import OutcomeComparison, compare
from .comparison.compare_exceptions import exception_difference
from .comparison.compare_tensors import GradientPair, Pair
from .cotangents import ALONE, COTANGENTS, DOUBLE, FullRun, Gradients
from .judge_options import JudgeOptions
from .numeric.bits import equal_bits, equal_values
from .numeric.references import References
from .numeric.value_decision import Need
from .numeric.value_judgement import judge_values
from .state.process_state import BY_IMPORT
from .state.run_outcome import RunOutcome
from .verdict import Finding, VerdictKind

_NEEDS_BACKWARD = "incompatible with .grad() or passing an `inputs` parameter"
"""In what reentrant checkpoints say of every backward but `Tensor.backward()` without inputs."""

AFTER_BACKWARD = " after the backward"
"""Ends the place of a finding that was made there."""

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
    from .numeric.distribution import judge_distribution  # scipy takes a second to import, and few programs need it

    findings = []
    for pair in pairs:
        kind, sentence = judge_distribution(eager[pair.path], compiled.get(pair.path, []))
        if kind is not VerdictKind.EQUAL:
            findings.append(Finding(kind, pair.aspect, pair.path, sentence))
    return findings


def gradient_findings(
    expected: Mapping[str, Gradients | None],
    actual: Mapping[str, Gradients | None],
    references: References,
    options: JudgeOptions,
    held: Callable[[str], tuple[Gradients | None, Gradients | None]],
) -> list[Finding]:
    """Compare the gradients of every leaf, by cotangent.

    actual: empty where the compiled program raised.  held: makes those of one cotangent again, eager's and the
    compiled ones, where they were let go.
    """
    findings: list[Finding] = []
    for cotangent in expected:
        eager, compiled = expected[cotangent], actual.get(cotangent)
        if eager is None or compiled is None:
            continue  # requires_grad or grad_fn differs; the comparison of metadata has said so
        if eager is compiled:
            continue  # every byte was found to be the same
        made_again = bool(eager.digests and compiled.digests)
        if made_again:
            if not eager.differing_leaves(compiled):
                continue
            eager, compiled = held(cotangent)
            if eager is None or compiled is None:
                continue
        if cotangent == DOUBLE and (refusal := _refused_double(eager, compiled, options)) is not None:
            findings += refusal
            continue
        difference = exception_difference(eager.error, compiled.error, "the backward")
        if difference is not None and _NEEDS_BACKWARD in str(eager.error):
            sentence = "eager refuses `torch.autograd.grad`, by which the judge asks for them"
            findings.append(Finding(VerdictKind.NO_REFERENCE, "gradients", "the backward", sentence))
        elif difference is not None:
            findings.append(Finding(difference.kind, "exceptions", difference.where, difference.sentence))
        if eager.error is None and compiled.error is None:
            take = dict.pop if made_again else dict.get  # memory of what has been judged is free for the next
            for leaf in list(eager.by_leaf):
                shares = "" if leaf in eager.shared else compiled.shared.get(leaf, "")
                pair = GradientPair(
                    leaf,
                    take(eager.by_leaf, leaf, None),
                    take(compiled.by_leaf, leaf, None),
                    alone=cotangent.endswith(ALONE),
                    shares=shares,
                    layouts=(eager.layouts.get(leaf, ""), compiled.layouts.get(leaf, "")),
                )
                findings += _compare_gradient(pair, cotangent, references)
    return _worst_per_place(findings)


def _refused_double(eager: Gradients, compiled: Gradients, options: JudgeOptions) -> list[Finding] | None:
    """Return a note where gradients of gradients are refused that eager gives; None where they are to be compared.

    A compiler may refuse them if it says so: by an error, or in advance, and then its gradients have no history.
    """
    lost = not options.double_backward and not any(gradient is not None for gradient in compiled.by_leaf.values())
    gives = eager.error is None and any(gradient is not None for gradient in eager.by_leaf.values())
    if not gives or eager.error is not None:
        return []
    if compiled.error is None and not lost:
        return None
    return [
        Finding(VerdictKind.WRONG, aspect.name, "gradients of gradients", aspect.backward_refused(compiled.error))
        for aspect in ASPECTS
        if aspect.backward_refused is not None
    ]


def _compare_gradient(pair: GradientPair, cotangent: str, references: References) -> list[Finding]:
    where = f"gradient of {pair.leaf}"
    is_missing = (pair.eager is None) != (pair.actual is None)
    if cotangent == DOUBLE and is_missing and _is_zero(pair.eager) and _is_zero(pair.actual):
        return []  # whether autograd says none or zeros depends on the formula: relu and clamp differ in it
    values = pair.same_form()
    findings = _compare_values(values, where, cotangent, references) if values is not None else []
    findings = [replace(f, sentence=f"{f.sentence} ({_named(cotangent)})") for f in findings]
    return findings + [
        Finding(VerdictKind.WRONG, aspect.name, where, sentence)
        for aspect in ASPECTS
        if aspect.gradients is not None
        for sentence in aspect.gradients(pair)
    ]


def _is_zero(gradient: torch.Tensor | None) -> bool:
    """Return whether there is no gradient, or one of zeros alone."""
    return gradient is None or not bool(gradient.detach().count_nonzero())


def _named(kind: str) -> str:
    return f"{kind} cotangent" if kind in COTANGENTS else f"cotangent: {kind}"


def _worst_per_place(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the heaviest finding of each aspect and place: three cotangents show one fault."""
    worst: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.aspect, finding.where)
        if key not in worst or finding.kind.weight > worst[key].kind.weight:
            worst[key] = finding
    return list(worst.values())


def after_backward_findings(eager: RunOutcome, actual: RunOutcome, forward: OutcomeComparison) -> list[Finding]:
    """Compare what the backwards left behind: state that hooks and the program's own backwards have changed.

    forward: the comparison after the forward, whose findings are not said again.
    """
    comparison = compare(eager, actual)
    known = {(finding.aspect, finding.where) for finding in forward.findings}
    judged = {pair.path for pair in forward.pairs}
    findings = [finding for finding in comparison.findings if (finding.aspect, finding.where) not in known]
    for pair in comparison.pairs:
        if pair.path not in judged and not equal_values(pair.eager, pair.actual):
            open_kind, statistics, sentence = judge_values(pair.actual, pair.eager, None)
            kind = VerdictKind.NO_REFERENCE if isinstance(open_kind, Need) else open_kind
            findings.append(Finding(kind, pair.aspect, pair.path, sentence, statistics))
    return [replace(finding, where=f"{finding.where}{AFTER_BACKWARD}") for finding in findings]


def overwritten_findings(eager: RunOutcome, trial: RunOutcome) -> list[Finding]:
    """Return the outputs of an earlier call that a later one has written to: memory that a compiler uses again."""
    before, after = (_overwritten(outcome) for outcome in (eager, trial))
    sentence = "is overwritten by the next call; eager's stays as it is"
    return [Finding(VerdictKind.WRONG, "aliasing", path, sentence) for path in after if path not in before]


def _overwritten(outcome: RunOutcome) -> list[str]:
    records = outcome.output.by_path() if outcome.output else {}
    return [path for path, record in records.items() if record.is_overwritten()]


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


def unsteady_places(first: FullRun, second: FullRun) -> set[str]:
    """Return the places in which two runs of eager from one state differ.

    LAPACK's driver gelsy reads memory that nobody wrote; others ask for the time, or for an address.
    """
    places = {finding.where for finding in compare(first.outcome, second.outcome).findings}
    places |= unequal_numbers(first, second)
    if first.after is not None and second.after is not None:
        places |= {f"{finding.where} after the backward" for finding in compare(first.after, second.after).findings}
    return places


def places_of_memos(
    findings: Iterable[Finding], unsteady: Collection[str], again: FullRun, actual: FullRun
) -> set[str]:
    """Return the places of Python state that the compiled run leaves as eager does when it runs once more.

    The first run has filled a memo where no snapshot looks, and notes on the way are not made again.
    """
    places = {finding.where for finding in findings if finding.aspect == "python" and finding.where in unsteady}
    return places - unsteady_places(again, actual) if places else places


def unequal_numbers(first: FullRun, second: FullRun) -> set[str]:
    """Return the places at which two runs of eager from one state have other numbers."""
    places = set(_differing_paths(first.outcome, second.outcome))
    for kind, before in first.gradients.items():
        after = second.gradients.get(kind)
        if before is None or after is None or before.error is not None or after.error is not None:
            continue
        places |= {f"gradient of {leaf}" for leaf in before.differing_leaves(after)}
    return places


def unless_by_loading(findings: list[Finding], eager: RunOutcome, again: RunOutcome) -> list[Finding]:
    """Return the findings without what a compiler's own imports have changed once, and a second run does not change."""
    once = {finding.where.removesuffix(AFTER_BACKWARD) for finding in findings} & BY_IMPORT
    if not once:
        return findings
    once -= {finding.where for finding in compare(eager, again).findings}
    return [finding for finding in findings if finding.where.removesuffix(AFTER_BACKWARD) not in once]


def unless_unsteady(finding: Finding, unsteady: Collection[str]) -> Finding:
    """Return the finding; one that fails nothing where eager does not repeat itself there either."""
    if not finding.kind.fails or finding.where not in unsteady:
        return finding
    sentence = f"{finding.sentence}; eager differs from itself there in two runs from one state"
    return replace(finding, kind=VerdictKind.NO_REFERENCE, sentence=sentence)


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
