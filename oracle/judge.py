"""One judged call: eager as the reference, the compiled program on trial, then live.

The steps of a call: snapshot; eager runs, rewound after each; the compiled program on trial, rewound; the comparison,
with float64 references where bits differ; finally the compiled program live on the caller's own arguments.  The live
result goes to the caller and is compared with the trial.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .comparison.aspects import reported_only
from .comparison.compare import OutcomeComparison, compare
from .compiling_flag import AskedFlag, as_if_compiled
from .cotangents import COTANGENTS, DOUBLE, FullRun, Gradients, differentiable
from .freed_memory import let_go_of_frames
from .judge_failure import failure_finding, failure_notes
from .judge_options import JudgeOptions
from .numeric.references import CallSources, Decided, References
from .run_differences import (
    after_backward_findings,
    gradient_findings,
    live_findings,
    overwritten_findings,
    places_of_memos,
    repetition_findings,
    sample_findings,
    unequal_numbers,
    unless_by_loading,
    unless_unsteady,
    unsteady_places,
    value_findings,
)
from .runs import CallRuns, JudgedProgram, run_program
from .state.random_state import RandomState
from .state.run_outcome import RunOutcome
from .state.snapshot import Snapshot
from .state.unwritten_memory import FILLINGS, FilledMemory, with_filled_memory
from .state.walk import Walk
from .user_overrides import without_overrides
from .verdict import Finding, Verdict, VerdictKind

MOST_FINDINGS = 40
"""Findings in a verdict at most; a broken call may differ everywhere, and people read the first few."""

EAGER_RUNS = 8
"""Runs of eager that may show that it differs from itself, where the compiled program does."""

_STACK_FULL = "eager fills the stack, and how far a call comes before that depends on its callers"

LARGE_CALL = 1 << 21
"""Bytes of reached tensors from which later cotangents are judged by norm: more references would cost seconds."""

LARGE_RESULTS = 16 << 20
"""Bytes of results from which the same is done, and the memory of lanes is bounded, however little a call was given."""


@dataclass(slots=True, eq=False)
class Judgement:
    """A verdict together with what the live compiled run gave: a result, or the exception it raised; `unwrap` once."""

    verdict: Verdict
    result: Any
    error: BaseException | None

    def unwrap(self) -> Any:
        """Hand over the live result, or raise what the live run raised.

        An exception holds the frames that it passed, and these would hold it: what they hold would never end.
        """
        error, result = self.error, self.result
        self.error = self.result = None
        if error is None:
            return result
        let_go_of_frames(error)
        try:
            raise error
        finally:
            del error, result


def judge_call(
    reference: JudgedProgram,
    candidate: JudgedProgram,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: JudgeOptions,
    roots: Mapping[str, object],
    rejected: JudgedProgram | None = None,
    reached: Walk | None = None,
) -> Judgement:
    """Judge one call of `candidate` against `reference` and return the live result with the verdict.

    rejected: replaces `candidate` when eager raises; there are no draws to align then, so the compiler may use its
    own random numbers.
    roots: named objects from which everything the call may change can be reached (arguments, module, function).
    reached: the walk from them, where the caller has just made it.
    An exception of either program becomes part of the verdict; none is raised here.
    """
    if options.told_compiled:
        reference = as_if_compiled(reference, AskedFlag())
    with without_overrides():
        return _judge_call(reference, candidate, args, kwargs, options, (roots, reached), rejected or candidate)


def _judge_call(
    reference: JudgedProgram,
    candidate: JudgedProgram,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: JudgeOptions,
    state: tuple[Mapping[str, object], Walk | None],
    rejected: JudgedProgram,
) -> Judgement:
    runs: CallRuns | None = None
    roots = state[0]
    try:
        runs = CallRuns(Snapshot.take(*state), args, kwargs, options.seed, options.backward_turn)
        eager = _eager_run(runs, reference, options)
        if eager is None or isinstance(eager.outcome.error, RecursionError):
            reasons = runs.snapshot.obstacles or runs.lost or [_STACK_FULL]
            runs.snapshot.rewind()  # what ended with eager's run may have written
            runs = None  # it would keep alive what the call ends
            return _unjudged(candidate, args, kwargs, reasons)
        program = candidate if eager.outcome.error is None else rejected
        return _judge(runs, reference, program, eager, options, roots)
    except Exception as error:
        if runs is not None and runs.ended is None:
            with contextlib.suppress(Exception):
                runs.snapshot.rewind()
        ended = (runs.ended if runs is not None else None) or run_program(candidate, args, kwargs)
        finding = failure_finding(error)
        notes = failure_notes(error, reference, roots, MOST_FINDINGS)
        verdict = Verdict(finding.kind, finding.sentence, (finding,), candidate_seconds=ended.seconds, notes=notes)
        return Judgement(verdict, ended.output, ended.error)


def _eager_run(runs: CallRuns, reference: JudgedProgram, options: JudgeOptions) -> FullRun | None:
    """Run eager with its backwards; None where that cannot be undone."""
    if runs.snapshot.obstacles:
        return None
    eager = runs.full(reference, lambda outcome: _gradient_paths(outcome, options), eager=True)
    if not runs.lost and any(cache.is_filled() for cache in runs.snapshot.caches):
        _look_at_caches(runs, reference, eager)
    return None if runs.lost else eager


def _look_at_caches(runs: CallRuns, reference: JudgedProgram, eager: FullRun) -> None:
    """Have caches rewound that eager's run filled, if a run that finds them filled does something else."""
    again = runs.forward(reference)
    runs.snapshot.rewinds_caches = bool(compare(eager.outcome, again).findings)
    if runs.snapshot.rewinds_caches:
        runs.snapshot.rewind()


