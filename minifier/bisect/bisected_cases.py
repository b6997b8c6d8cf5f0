"""Cases that can be asked again and again: a function, a graph, a failing call, a whole script or test.

What dies or hangs is asked in a child, which hands over what was recorded until then.
"""

import pickle
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO

from torch import fx

from plumbline.compiler.api import reset
from plumbline.compiler.base.bisecting.applications import Application
from plumbline.compiler.base.events import Artifact, Event, Validated, listen, record
from plumbline.compiler.graph.node_values import origin_of
from plumbline.oracle.verdict import Verdict

from ..cases.case_run import run_node, run_script
from ..cases.failing_calls import FailingCall, FailureSession
from ..failure_signature import FailureSignature
from ..graphs.graph_case import GraphCase
from ..reduce.graph_judge import CompileGraph, GraphRules, judge_graph
from ..sandbox import QUERY_SECONDS, in_child


@dataclass(frozen=True, slots=True)
class CallableCase:
    """A case given as a function that compiles and runs something, and says whether it fails.

    What was compiled before is forgotten first.
    """

    question: Callable[[], bool]

    def fails(self) -> bool:
        """Ask."""
        reset()
        return self.question()


@dataclass(frozen=True, slots=True)
class GraphFailure:
    """A graph that fails by itself, compiled with the user's lines on its nodes."""

    case: GraphCase
    compile: CompileGraph
    rules: GraphRules
    signature: FailureSignature

    def fails(self) -> bool:
        """Compile and judge it."""
        program = _with_lines(self.case.graph)
        inputs = self.case.fresh_inputs()
        report = judge_graph(self.case.run, lambda: self.compile(program, inputs), self.case.fresh_inputs(), self.rules)
        return report.signature is not None and self.signature.matches(report.signature)


def _with_lines(gm: fx.GraphModule) -> fx.GraphModule:
    graph = fx.Graph()
    mapping: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.nodes:
        new = mapping[node] = graph.node_copy(node, mapping.__getitem__)
        origin = origin_of(node)
        new.meta = {} if origin is None else {"origin": origin}
    return fx.GraphModule(gm, graph)


@dataclass(frozen=True, slots=True)
class CallFailure:
    """A failing call, judged again from the state before it."""

    call: FailingCall

    def fails(self) -> bool:
        """Judge it."""
        return is_like(self.call.judged_with(self.call.backend), self.call.verdict)


@dataclass(frozen=True, slots=True)
class ProgramFailure:
    """A script or a test, by node id, run whole: for what needs more than one call.  verdict: of its failing call."""

    case: str
    compiler: str
    backend: str
    verdict: Verdict

    def fails(self) -> bool:
        """Run it to its first failing call."""
        reset()
        session = FailureSession(self.compiler, self.backend, lambda _: None, isolated=False)
        (run_node if "::" in self.case else run_script)(self.case, session)
        return session.failure is not None and is_like(session.failure.verdict, self.verdict)


def is_like(verdict: Verdict, first: Verdict) -> bool:
    """Return whether a verdict is the same sort of failure as the first."""
    if not verdict.failed or verdict.worst is None or first.worst is None:
        return verdict.failed
    return (verdict.worst.aspect == "exceptions") == (first.worst.aspect == "exceptions")


@dataclass(frozen=True, slots=True)
class InChild:
    """A case asked in a forked child; its death is a failure.  seconds: after which it is called a hang."""

    case: "CallableCase | GraphFailure | CallFailure | ProgramFailure"
    seconds: float = QUERY_SECONDS

    def fails(self) -> bool:
        """Ask there; what was recorded there is recorded here."""
        with tempfile.TemporaryFile() as spool:
            outcome = in_child(lambda: _spooled(self.case.fails, spool), self.seconds)
            spool.seek(0)
            for event in _read(spool):
                record(event)
        return bool(outcome.death) or bool(outcome.value)


_HANDED_OVER = (Application, Artifact, Validated)


def _spooled(question: Callable[[], bool], spool: IO[bytes]) -> bool:
    def keep(event: Event) -> None:
        if isinstance(event, _HANDED_OVER):
            pickle.dump(event, spool)
            spool.flush()

    stop = listen(keep)
    try:
        return question()
    finally:
        stop()


def _read(spool: IO[bytes]) -> list[Event]:
    events: list[Event] = []
    while True:
        try:
            events.append(pickle.load(spool))  # written by our own child
        except (EOFError, pickle.UnpicklingError):  # the last one is cut short where the child died while writing it
            return events
