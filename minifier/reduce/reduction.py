"""The reduction of one failing graph: from the first judgement to the smallest case with the same failure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from plumbline.compiler.base.errors import UserError

from ..failure_signature import FailureSignature, SearchTarget
from ..graphs.graph_case import GraphCase, case_key
from ..graphs.subgraph import record
from .engine import reduce
from .graph_judge import CompileGraph, GraphReport, GraphRules, judge_case, runs_eagerly
from .graph_passes import REMOVING_PASSES, GraphPass, value_passes
from .input_passes import INPUT_PASSES
from .minimality import minimality
from .problem import Budget, LogEntry, Problem, Questions

Ask = Callable[[GraphCase], GraphReport]


@dataclass(frozen=True, slots=True, eq=False)
class GraphReduction:
    """The end of a reduction.

    case: the smallest that fails.  signature: of its failure.  rules: under which it was judged.
    queries: judgements with a compile, the first one included, up to the smallest case.  checks: further ones, of the
    check that it is.  input_queries: of the queries, those that make inputs plainer.
    tried: what was tried without, by kind, all in vain; empty: not checked, or not minimal.
    complete: False when the budget ran out.
    """

    case: GraphCase
    report: GraphReport
    signature: FailureSignature
    rules: GraphRules
    queries: int
    complete: bool
    log: tuple[LogEntry, ...]
    ops_before: int
    tried: Mapping[str, int] = field(default_factory=dict)
    checks: int = 0
    input_queries: int = 0


def reduce_graph(
    case: GraphCase,
    first: GraphReport,
    compile_graph: CompileGraph,
    rules: GraphRules,
    *,
    budget: Budget | None = None,
    ask: Ask | None = None,
) -> GraphReduction:
    """Reduce a case that `first` says fails; every further judgement looks for the same aspect only.

    ask: how a candidate is judged, in a child process, for example; by default in this process.
    Raises UserError for a case that does not fail.
    """
    if first.signature is None:
        raise UserError("the graph does not fail", why=first.sentence, hint="nothing to minify")
    sought = SearchTarget(first.signature)
    narrow = rules.only(first.signature.aspect)
    questions = Questions(
        ask=ask or (lambda candidate: judge_case(candidate, compile_graph, narrow)),
        accepts=lambda report: report.signature is not None and sought.signature.matches(report.signature),
        valid=lambda candidate: runs_eagerly(candidate, rules),
        key=case_key,
    )
    problem: Problem[GraphCase, GraphReport] = Problem(case, questions, len, budget)
    observable = not first.signature.is_exception and first.signature.aspect in ("values", "metadata")
    passes: tuple[GraphPass, ...] = value_passes(sought) if observable else REMOVING_PASSES
    record(case)  # writes example values beside the nodes; the passes read them
    before = len(case)
    groups = (passes, INPUT_PASSES)
    complete = reduce(problem, (passes,))
    for_operators = problem.queries + 1
    complete = complete and reduce(problem, (INPUT_PASSES,))
    queries = problem.queries + 1
    tried = minimality(problem, lambda: reduce(problem, groups)) if complete else {}
    record(problem.current)
    report = problem.answer(problem.current) if problem.current is not case else first
    assert report is not None
    assert report.signature is not None
    return GraphReduction(
        problem.current,
        report,
        report.signature,
        narrow,
        queries,
        complete and bool(tried),
        tuple(problem.log),
        before,
        tried,
        problem.queries + 1 - queries,
        queries - for_operators,
    )
