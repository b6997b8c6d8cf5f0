"""From a failing call to a small script that shows the failure.

failing call -> first wrong backend -> graphs after that stage -> the graph that fails alone -> reduced -> script
-> run in fresh processes -> written, or the reason why not
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from plumbline.compiler.base.errors import PlumblineError, Unsupported
from plumbline.oracle.harness.captured_graphs import CallToCapture, CapturedGraph
from plumbline.oracle.verdict import VerdictKind

from .bisect.bisected_cases import GraphFailure, InChild
from .bisect.culprit import Culprit, culprit_of
from .cases.failing_calls import FailingCall, place_of
from .failure_signature import FailureSignature
from .graphs.graph_case import GraphCase, case_of
from .graphs.graph_compilers import GraphCompiler, find_graph_compiler
from .graphs.subgraph import record
from .reduce.graph_judge import RULES, CompileGraph, GraphReport, GraphRules, judge_case, runs_eagerly
from .reduce.problem import Budget
from .reduce.reduction import GraphReduction, reduce_graph
from .repro.proof import Proof, ScriptFile, prove
from .repro.repro_script import History, Pipeline, repro_script
from .sandbox import QUERY_SECONDS, in_child


class NotMinified(PlumblineError):
    """A failure that could not be turned into a script; `reason` is a word that programs can test."""

    def __init__(self, reason: str, what: str, *, why: str = "", hint: str) -> None:
        super().__init__(f"{reason}: {what}", why=why, hint=hint)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        """The reason crosses process borders too."""
        return (_rebuilt, (self.reason, self.what, self.where, self.why, self.hint))


def _rebuilt(reason: str, what: str, where: str, why: str, hint: str) -> "NotMinified":
    error = NotMinified(reason, what.removeprefix(f"{reason}: "), why=why, hint=hint)
    error.where = where
    return error


@dataclass(frozen=True, slots=True, kw_only=True)
class MinifyOptions:
    """How to minify.

    after: "dynamo", "aot", or None for the level at which the guilty stage works.
    level: 1 write the whole graph, 2 only exceptions, 3 every judgement in a child process, 4 wrong values too.
    out: the script.  proofs: fresh processes that must reproduce before the script is announced.
    budget: of the reduction.  seconds: of one query of level 3.  command: to be told in the script.
    bisect: look for the culprit in the reduced graph.  fresh: ask again what an earlier run asked about programs.
    engine: where several programs are run at once, "" for one after the other.
    """

    out: Path
    after: str | None = None
    level: int = 4
    proofs: int = 3
    budget: Budget = Budget()  # noqa: RUF009 - frozen, so that one default serves all
    seconds: float = QUERY_SECONDS
    command: str = ""
    bisect: bool = True
    fresh: bool = False
    engine: str = ""

    @property
    def isolated(self) -> bool:
        """Return whether each judgement happens in a killable child."""
        return self.level == 3


@dataclass(frozen=True, slots=True)
class MinifyResult:
    """The result of minifying one failure.

    path: the script, None when none was written.  ops, ops_before: operators after and before.
    queries: judgements with a compile.  reproduces: every fresh process showed the same failure.
    sentence: one line for a person.  stage: first wrong backend.  reason: a word when nothing was written.
    culprit: what plumbline did wrong, some lines; empty for another compiler and where it was not looked for.
    cause: what failures with the same fault have in common: the guilty rule, as a value of the option `bisect`, or
    else the operators that are left.
    unit: what is counted, operators of a graph or lines of a program.
    """

    path: Path | None
    ops: int
    ops_before: int
    queries: int
    reproduces: bool
    sentence: str
    stage: str = ""
    reason: str = ""
    culprit: str = ""
    unit: str = "operators"
    cause: str = ""


Progress = Callable[[str], None]


def minify_failing(call: FailingCall, options: MinifyOptions, progress: Progress = lambda _: None) -> MinifyResult:
    """Minify one failing call and write its script.

    Raises NotMinified with a reason when there is no graph that fails by itself, or the script does not reproduce;
    UserError when the place cannot be written.  Nothing is written then.
    """
    first = call.verdict.sentence
    if options.level == 2 and call.verdict.worst is not None and call.verdict.worst.aspect != "exceptions":
        raise NotMinified("NO_EXCEPTION", first, why="level 2 minifies exceptions only", hint="use --level 4")
    progress(f"{call.label}: {call.verdict.kind.value}: {first}")
    stage = call.first_wrong_backend(isolated=options.isolated, seconds=options.seconds)
    progress(f"first wrong stage: {call.compiler}:{stage}")
    if stage == "eager":
        hint = "the fault is in bytecode capture: guards, side effects or graph breaks; shorten the function by hand"
        raise NotMinified("CAPTURE", first, why="the captured graphs are right when they run as captured", hint=hint)
    compiler = find_graph_compiler(call.compiler)
    failing = _failing_graph(call, compiler, stage, options)
    progress(f"{failing.graph.label} after {failing.after}: {len(failing.case)} operators")
    reduced = _reduced(failing, options)
    progress(f"{reduced.ops_before} -> {len(reduced.case)} operators in {reduced.queries} queries")
    return _written(call, failing, reduced, stage, compiler, options)


@dataclass(frozen=True, slots=True, eq=False)
class _FailingGraph:
    """The graph that fails by itself; queries: judgements that finding it took."""

    graph: CapturedGraph
    case: GraphCase
    report: GraphReport
    signature: FailureSignature
    after: str
    compile: CompileGraph
    pipeline: Pipeline
    rules: GraphRules
    queries: int


def _failing_graph(call: FailingCall, compiler: GraphCompiler, stage: str, options: MinifyOptions) -> _FailingGraph:
    """Return the first captured graph that fails by itself in the same way as the call."""
    native = stage in ("inductor", "triton")
    levels = [options.after or "aot"] if native else ["dynamo"]
    if "dynamo" not in levels:
        levels.append("dynamo")  # the fault may lie between the stages, where only the graph before them fails
    queries, seen, others = 0, 0, ""
    for after in levels:
        graphs = compiler.capture(CallToCapture(call.target, call.request, call.drive), after)
        call.before.rewind()
        seen += len(graphs)
        for graph in graphs:
            try:
                case = case_of(graph.graph, graph.inputs)
            except Unsupported as error:
                others = error.one_line()
                continue
            report = _judged(call, compiler, graph, case, stage, after, options)
            queries += 1
            if report.signature is not None and _same_sort(call, report.signature):
                if not runs_eagerly(case, RULES[after]):
                    others = others or f"{graph.label}: eager raises in it, so there are no values to cut it by"
                    continue
                pipeline = Pipeline(call.compiler, stage, after, call.request)
                record(case)
                program = _compile_with(compiler, call, stage, after)
                rules = RULES[after]
                return _FailingGraph(graph, case, report, report.signature, after, program, pipeline, rules, queries)
            others = others or (f"{graph.label}: {report.sentence}" if report.signature is not None else "")
    why = others or (f"{seen} graphs were judged alone" if seen else "the call runs no graph")
    hint = "the fault needs more than one graph, or an earlier call; try --after dynamo or shorten the program by hand"
    raise NotMinified("NOT_IN_A_GRAPH", call.verdict.sentence, why=why, hint=hint)


def _compile_with(compiler: GraphCompiler, call: FailingCall, stage: str, after: str) -> CompileGraph:
    return lambda gm, inputs: compiler.compile(gm, inputs, stage, after, call.request)


def _judged(
    call: FailingCall,
    compiler: GraphCompiler,
    graph: CapturedGraph,
    case: GraphCase,
    stage: str,
    after: str,
    options: MinifyOptions,
) -> GraphReport:
    program = _compile_with(compiler, call, stage, after)
    return _asked(case, program, RULES[after], options, _limit(options, call.compiler, len(case), hangs=call.hangs))


_STARTING, _EACH_OPERATOR = {"plumbline": 10.0}, 0.05
"""Seconds that a graph which returns takes at most: several times what it takes on a machine that does little else."""


def _limit(options: MinifyOptions, compiler: str, operators: int, *, hangs: bool) -> float:
    """Return after how long a query is a hang: where one is looked for, each that finds it costs as much."""
    return (
        min(options.seconds, _STARTING.get(compiler, 60.0) + _EACH_OPERATOR * operators) if hangs else options.seconds
    )


def _asked(
    case: GraphCase, program: CompileGraph, rules: GraphRules, options: MinifyOptions, seconds: float
) -> GraphReport:
    """Judge a case here or in a child; a child's death is a failure with a signature."""
    if not options.isolated:
        return judge_case(case, program, rules)
    outcome = in_child(lambda: judge_case(case, program, rules), seconds)
    if outcome.value is not None:
        return outcome.value
    signature = FailureSignature(VerdictKind.CRASH.value, "exceptions", "run", outcome.death, outcome.site)
    return GraphReport(signature, None, f"the process ends by {outcome.death}")