def _judge(
    runs: CallRuns,
    reference: JudgedProgram,
    candidate: JudgedProgram,
    expected: FullRun,
    options: JudgeOptions,
    roots: Mapping[str, object],
) -> Judgement:
    """Run the compiled program on trial, compare, and run it live."""
    eager, paths = expected.outcome, expected.paths
    actual = runs.full(candidate, lambda outcome: paths, like=expected)
    trial = actual.outcome
    trials = _Trials(runs, options, expected, actual)
    findings, comparison = trials.findings(reference, candidate)
    if any(finding.kind is not VerdictKind.EQUAL for finding in findings):
        again = runs.forward(candidate)
        repeated = repetition_findings(trial, again)
        findings = unless_by_loading(findings, eager, again)
        findings = trials.unless_eager_does(findings + repeated, reference)
    if any(finding.kind.fails for finding in findings):
        findings = trials.unless_by_design(findings, reference, candidate)
    trials.references.open = False
    live, result = runs.live(candidate)
    notes: tuple[str, ...] = ()
    try:
        findings += overwritten_findings(eager, trial)
        known = [*comparison.findings, *findings]
        findings += trials.unless_eager_varies(
            live_findings(eager, trial, live, known, trials.references), reference, roots
        )
    except Exception as error:  # what was found before counts all the same
        findings.append(failure_finding(error))
        notes = failure_notes(error, reference, roots, MOST_FINDINGS)
    verdict = _verdict(findings, eager, live, options)
    return Judgement(replace(verdict, notes=(*verdict.notes, *notes)), result, live.error)


