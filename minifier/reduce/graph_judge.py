"""One graph compiled and judged: the question behind every query of the minifier, and behind every repro script."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from plumbline.oracle.comparison.aspects import aspect_names
from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.state.scope import seed_everything
from plumbline.oracle.verdict import Verdict

from ..failure_signature import FailureSignature, exception_signature, signature_of
from ..graphs.graph_case import SEED, GraphCase

GraphProgram = Callable[..., object]
CompileGraph = Callable[[fx.GraphModule, Sequence[object]], GraphProgram]
"""A graph and example inputs in, a callable on such inputs out: what a backend is."""


@dataclass(frozen=True, slots=True)
class GraphReport:
    """The result of judging one graph.  signature None: it does not fail.  verdict None: compiling it raised."""

    signature: FailureSignature | None
    verdict: Verdict | None = None
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class GraphRules:
    """How graphs of one level are judged.

    grad: under grad mode, gradients too (torch-level graphs); ATen graphs run without.
    ignore: aspects that do not count here.
    """

    grad: bool
    ignore: frozenset[str] = frozenset()
    gradients: bool = True

    def only(self, aspect: str) -> "GraphRules":
        """Return the rules that look for one aspect of a failure only."""
        silent = frozenset(aspect_names()) - {aspect, "exceptions"}
        return GraphRules(self.grad, silent, gradients=aspect in ("gradients", "exceptions"))


# Between two ATen graphs the compiler may choose strides and sharing of values, Python effects and random draws.
RULES = {
    "dynamo": GraphRules(grad=True, ignore=frozenset({"python"})),
    "aot": GraphRules(grad=False, ignore=frozenset({"python", "metadata", "aliasing", "rng"})),
}


def judge_graph(
    reference: GraphProgram, compile_graph: Callable[[], GraphProgram], inputs: Sequence[object], rules: GraphRules
) -> GraphReport:
    """Compile and judge one graph: `reference` runs it eagerly, `compile_graph` makes the program that is judged.

    inputs: consumed; a graph may write to them.
    """
    seed_everything(SEED)
    with torch.set_grad_enabled(rules.grad):
        try:
            compiled = compile_graph()
        except Exception as error:
            raised = exception_signature(error, "compile")
            return GraphReport(raised, None, f"compiling raises {type(error).__name__}: {_first_line(error)}")
        seed_everything(SEED)
        errors: list[BaseException] = []
        options = JudgeOptions(ignore=rules.ignore, gradients=rules.gradients and rules.grad)
        roots = {f"input {number}": value for number, value in enumerate(inputs)}
        judged = judge_call(reference, _watched(compiled, errors), tuple(inputs), {}, options, roots)
    signature = signature_of(judged.verdict, errors[0] if errors else None)
    return GraphReport(signature, judged.verdict, judged.verdict.sentence)


def judge_case(case: GraphCase, compile_graph: CompileGraph, rules: GraphRules) -> GraphReport:
    """Compile and judge a case; the compiler gets a clean copy of the graph, which it may change."""

    def compiled() -> GraphProgram:
        return compile_graph(clean_copy(case.graph), case.fresh_inputs())

    return judge_graph(case.run, compiled, case.fresh_inputs(), rules)


def runs_eagerly(case: GraphCase, rules: GraphRules) -> bool:
    """Return whether a case is valid: it has an operator and runs without the compiler."""
    if not len(case):
        return False
    seed_everything(SEED)
    grad = torch.is_grad_enabled()
    try:
        with torch.set_grad_enabled(rules.grad):
            case.run(*case.fresh_inputs())
    except Exception:
        return False
    finally:
        torch.set_grad_enabled(grad)
    return True


def clean_copy(gm: fx.GraphModule) -> fx.GraphModule:
    """Return a copy of a graph without metadata, as a compiler gets it from a script."""
    graph = fx.Graph()
    mapping: dict[fx.Node, fx.Node] = {}
    for node in gm.graph.nodes:
        mapping[node] = graph.node_copy(node, mapping.__getitem__)
        mapping[node].meta = {}
    return fx.GraphModule(gm, graph)


def _watched(program: GraphProgram, errors: list[BaseException]) -> GraphProgram:
    def watched(*args: object) -> object:
        try:
            result = program(*args)
        except Exception as error:
            errors.append(error)
            raise
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)

    return watched


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:200]
