"""compile_graph: a functional ATen graph becomes one callable that runs generated C.

The way down is a list: lower, schedule, write, build, load.  Whatever cannot be compiled runs op by op through ATen
with the reason recorded, so every graph has a right answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import fx

from .base.errors import BuildError, InternalError, Unsupported
from .base.events import Artifact, FellBack, is_recording, record, stage
from .base.locks import ForkedLock
from .base.options import Options
from .base.torch_facts import FakeTensorMode, OpOverload
from .codegen.c_file import CFile, write_file
from .codegen.host import HostProgram, write_host
from .codegen.host_call import Compiled, GraphFallback, bind
from .dynamic_forms import DynamicForms
from .graph.decompositions import Decomposition, default_decompositions
from .graph.dynamic_sizes import is_symbolic, size_values, symbol_of
from .graph.fx_nodes import map_nodes
from .graph.graph_failure import report_graph_failure
from .graph.graph_interpreter import interpret
from .graph.node_values import has_value, placeholders, set_value, value_of
from .graph.promises import checked_at_first, going_on
from .graph.shape_rules import corrected
from .graph.tracer import fake_like
from .loops.ir import LoopProgram
from .loops.loop_printing import print_program
from .loops.verify import verify
from .lowering.lower import lower_graph
from .lowering.registry import lowering_of
from .runtime.c_build import build
from .runtime.cpu_features import cpu_features
from .runtime.process_symbols import OfferedSymbols
from .schedule.schedule import schedule


@dataclass(slots=True)
class _Once:
    """What has been said once already in this process."""

    warned: set[str] = field(default_factory=set)
    lock: ForkedLock = field(default_factory=ForkedLock)


_ONCE = _Once()


def compile_graph(gm: fx.GraphModule, example_inputs: Sequence[object], options: Options | None = None) -> Compiled:
    """Return a callable that computes what gm computes, always as a tuple.

    gm: call_function nodes with ATen overloads as targets, placeholders, one output; `meta["val"]` is filled in from
    example_inputs where it is missing.  The callable takes one value per placeholder.  Placeholders behind the tensors
    may be dynamic sizes (`graph.dynamic_sizes`): one library serves all of them, save where something was assumed of
    the sizes while compiling; for others it is compiled again.  With `options.strict` errors of ours are raised;
    otherwise the graph runs op by op and the error is recorded.
    """
    return going_on(compile_traced(gm, example_inputs, options), op_by_op(gm))


def compile_traced(gm: fx.GraphModule, example_inputs: Sequence[object], options: Options | None = None) -> Compiled:
    """As compile_graph, for a graph traced from another program: a call raises MetadataDeparture where it departs.

    Then tracing relied on what is not so, and only the other program has the right answer.
    """
    chosen = options if options is not None else Options()
    dynamic = [node for node in placeholders(gm.graph) if is_symbolic(node.meta.get("val"))]
    if dynamic:
        names = [symbol_of(node) for node in dynamic]
        forms = DynamicForms(lambda sizes: _compiled_or_slow(gm, (), chosen, sizes), op_by_op(gm), names)
        return forms.prepared(size_values(dynamic))
    return _compiled_or_slow(gm, example_inputs, chosen, {})


def _compiled_or_slow(
    gm: fx.GraphModule, example_inputs: Sequence[object], chosen: Options, sizes: Mapping[str, float]
) -> Compiled:
    try:
        with stage("inductor"):
            return _compile(gm, example_inputs, chosen, sizes)
    except Unsupported as error:
        record(FellBack("graph", error.one_line()))
    except BuildError as error:
        if chosen.strict:
            raise
        record(FellBack("graph", error.one_line()))
        if chosen.warn_fallback:
            _warn_once(f"plumbline runs graphs op by op: {error.one_line()}")
    except Exception as error:
        if chosen.strict:
            raise
        report_graph_failure("inductor", gm, example_inputs, error, "inductor", chosen)
    return checked_at_first(gm)


def extra_decompositions() -> Mapping[OpOverload, Decomposition]:
    """Return the decompositions that this backend wants applied before compile_graph: of what it has no loops for.

    Operators with a lowering stay whole: their loops follow eager's own formulas and rounding.
    """
    return {operator: rule for operator, rule in default_decompositions().items() if lowering_of(operator) is None}


def op_by_op(gm: fx.GraphModule) -> Compiled:
    """Return a callable that runs an ATen graph through ATen, one call after the other."""
    return lambda *inputs: interpret(gm, inputs)


def _warn_once(text: str) -> None:
    with _ONCE.lock:
        if text in _ONCE.warned:
            return
        _ONCE.warned.add(text)
    warnings.warn(text, stacklevel=3)


def _compile(
    gm: fx.GraphModule, example_inputs: Sequence[object], options: Options, sizes: Mapping[str, float]
) -> Compiled:
    gm = with_values(gm, example_inputs)
    program = scheduled_program(gm, options, sizes)
    with stage("codegen"):
        host = write_host(program)
        segments = [(segment.loops, segment.parameters) for segment in host.segments]
        file = write_file(segments, program.buffers, OfferedSymbols(), cpu_features(), options.threads, program.counts)
    _record_texts(program, host, file)
    with stage("build"):
        library = build(file.text, file.addresses, "graph", len(file.kernels), options) if host.segments else None

    def report(error: Exception, inputs: Sequence[object]) -> None:
        report_graph_failure("compiled kernels", gm, inputs, error, "inductor", options)

    return bind(program, host, library, GraphFallback(op_by_op(gm), options.strict, report))


def scheduled_program(gm: fx.GraphModule, options: Options, sizes: Mapping[str, float] | None = None) -> LoopProgram:
    """Return the loop program of a graph after scheduling; verified along the way where options ask for it.

    sizes: what dynamic sizes are in this call, by name.
    """
    with stage("lowering"):
        program = lower_graph(gm, sizes)
        if options.debug:
            record(Artifact("lowering", "loops.py", "python", print_program(program)))
        if options.verify:
            verify(program, "lowering")
    with stage("schedule"):
        return schedule(program, options)


def with_values(gm: fx.GraphModule, example_inputs: Sequence[object]) -> fx.GraphModule:
    """Return gm itself if every node has an example value, else a copy where they were computed on fake tensors."""
    if all(has_value(node) for node in gm.graph.nodes if node.op != "output"):
        return gm
    graph = fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    copied = fx.GraphModule(gm, graph)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = [fake_like(value, mode) if isinstance(value, torch.Tensor) else value for value in example_inputs]
    if len(fakes) != len(placeholders(copied.graph)):
        raise InternalError("one example input per placeholder is needed", hint="pass as many as the graph has")

    def keep(node: fx.Node, value: object) -> object:
        example = corrected(node.target, map_nodes(node.args, value_of), value)
        set_value(node, example)
        return example

    with mode:
        interpret(copied, fakes, after=keep)
    return copied


def _record_texts(program: LoopProgram, host: HostProgram, file: CFile) -> None:
    if not is_recording():
        return
    record(Artifact("schedule", "loops.py", "python", print_program(program)))
    record(Artifact("codegen", "host.py", "python", host.text))
    record(Artifact("codegen", "graph.c", "c", file.text))
