"""A batch on trial: each program runs eager and inside the compiled function, call after call; the judge decides.

Equal bits, forms and memory settle a program at once.  What differs is judged by the oracle, on the compiled function
itself: it is called with the program's arguments and fresh ones for all others.  A program that fails is tried alone,
so that a failure names one program; one that fails only in company is reported with its batch.
"""

import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.harness.compilers import Candidate, CompileRequest, CompilerUnderTest
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from ..findings import TrialResult, is_finding, signature_of
from ..generated_source import forget_sources, functions_of
from .early_writes import (
    EARLY_WRITE,
    difference_after_early_write,
    eager_reads_what_was_written,
    gradient_is_right,
    has_history,
    refuses_where_eager_runs,
    runs_where_eager_refuses,
)
from .graph_program import ProgramBatch
from .quick_comparison import (
    CallOutcome,
    difference_after_writes,
    first_difference,
    gradients_of,
    raw_bytes,
    run_call,
    write_outputs,
)

OPTIONS = JudgeOptions()
EQUAL = Verdict(VerdictKind.EQUAL, "bitwise equal to eager")
MOST_TRIED_ALONE = 3


def try_batch(batch: ProgramBatch, compiler: CompilerUnderTest, backend: str) -> TrialResult:
    """Try all programs of a batch; the result is that of its first failure, with the others behind it.

    Never raises what a program raises.
    """
    compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        verdicts = _BatchPlay(batch, compiler, backend).run()
        forget_sources()
        if len(batch.programs) == 1:
            return _result(batch, verdicts[0], 1)
        failed = [number for number, verdict in enumerate(verdicts) if is_finding(verdict)]
        if not failed:
            heaviest = max(verdicts, key=lambda verdict: verdict.kind.weight)
            return replace(_result(batch, heaviest, len(batch.programs)), kinds=_kinds(verdicts))
        alone = [_alone(batch, number, compiler, backend) for number in failed[:MOST_TRIED_ALONE]]
    failures = [result for result in alone if result.signature is not None]
    together = _result(batch, verdicts[failed[0]], 1)
    if not any(_same_failure(one, together) for one in failures):  # only in company
        failures.append(together)
    first, *others = failures
    return replace(first, programs=len(batch.programs), kinds=_kinds(verdicts), others=tuple(others))


def _same_failure(one: TrialResult, other: TrialResult) -> bool:
    return one.signature is not None and other.signature is not None and one.signature.same_failure(other.signature)


def _alone(batch: ProgramBatch, number: int, compiler: CompilerUnderTest, backend: str) -> TrialResult:
    single = ProgramBatch((batch.programs[number],))
    compiler.reset()
    return _result(single, _BatchPlay(single, compiler, backend).run()[0], 1)


def _result(batch: ProgramBatch, verdict: Verdict, programs: int) -> TrialResult:
    signature = signature_of(verdict, batch.names)
    return TrialResult(
        verdict, signature, programs=programs, kinds=((verdict.kind.value, programs),),
        example=batch if signature is not None else None,
    )  # fmt: skip


def _kinds(verdicts: list[Verdict]) -> tuple[tuple[str, int], ...]:
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.kind.value] = counts.get(verdict.kind.value, 0) + 1
    return tuple(sorted(counts.items()))


@dataclass(slots=True)
class _Kept:
    """Outputs of an earlier call as they were left: no later call may change them."""

    tensors: list[torch.Tensor] = field(default_factory=list)
    copies: list[torch.Tensor] = field(default_factory=list)

    def keep(self, outcome: CallOutcome) -> None:
        """Remember the outputs of a call."""
        for value in outcome.outputs:
            if isinstance(value, torch.Tensor):
                self.tensors.append(value)
                self.copies.append(value.detach().clone())

    def changed(self) -> bool:
        """Return whether one of them has changed."""
        return any(
            not torch.equal(raw_bytes(now), raw_bytes(copy))
            for now, copy in zip(self.tensors, self.copies, strict=True)
        )


