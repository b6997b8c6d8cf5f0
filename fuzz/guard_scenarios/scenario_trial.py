"""One guard scenario on trial: after every change the compiled function must do what eager does now, and no more work.

Soundness: result and state after each call are eager's at this moment; a specialisation used where it no longer fits
is the bug.  Thrift: a state met again compiles nothing; a change of what is not read compiles nothing either, and is
reported where it does (over-guarding), not failed.
"""

from dataclasses import dataclass, replace
from typing import Any

from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.harness.compilers import Candidate, CompileRequest, CompilerUnderTest
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from ..findings import TrialResult, signature_of
from .guard_slots import CALL
from .scenarios import Scenario
from .torch_slots import put_back

OPTIONS = JudgeOptions(gradients=False)
State = tuple[int, ...]


def try_scenario(scenario: Scenario, compiler: CompilerUnderTest, backend: str) -> TrialResult:
    """Play one history under one compiler; the verdict is the first failing call's, or the heaviest of all.

    What slots change in torch is set back at the end.
    """
    compiler.reset()
    try:
        return _Play(scenario, compiler, backend).run()
    finally:
        put_back()
        compiler.reset()


@dataclass(frozen=True, slots=True)
class _PastCall:
    """A call that was made: the values of what is read, and of everything."""

    read: State
    all: State


class _Play:
    """The run of one scenario; a class because a history has a memory."""

    def __init__(self, scenario: Scenario, compiler: CompilerUnderTest, backend: str) -> None:
        self.scenario = scenario
        self.namespace: dict[str, Any] = scenario.namespace()
        self.values = {slot.name: 0 for slot in scenario.slots}
        step = self.namespace["step"]
        self.candidate: Candidate = compiler.compile(step, backend, CompileRequest(), rng=OPTIONS.rng)
        self.met: list[_PastCall] = []
        self.notes: list[str] = []

    def run(self) -> TrialResult:
        """Play all events; stop at the first failure."""
        heaviest = Verdict(VerdictKind.EQUAL, "every call is bitwise equal to eager")
        for number, event in enumerate(self.scenario.events):
            if event.slot:
                exec(event.text, self.namespace)
                self.values[event.slot] = event.value
                continue
            verdict = self._call(number)
            if verdict.failed and verdict.kind is not VerdictKind.EAGER_FAILED:
                return self._tried(verdict)
            if verdict.kind.weight > heaviest.kind.weight:
                heaviest = verdict
        return self._tried(heaviest)

    def _tried(self, verdict: Verdict) -> TrialResult:
        done = self.candidate.statistics()
        verdict = replace(verdict, graphs=done.graphs, ops=done.ops, breaks=done.breaks, recompiles=done.recompiles)
        signature = signature_of(verdict, self.scenario.names)
        if verdict.kind is VerdictKind.EQUAL and not done.ops:
            verdict = replace(verdict, kind=VerdictKind.VACUOUS, sentence="nothing was compiled, so nothing was tested")
        return TrialResult(verdict, signature, tuple(dict.fromkeys(self.notes)))

    def _call(self, number: int) -> Verdict:
        step = self.namespace["step"]
        args: tuple[Any, ...] = eval(CALL.replace("step(", "(", 1), self.namespace)
        roots = call_roots(step, "function", args, {})  # not the candidate: what it remembers is its own business
        before = self.candidate.statistics().graphs
        verdict = judge_call(step, self.candidate, args, {}, OPTIONS, roots).verdict
        made = self.candidate.statistics().graphs - before
        state = _PastCall(self._state(self.scenario.read), self._state(tuple(self.values)))
        if not verdict.failed and made and self.scenario.settled:
            verdict = self._weigh_recompile(verdict, state, number)
        self.met.append(state)
        return verdict

    def _state(self, names: tuple[str, ...]) -> State:
        return tuple(self.values[name] for name in names if name in self.values)

    def _weigh_recompile(self, verdict: Verdict, state: _PastCall, number: int) -> Verdict:
        """Judge a call that compiled: news is fine, an unread change is noted, a state met before is a failure."""
        if any(met.all == state.all for met in self.met):
            sentence = f"at event {number + 1} compiles again in a state in which it was called before"
            finding = Finding(VerdictKind.WRONG, "recompile", "step", sentence)
            return Verdict(VerdictKind.WRONG, f"step {sentence}", (finding,))
        if any(met.read == state.read for met in self.met):
            unread = sorted(self.values.keys() - set(self.scenario.read))
            self.notes.append(f"over-guard: a change of {', '.join(unread)} compiles again and is not read")
        return verdict
