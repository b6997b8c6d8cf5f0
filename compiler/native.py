"""compile_graph: a functional ATen graph becomes one callable that runs generated C, or Triton.

The way down is a list: lower, schedule, write, build, load.  Whatever cannot be compiled runs op by op through ATen
with the reason recorded, so every graph has a right answer.  Who asks for a graph says what a compiled one goes through
before it is used (`Acceptance`); nothing here knows how stages are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from torch import fx

from .base.bisecting.applications import Gate, gate_for
from .base.errors import BuildError, Unsupported
from .base.events import Artifact, FellBack, is_recording, record, stage
from .base.locks import ForkedLock
from .base.options import Options
from .base.torch_facts import OpOverload
from .codegen.c_segments import c_text
from .codegen.c_text import CText, built_segments
from .codegen.host import write_host
from .codegen.host_call import Compiled, GraphFallback, HostProgram, bind
from .codegen.memory.in_place import with_results_in_place
from .codegen.triton.graph_recording import reasons_against
from .codegen.triton.split_reductions import with_split_reductions
from .codegen.triton.triton_segments import language_of, triton_segments
from .dynamic_forms import compile_for_sizes
from .graph.decompositions import Decomposition, default_decompositions
from .graph.example_values import with_example_values
from .graph.graph_failure import report_graph_failure
from .graph.graph_interpreter import interpreted
from .graph.promises import checked_at_first, going_on
from .loops.ir import LoopProgram
from .loops.loop_printing import record_program
from .loops.program_text import program_text
from .loops.verify import verify
from .lowering.lower import lower_graph
from .lowering.registry import Lowering, lowering_of, replaced_lowerings
from .runtime.cpu_features import cpu_features
from .runtime.cuda_graphs import ReplayedCall
from .schedule.execution_plan import plan_execution
from .schedule.left_to_aten import assigned_steps
from .schedule.schedule import Pass, passes_in_force, schedule
from .schedule.timed_steps import noting
from .stored.graph_store import StoredPart, describe
from .stored_code import plain_code


@dataclass(frozen=True, slots=True, eq=False)
class GraphStages:
    """One graph, stage by stage.

    sizes: what dynamic sizes are in the call it was compiled for.  lowerings, passes: planted and own, as they were
    when it was compiled.
    """

    gm: fx.GraphModule
    lowered: LoopProgram
    scheduled: LoopProgram
    compiled: Compiled
    sizes: Mapping[str, float]
    lowerings: Mapping[OpOverload, Lowering]
    passes: tuple[tuple[str, Pass], ...]


Acceptance = Callable[[GraphStages], Compiled]
"""What makes a callable for use of a graph that has just been compiled; asked once for each of its forms."""


def as_compiled(stages: GraphStages) -> Compiled:
    """Use the generated code as it is."""
    return stages.compiled


@dataclass(slots=True)
class _Once:
    """What has been said once already in this process."""

    warned: set[str] = field(default_factory=set)
    lock: ForkedLock = field(default_factory=ForkedLock)


_ONCE = _Once()


def compile_graph(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    options: Options | None = None,
    accept: Acceptance = as_compiled,
) -> Compiled:
    """Return a callable that computes what gm computes, always as a tuple.

    gm: call_function nodes with ATen overloads as targets, placeholders, one output; `meta["val"]` is filled in from
    example_inputs where it is missing.  The callable takes one value per placeholder.  Placeholders behind the tensors
    may be dynamic sizes (`graph.dynamic_sizes`): one library serves all of them, save where something was assumed of
    the sizes while compiling; for others it is compiled again.  With `options.strict` errors of ours are raised;
    otherwise the graph runs op by op and the error is recorded.  accept: see `Acceptance`.
    """
    compiled = compile_traced(gm, example_inputs, options, accept)
    return going_on(compiled, interpreted(gm))


def compile_traced(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    options: Options | None = None,
    accept: Acceptance = as_compiled,
) -> Compiled:
    """As compile_graph, for a graph traced from another program: a call raises MetadataDeparture where it departs.

    Then tracing relied on what is not so, and only the other program has the right answer.
    """
    chosen = options if options is not None else Options()

    def compile_form(sizes: Mapping[str, float]) -> Compiled:
        return _compile_or_interpret(gm, () if sizes else example_inputs, chosen, sizes, accept)

    return compile_for_sizes(gm, compile_form)


def _compile_or_interpret(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    options: Options,
    sizes: Mapping[str, float],
    accept: Acceptance,
) -> Compiled:
    gate = gate_for(options.bisect, "ATen graph")
    if gate is not None and not gate.allows("native", f"compiled {gate.graph}", rule="native"):
        return checked_at_first(gm)
    try:
        with stage("inductor"):
            return accept(_compile(gm, example_inputs, options, sizes, gate))
    except Unsupported as error:
        record(FellBack("graph", error.one_line()))
    except BuildError as error:
        if options.strict:
            raise
        record(FellBack("graph", error.one_line()))
        if options.warn_fallback:
            _warn_once(f"plumbline runs graphs op by op: {error.one_line()}")
    except Exception as error:
        if options.strict:
            raise
        report_graph_failure("inductor", gm, example_inputs, error, "inductor", options)
    return checked_at_first(gm)


def _compile(
    gm: fx.GraphModule,
    example_inputs: Sequence[object],
    options: Options,
    sizes: Mapping[str, float],
    gate: Gate | None,
) -> GraphStages:
    gm = with_example_values(gm, example_inputs)
    with stage("lowering"):
        lowered = lower_graph(gm, sizes, gate, scans=options.kernel_language == "triton")
        if options.debug:
            record_program(lowered, "lowering")
        if gate is not None:
            record(Artifact("lowering", "program.py", "python", program_text(lowered)))
        if options.verify:
            verify(lowered, "lowering")
    with stage("schedule"):
        program = schedule(lowered, options, gate)
        if is_recording():
            record_program(program, "schedule")
        if gate is not None:
            record(Artifact("schedule", "program.py", "python", program_text(program)))
        plan = plan_execution(program, gate, apart=options.time_kernels)
    in_c = language_of(plan, options) == "c"
    if not in_c:
        plan = plan_execution(with_split_reductions(program), gate, apart=options.time_kernels)
    with stage("codegen"):
        if in_c and options.fuse:
            plan = with_results_in_place(plan, cpu_features().vector_bytes, gate)
        host = write_host(plan, timed=options.time_kernels)
        record(Artifact("codegen", "host.py", "python", host.text))
    written = c_text(plan, options, gate) if in_c else None
    if written is None:
        segments, launched = triton_segments(plan, options)
    else:
        segments = built_segments(written, options)
        launched = tuple(loop.name for segment in plan.segments for loop in segment.loops)
    if is_recording():
        record(assigned_steps(plan, "c" if in_c else "triton", launched))

    def report(error: Exception, inputs: Sequence[object]) -> None:
        report_graph_failure("compiled kernels", gm, inputs, error, "inductor", options)

    note = noting(plan) if options.time_kernels else None
    compiled = bind(host, segments, GraphFallback(interpreted(gm), options.strict, report), note)
    if written is not None:
        _let_it_be_kept(compiled, gm, host, written)
    if written is None and options.cuda_graphs:
        compiled = _recorded(compiled, reasons_against(plan, gm))
    return GraphStages(gm, lowered, program, compiled, sizes, replaced_lowerings(), passes_in_force(options))


def _recorded(compiled: Compiled, reasons: tuple[str, ...]) -> Compiled:
    """Return a compiled graph that is recorded as a CUDA graph; where it cannot be, as it is, with the reasons told."""
    for reason in reasons:
        record(FellBack("cuda graph", reason))
    return compiled if reasons else ReplayedCall(compiled)


def _let_it_be_kept(compiled: Compiled, gm: fx.GraphModule, host: HostProgram, written: CText) -> None:
    describe(compiled, lambda: StoredPart(plain_code(gm, host, written)))


def _warn_once(text: str) -> None:
    with _ONCE.lock:
        if text in _ONCE.warned:
            return
        _ONCE.warned.add(text)
    warnings.warn(text, stacklevel=3)


def extra_decompositions() -> Mapping[OpOverload, Decomposition]:
    """Return the decompositions that this backend wants applied before compile_graph: of what it has no loops for.

    Operators with a lowering stay whole: their loops follow eager's own formulas and rounding.
    """
    return {operator: rule for operator, rule in default_decompositions().items() if lowering_of(operator) is None}