class _Trials:
    """The reference and the trial of one call, and what tells a fault from what eager itself does."""

    def __init__(
        self, runs: CallRuns, options: JudgeOptions, expected: FullRun, actual: FullRun, accepted: Decided | None = None
    ) -> None:
        self.runs = runs
        self.options = options
        self.paths = expected.paths
        self.expected = expected
        self.actual = actual
        self.references: References
        self._accepted = accepted

    def findings(self, reference: JudgedProgram, candidate: JudgedProgram) -> tuple[list[Finding], OutcomeComparison]:
        """Return what the trial and the reference differ in, and the comparison of their forwards."""
        runs, options, eager, trial = self.runs, self.options, self.expected.outcome, self.actual.outcome
        paths = self.paths  # without `self`: a circle would keep all gradients until the garbage collector comes
        large = sum(saved.nbytes for saved in runs.snapshot.storages.values()) > LARGE_CALL
        large |= sum(record.value.nbytes for record in eager.tensors().values()) > LARGE_RESULTS
        sources = CallSources(
            lambda shadow, wanted, keep: runs.shadow(reference, shadow, paths, wanted, keep),
            lambda lane, wanted, keep, take: runs.followed(reference, lane, paths, wanted, keep, take),
            runs.snapshot.rewind,
            COTANGENTS if paths else (),
            () if large else tuple(kind for kind in self.expected.gradients if kind != DOUBLE),
            frozenset({"ones"}),
            large,
        )
        self.references = references = References(sources, options, self._accepted)
        native = _draws_natively(eager, runs.snapshot, options)
        comparison = compare(eager, trial, without={"rng"} if native else ())
        findings = self._strict_numbers(comparison.findings, reference)
        if native and eager.error is None and trial.error is None:
            samples = (runs.samples(program, options.samples) for program in (reference, candidate))
            findings += sample_findings(comparison.pairs, *samples)
        else:
            findings += value_findings(comparison.pairs, references)

        def held(cotangent: str) -> tuple[Gradients | None, Gradients | None]:
            references.prepare(cotangent)
            return self._held(cotangent, reference, candidate)

        findings += gradient_findings(self.expected.gradients, self.actual.gradients, references, options, held)
        if self.expected.after is not None and self.actual.after is not None:
            findings += after_backward_findings(self.expected.after, self.actual.after, comparison)
        return findings, comparison

    def _held(
        self, cotangent: str, reference: JudgedProgram, candidate: JudgedProgram
    ) -> tuple[Gradients | None, Gradients | None]:
        """Run both sides again for the gradients of one cotangent, which were let go.

        Where a backward depends on those before it, these are run as well.
        """
        kinds = list(self.expected.gradients)
        eager = self._again(reference, self.expected, kinds, cotangent)
        return eager, self._again(candidate, self.actual, kinds, cotangent)

    def _again(self, program: JudgedProgram, first: FullRun, kinds: Sequence[str], cotangent: str) -> Gradients | None:
        known = first.gradients[cotangent]
        for wanted in ((cotangent,), kinds[: kinds.index(cotangent) + 1]):
            found = self.runs.full(program, lambda outcome: self.paths, wanted).gradients[cotangent]
            if found is None or known is None or not found.let_go().differing_leaves(known):
                break
        return found

    def _strict_numbers(self, findings: Iterable[Finding], reference: JudgedProgram) -> list[Finding]:
        """Return the findings; a number of Python's that is nearly eager's is wrong unless a tensor gave it."""
        nearly = [one for one in findings if one.kind is VerdictKind.NO_REFERENCE and not one.may_round]
        if not nearly or self.runs.reads_numbers(reference):
            return list(findings)
        return [replace(finding, kind=VerdictKind.WRONG) if finding in nearly else finding for finding in findings]

    def unless_eager_does(self, findings: list[Finding], reference: JudgedProgram) -> list[Finding]:
        """Return the findings; nothing is wrong about a place where eager differs from itself as well."""
        runs = EAGER_RUNS if any(f.kind is VerdictKind.NONDETERMINISTIC for f in findings) else 1
        if not any(finding.kind.fails for finding in findings):
            return findings
        unsteady, repeated = set[str](), set[str]()
        ballast: list[object] = []  # takes up memory that was freed, so that what eager makes lies somewhere else
        for _ in range(runs):
            ballast += [[torch.empty(1), object(), {}] for _ in range(32)]
            again = self.runs.full(reference, lambda outcome: self.paths)
            unsteady |= unsteady_places(self.expected, again)
            repeated |= places_of_memos(findings, unsteady, again, self.actual)
        findings = [finding for finding in findings if finding.where not in repeated]
        if any(f.kind.fails and f.where not in unsteady and not _is_reported_only(f) for f in findings):
            unsteady |= self._unwritten_places(reference, self.runs, self.paths)
        counted = [finding for finding in findings if finding.where not in unsteady or not _is_reported_only(finding)]
        return [unless_unsteady(finding, unsteady) for finding in counted]

    def unless_eager_varies(
        self, findings: list[Finding], reference: JudgedProgram, roots: Mapping[str, object]
    ) -> list[Finding]:
        """Return what the live run showed; nothing is wrong about a place where eager, run after it, varies.

        The state before the call is gone by then: eager starts from what the live run left.
        """
        if not any(finding.kind.fails for finding in findings):
            return findings
        later = CallRuns(Snapshot.take(roots), self.runs.args, self.runs.kwargs, self.runs.seed)
        if later.snapshot.obstacles:
            return findings
        first = later.full(reference, lambda outcome: ())
        if later.lost:
            return findings
        unsteady = unsteady_places(first, later.full(reference, lambda outcome: ()))
        unsteady |= self._unwritten_places(reference, later, ())
        return [unless_unsteady(finding, unsteady) for finding in findings]

    def _unwritten_places(self, reference: JudgedProgram, runs: CallRuns, paths: tuple[str, ...]) -> set[str]:
        """Return the places whose numbers depend on memory that eager makes and does not write."""
        found = []
        for number in FILLINGS:
            filled = FilledMemory(number)
            found.append(runs.full(with_filled_memory(reference, filled), lambda outcome: paths))
            if not filled.made or found[-1].outcome.error is not None:
                return set()
        return unequal_numbers(*found)

    def unless_by_design(
        self, findings: list[Finding], reference: JudgedProgram, candidate: JudgedProgram
    ) -> list[Finding]:
        """Return the findings; one of another kind where the program asks whether it is compiled, and is right then."""
        flag = AskedFlag()
        told = as_if_compiled(reference, flag)
        flagged = self.runs.full(told, lambda outcome: _gradient_paths(outcome, self.options))
        if not flag.places:
            return findings
        paths = flagged.paths
        actual = self.actual if paths == self.paths else self.runs.full(candidate, lambda outcome: paths)
        again = _Trials(self.runs, self.options, flagged, actual, self.references.accepted)
        others, _ = again.findings(told, candidate)
        if any(finding.kind.fails and finding.aspect not in reported_only() for finding in others):
            return findings
        where = ", ".join(list(flag.places)[:3])
        sentence = f"asks whether it is compiled at {where} and goes another way; with that answer eager agrees"
        return [Finding(VerdictKind.DESIGN, "values", "the program", sentence)]