def _same_sort(call: FailingCall, failing: FailureSignature) -> bool:
    """Return whether both are exceptions or both differences; a wrong gradient is a value of a backward graph."""
    worst = call.verdict.worst
    return worst is None or (worst.aspect == "exceptions") == failing.is_exception


def _reduced(failing: _FailingGraph, options: MinifyOptions) -> GraphReduction:
    if options.level == 1:
        count = len(failing.case)
        return GraphReduction(
            failing.case, failing.report, failing.signature, failing.rules, failing.queries, True, (), count
        )
    narrow = failing.rules.only(failing.signature.aspect)

    def ask(case: GraphCase) -> GraphReport:
        limit = _limit(options, failing.pipeline.compiler, len(case), hangs=failing.signature.hangs)
        return _asked(case, failing.compile, narrow, options, limit)

    reduced = reduce_graph(
        failing.case,
        failing.report,
        failing.compile,
        failing.rules,
        budget=options.budget,
        ask=ask,
    )
    return replace(reduced, queries=reduced.queries + failing.queries - 1)


def _written(
    call: FailingCall,
    failing: _FailingGraph,
    reduced: GraphReduction,
    stage: str,
    compiler: GraphCompiler,
    options: MinifyOptions,
) -> MinifyResult:
    """Write the script to a temporary folder, prove it, and only then put it in its place."""
    place = place_of(call)
    history = History(
        f"{call.label}, call of {call.compiler}:{call.backend}",
        place,
        failing.graph.label,
        reduced.ops_before,
        reduced.queries,
        reduced.report.sentence,
        options.command,
        reduced.tried,
    )
    try:
        pipeline = replace(failing.pipeline, settings=compiler.settings())
        parts = (reduced.case, reduced.signature, reduced.rules, pipeline)
        script = repro_script(*parts, history, options.out.name)
    except Unsupported as error:
        raise NotMinified("UNWRITABLE", error.what, why=error.why, hint=error.hint) from error
    written = ScriptFile(options.out, script)
    proof: Proof = prove(written, options.proofs, reduced.signature)
    if not proof.holds:
        hint = "the failure depends on more than the graph; run the case again with --level 1, or by hand"
        raise NotMinified("DOES_NOT_REPRODUCE", proof.sentence, why=call.verdict.sentence, hint=hint)
    proved = repro_script(*parts, replace(history, proofs=proof.count), options.out.name)
    ScriptFile(options.out, proved).put_in_place()
    count, limit = len(reduced.case), "" if reduced.complete else " (budget used up: not minimal)"
    size = f"{reduced.ops_before} -> {count} operator{'s' if count != 1 else ''}"
    sentence = (
        f"REPRODUCES {proof.count}/{options.proofs}: {size} in {reduced.queries} queries{limit}, "
        f"stage {call.compiler}:{stage}, {reduced.signature.sentence()}: {options.out}"
    )
    culprit = _culprit(call, failing, reduced, options)
    words = culprit.text() if culprit is not None else ""
    rule = culprit.rule if culprit is not None else ""
    cause = rule or " ".join(str(op.target) for op in reduced.case.ops())
    result = MinifyResult(options.out, count, reduced.ops_before, reduced.queries, True, sentence, stage, culprit=words)
    return replace(result, cause=cause)


def _culprit(
    call: FailingCall, failing: _FailingGraph, reduced: GraphReduction, options: MinifyOptions
) -> Culprit | None:
    """Return what plumbline did wrong to the reduced graph."""
    if call.compiler != "plumbline" or not options.bisect:
        return None
    rules = failing.rules.only(reduced.signature.aspect)
    case = GraphFailure(reduced.case, failing.compile, rules, reduced.signature)
    folder = options.out.with_name(f"{options.out.stem}_culprit")
    seconds = _limit(options, call.compiler, len(reduced.case), hangs=reduced.signature.hangs)
    return culprit_of(InChild(case, seconds) if options.isolated else case, folder)
