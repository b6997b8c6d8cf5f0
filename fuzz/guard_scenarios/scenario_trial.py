"""One guard scenario on trial: after every change the compiled function must do what eager does now, and no more work.

Soundness: result and state after each call are eager's at this moment; a specialisation used where it no longer fits
is the bug.  Economy: a known state compiles nothing.  A change of what is not read should compile nothing either; where
it does (over-guarding) the result has a note and does not fail.
"""

from dataclasses import dataclass, replace
from typing import Any

from plumbline.oracle.harness.boundary import call_roots
from plumbline.oracle.harness.compilers import Candidate, CompileRequest, CompilerUnderTest
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

from ..findings import TrialResult, is_finding, signature_of
from .guard_slots import CALL
from .scenarios import Scenario
from .torch_slots import put_back

OPTIONS = JudgeOptions(gradients=False)
State = tuple[int, ...]


def try_scenario(scenario: Scenario, compiler: CompilerUnderTest, backend: str) -> TrialResult:
    """Run one history under one compiler; the verdict is the first failing call's, or the most serious of all.

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
    """An earlier call: the values of the slots that are read, and of all slots."""

    read: State
    all: State


class _Play:
    """The run of one scenario, which remembers the states of its calls."""

    def __init__(self, scenario: Scenario, compiler: CompilerUnderTest, backend: str) -> None:
        self.scenario = scenario
        self.namespace: dict[str, Any] = scenario.namespace()
        self.values = {slot.name: 0 for slot in scenario.slots}
        step = self.namespace["step"]
        self.candidate: Candidate = compiler.compile(step, backend, CompileRequest(), rng=OPTIONS.rng)
        self.past_calls: list[_PastCall] = []
        self.notes: list[str] = []

    def run(self) -> TrialResult:
        """Run all events; stop at the first failure."""
        heaviest = Verdict(VerdictKind.EQUAL, "every call is bitwise equal to eager")
        for number, event in enumerate(self.scenario.events):
            if event.slot:
                exec(event.text, self.namespace)
                self.values[event.slot] = event.value
                continue
            verdict = self._call(number)
            if is_finding(verdict):
                return self._result(verdict)
            if verdict.kind.weight > heaviest.kind.weight:
                heaviest = verdict
        return self._result(heaviest)

    def _result(self, verdict: Verdict) -> TrialResult:
        done = self.candidate.statistics()
        verdict = replace(verdict, graphs=done.graphs, ops=done.ops, breaks=done.breaks, recompiles=done.recompiles)
        signature = signature_of(verdict, self.scenario.names)
        if verdict.kind is VerdictKind.EQUAL and not done.ops:
            verdict = replace(verdict, kind=VerdictKind.VACUOUS, sentence="nothing was compiled, so nothing was tested")
        return TrialResult(verdict, signature, tuple(dict.fromkeys(self.notes)))

    def _call(self, number: int) -> Verdict:
        step = self.namespace["step"]
        args: tuple[Any, ...] = eval(CALL.replace("step(", "(", 1), self.namespace)
        roots = call_roots(step, "function", args, {})  # not the candidate: its caches are not part of the state
        before = self.candidate.statistics().graphs
        verdict = judge_call(step, self.candidate, args, {}, OPTIONS, roots).verdict
        new_graphs = self.candidate.statistics().graphs - before
        state = _PastCall(self._state(self.scenario.read), self._state(tuple(self.values)))
        if not verdict.failed and new_graphs and self.scenario.settled:
            verdict = self._judge_recompile(verdict, state, number)
        self.past_calls.append(state)
        return verdict

    def _state(self, names: tuple[str, ...]) -> State:
        return tuple(self.values[name] for name in names if name in self.values)

    def _judge_recompile(self, verdict: Verdict, state: _PastCall, number: int) -> Verdict:
        """Judge a call that compiled: right in a new state, noted after an unread change, wrong in a known state."""
        if any(past.all == state.all for past in self.past_calls):
            sentence = f"at event {number + 1} compiles again in a state in which it was called before"
            finding = Finding(VerdictKind.WRONG, "recompile", "step", sentence)
            return Verdict(VerdictKind.WRONG, f"step {sentence}", (finding,))
        if any(past.read == state.read for past in self.past_calls):
            unread = sorted(self.values.keys() - set(self.scenario.read))
            self.notes.append(f"over-guard: a change of {', '.join(unread)} compiles again and is not read")
        return verdict