class _BatchPlay:
    """All calls of one batch: eager and compiled side by side, with the verdict of each program so far."""

    def __init__(self, batch: ProgramBatch, compiler: CompilerUnderTest, backend: str) -> None:
        self.batch = batch
        self.namespace = functions_of(batch.source())
        self.candidate: Candidate = compiler.compile(self.namespace["step"], backend, CompileRequest(), rng=OPTIONS.rng)
        self.verdicts = [EQUAL] * len(batch.programs)
        self.kept = [_Kept() for _ in batch.programs]

    def run(self) -> list[Verdict]:
        """Run all calls and return the verdict of each program."""
        for call in range(self.batch.calls):
            self._call(call)
            if any(map(is_finding, self.verdicts)):
                break
        self._look_for_errors_of_the_compiler()
        return self.verdicts

    def arguments(self, number: int, call: int) -> tuple[Any, ...]:
        """Return fresh arguments of one program."""
        made: tuple[Any, ...] = self.namespace[f"arguments_{number}_{call}"]()
        return made

    def _call(self, call: int) -> None:
        count = len(self.batch.programs)
        eager = [run_call(self.namespace[f"f{n}"], self.arguments(n, call), call) for n in range(count)]
        groups = [self.arguments(n, call) for n in range(count)]
        together = run_call(self.candidate, tuple(one for group in groups for one in group), call)
        for number in range(count):
            outputs = together.outputs[number] if together.error is None else ()
            compiled = CallOutcome(outputs, groups[number], together.error)
            verdict = self._compared(number, call, eager[number], compiled)
            if verdict.kind.weight > self.verdicts[number].kind.weight:
                self.verdicts[number] = verdict
            self.kept[number].keep(compiled)
        if call == self.batch.calls - 1 and together.error is None:
            self._write_early(call)

    def _write_early(self, call: int) -> None:
        """Write to an output of each program before its backward."""
        count = len(self.batch.programs)
        eager = [
            [run_call(self.namespace[f"f{n}"], self.arguments(n, call), call) for n in range(count)] for _ in range(2)
        ]
        if not any(map(has_history, eager[0])):
            return
        compiled = []
        for _ in range(2):
            groups = [self.arguments(number, call) for number in range(count)]
            together = run_call(self.candidate, tuple(one for group in groups for one in group), call)
            if together.error is not None:
                return
            pairs = zip(together.outputs, groups, strict=True)
            compiled.append([CallOutcome(own, group, None) for own, group in pairs])
        for number in range(count):
            mine, theirs = ((runs[0][number], runs[1][number]) for runs in (compiled, eager))
            sentence = difference_after_early_write(theirs, mine, call)
            if sentence is not None and not is_finding(self.verdicts[number]):
                self.verdicts[number] = _wrong(EARLY_WRITE, sentence)

    def _compared(self, number: int, call: int, eager: CallOutcome, compiled: CallOutcome) -> Verdict:
        """Compare one program's runs; ask the judge about what differs, then write to the outputs and look again."""
        eager = replace(eager, gradients=gradients_of(eager, call))
        compiled = replace(compiled, gradients=gradients_of(compiled, call))
        verdict = EQUAL
        if first_difference(eager, compiled) is not None:
            verdict = self._judged(number, call)
            if is_finding(verdict):
                return verdict
        elif eager.error is not None:
            verdict = Verdict(VerdictKind.EAGER_FAILED, f"eager raises {type(eager.error).__name__}, and so does it")
        return self._written(eager, compiled) or self._earlier_outputs(number) or verdict

    def _judged(self, number: int, call: int) -> Verdict:
        """Ask the oracle about one program; the compiled function runs with fresh arguments for all the others."""
        function = self.namespace[f"f{number}"]
        args = self.arguments(number, call)

        def compiled(*own: Any) -> Any:
            groups = [
                own if other == number else self.arguments(other, call) for other in range(len(self.batch.programs))
            ]
            return self.candidate(*(one for group in groups for one in group))[number]

        torch.default_generator.manual_seed(call)
        verdict = judge_call(function, compiled, args, {}, OPTIONS, call_roots(function, "function", args, {})).verdict
        fresh = partial(self.arguments, number, call)
        if runs_where_eager_refuses(verdict) and gradient_is_right(function, compiled, fresh, call):
            return Verdict(VerdictKind.EAGER_FAILED, "eager refuses a backward for what it saved and does not read")
        if refuses_where_eager_runs(verdict) and eager_reads_what_was_written(function, fresh, call):
            return Verdict(VerdictKind.EAGER_FAILED, "eager's backward reads what was written after it was saved")
        return verdict

    def _written(self, eager: CallOutcome, compiled: CallOutcome) -> Verdict | None:
        if len(eager.tensors) != len(compiled.tensors):
            return None
        before = [[one.detach().clone() for one in outcome.tensors] for outcome in (eager, compiled)]
        write_outputs(eager)
        write_outputs(compiled)
        sentence = difference_after_writes(eager, before[0], compiled, before[1])
        return None if sentence is None else _wrong("aliasing", sentence)

    def _earlier_outputs(self, number: int) -> Verdict | None:
        if not self.kept[number].changed():
            return None
        return _wrong("aliasing", "an output of an earlier call changes in a later one")

    def _look_for_errors_of_the_compiler(self) -> None:
        """Let errors that the compiler swallowed count: it fell back, so the answer is right and the fault is there."""
        for event in self.candidate.statistics().events:
            if event.kind == "internal_error" and not self.verdicts[0].failed:
                finding = Finding(VerdictKind.CRASH, "internal_error", event.what.split(":")[0], event.what[:300])
                self.verdicts = [Verdict(VerdictKind.CRASH, event.what[:300], (finding,))] * len(self.verdicts)


def _wrong(aspect: str, sentence: str) -> Verdict:
    return Verdict(VerdictKind.WRONG, sentence, (Finding(VerdictKind.WRONG, aspect, "output", sentence),))
