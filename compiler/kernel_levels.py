"""What becomes of one ATen graph on its way to C, as levels that can run beside each other.

The graph itself, which PyTorch runs, is right; loops are run by their interpreter, before and after scheduling.
"""

import operator
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import torch
from torch import fx

from .base.options import Options
from .base.torch_facts import OpOverload
from .codegen.host_call import Compiled
from .comparison.first_call import FirstCall, StageDeparture
from .comparison.program_level import Call, ProgramLevel
from .graph.graph_failure import report_graph_failure
from .graph.graph_interpreter import interpret
from .graph.node_values import calls, output_node
from .graph.promises import is_workspace, run_checked
from .loops.ir import LoopProgram
from .loops.loop_interpreter import interpret_program
from .lowering.lower import lower_graph
from .lowering.registry import Lowering, LoweringCall, Result, lowering_of, replace_lowering
from .lowering.writer import NoLowering
from .native import Acceptance, GraphStages, as_compiled

GRAPH, LOWERING, SCHEDULE, CODE = "ATen graph", "lowering", "schedule", "generated code"


def graph_levels(stages: GraphStages) -> list[ProgramLevel]:
    """Return the levels of a graph, the graph itself first."""
    unread = _workspaces(stages.gm)
    return [
        ProgramLevel(GRAPH, _called(lambda *inputs: run_checked(stages.gm, inputs), unread)),
        ProgramLevel(LOWERING, _loops(stages.lowered, unread), lambda: _lowerings(stages, unread)),
        ProgramLevel(SCHEDULE, _loops(stages.scheduled, unread), lambda: _passes(stages, unread)),
        ProgramLevel(CODE, _called(stages.compiled, unread)),
    ]


def _workspaces(gm: fx.GraphModule) -> frozenset[int]:
    """Return the outputs that only an operator's own backward understands: they hold memory that nobody wrote."""
    outputs = output_node(gm.graph).args[0]
    assert isinstance(outputs, tuple | list)
    return frozenset(
        place
        for place, node in enumerate(outputs)
        if isinstance(node, fx.Node) and node.target is operator.getitem and is_workspace(*_result_of(node))
    )


def _result_of(node: fx.Node) -> tuple[object, object]:
    source, index = node.args
    return (source.target if isinstance(source, fx.Node) else None), index


def acceptance(options: Options) -> Acceptance:
    """Return what a compiled graph goes through before it is used: under `verify="run"` a comparison of its stages."""
    return (lambda stages: _validated(stages, options)) if options.validates else as_compiled


def _validated(stages: GraphStages, options: Options) -> Compiled:
    """Return the compiled graph, which at its first call is held to the stages before it; op by op if one departs."""

    def report(error: StageDeparture, inputs: Sequence[object]) -> None:
        report_graph_failure(error.stage, stages.gm, inputs, error, "inductor", options)

    gm, compiled = stages.gm, stages.compiled
    first = FirstCall("ATen graph", lambda: graph_levels(stages), report, options.strict)

    def call(*inputs: object) -> tuple[object, ...]:
        if first.departs(inputs):
            return interpret(gm, inputs)
        return compiled(*inputs)

    return call


def _called(run: Callable[..., tuple[object, ...]], unread: frozenset[int]) -> Call:
    """Return a call of a level; unread: outputs that are not compared."""

    def call(arguments: Sequence[object]) -> tuple[object, ...]:
        with torch.no_grad():
            results = run(*arguments)
            return tuple(
                torch.zeros_like(value) if place in unread and isinstance(value, torch.Tensor) else value
                for place, value in enumerate(results)
            )

    return call


def _loops(program: LoopProgram, unread: frozenset[int]) -> Call:
    return _called(lambda *inputs: interpret_program(program, inputs), unread)


def _passes(stages: GraphStages, unread: frozenset[int]) -> list[ProgramLevel]:
    """Return the loops after each scheduling pass."""
    levels, program = [], stages.lowered
    for name, run in stages.passes:
        program = run(program)
        levels.append(ProgramLevel(f"{SCHEDULE}: {name}", _loops(program, unread)))
    return levels


def _lowerings(stages: GraphStages, unread: frozenset[int]) -> list[ProgramLevel]:
    """Return the graph with the calls of one operator lowered and all others left to ATen, for each operator."""
    operators = dict.fromkeys(node.target for node in calls(stages.gm.graph))
    known = [each for each in operators if isinstance(each, OpOverload) and _rule(stages, each) is not None]
    return [ProgramLevel(f"{LOWERING}: {each}", _loops(_lowered_alone(stages, each, known), unread)) for each in known]


def _rule(stages: GraphStages, operator: OpOverload) -> Lowering | None:
    return stages.lowerings.get(operator) or lowering_of(operator)


def _lowered_alone(stages: GraphStages, alone: OpOverload, known: Sequence[OpOverload]) -> LoopProgram:
    with ExitStack() as stack:
        for each in known:
            rule = _rule(stages, each) if each is alone else None
            stack.enter_context(replace_lowering(each, rule or _left_to_aten))
        return lower_graph(stages.gm, stages.sizes)


def _left_to_aten(call: LoweringCall) -> Result:
    raise NoLowering(f"{call.name} is left to ATen while the lowering of another operator is looked at")