def _is_reported_only(finding: Finding) -> bool:
    return finding.aspect in reported_only()


def _draws_natively(eager: RunOutcome, snapshot: Snapshot, options: JudgeOptions) -> bool:
    """Return whether eager draws random numbers and the compiler is to use its own generator for them."""
    if options.rng != "native":
        return False
    state = eager.observed["rng"]
    assert isinstance(state, RandomState)
    return bool(snapshot.random.differences(state))


def _unjudged(
    candidate: JudgedProgram, args: tuple[Any, ...], kwargs: Mapping[str, Any], reasons: list[str]
) -> Judgement:
    """Run only the compiled program, live; the verdict says why nothing was judged."""
    live = run_program(candidate, args, kwargs)
    finding = Finding(VerdictKind.NO_REFERENCE, "python", "call", "; ".join(reasons[:3]))
    verdict = Verdict(VerdictKind.NO_REFERENCE, finding.sentence, (finding,), candidate_seconds=live.seconds)
    return Judgement(verdict, live.output, live.error)


def _gradient_paths(eager: RunOutcome, options: JudgeOptions) -> tuple[str, ...]:
    """Return the paths of the outputs whose gradients are judged; none outside grad mode."""
    if not options.gradients or eager.error is not None or not torch.is_grad_enabled():
        return ()
    return tuple(differentiable(eager))


def with_findings(verdict: Verdict, more: list[Finding], options: JudgeOptions) -> Verdict:
    """Return a verdict with findings that were made after its call; ignored aspects become notes."""
    notes = tuple(f"{f.aspect}: {f.where} {f.sentence}" for f in more if f.aspect in options.ignore)
    counted = [finding for finding in more if finding.aspect not in options.ignore]
    found = sorted((*verdict.findings, *counted), key=lambda finding: -finding.kind.weight)
    if counted and counted[0].kind.weight > verdict.kind.weight:
        sentence = f"{counted[0].where} {counted[0].sentence}"
        verdict = replace(verdict, kind=counted[0].kind, sentence=sentence)
    return replace(verdict, findings=tuple(found[:MOST_FINDINGS]), notes=(*verdict.notes, *notes)[:MOST_FINDINGS])


def _verdict(findings: list[Finding], eager: RunOutcome, live: RunOutcome, options: JudgeOptions) -> Verdict:
    """Weigh the findings: the heaviest that counts decides; ignored and reported-only aspects become notes."""
    silent = reported_only() | options.ignore
    counted = sorted((f for f in findings if f.aspect not in silent), key=lambda f: -f.kind.weight)
    notes = tuple(f"{f.aspect}: {f.where} {f.sentence}" for f in findings if f.aspect in silent)[:MOST_FINDINGS]
    kind = counted[0].kind if counted else VerdictKind.EQUAL
    if not kind.fails and eager.error is not None and kind is not VerdictKind.DESIGN:
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
