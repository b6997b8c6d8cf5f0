"""One graph at every level of the compiler: what each stage makes of it, run on the same inputs, forward and backward.

    for result in run_levels(gm, inputs):
        print(result.stage, result.error or result.outputs, result.gradients)
    departure = first_departure(gm, inputs)    # None, or: stage, the stage before it, what differs

The levels are those that `verify="run"` compares at a first call; here all of them are made at once, and the C too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch import fx

from ..autograd.dynamic_arguments import dynamic_arguments
from ..autograd.forms.compact_values import COMPACT
from ..autograd.forms.form_levels import (
    CAPTURED,
    DECOMPOSED,
    FUNCTIONAL,
    PARTITION,
    PASSES,
    TRACED,
    FormStages,
    captured_level,
    form_levels,
    halves_call,
)
from ..autograd.joint import trace_call
from ..autograd.joint_program import JointProgram
from ..autograd.partition import JointGraph, partition
from ..base.options import Options
from ..comparison.departure import Departure, compare_levels
from ..comparison.private_inputs import GeneratorStates
from ..comparison.program_level import LevelResult, ProgramLevel, run_level
from ..graph.dynamic_sizes import is_symbolic, size_values
from ..graph.node_values import placeholders, tensor_of
from ..graph.passes import SIMPLIFY, run_passes
from ..graph.subgraphs.autocast_at import autocast_state
from ..kernel_levels import CODE, LOWERING, SCHEDULE
from ..loops.ir import LoopProgram
from ..loops.loop_interpreter import interpret_program
from ..lowering.lower import lower_graph
from ..native import compile_traced, extra_decompositions
from ..schedule.schedule import schedule

STAGES = (CAPTURED, TRACED, DECOMPOSED, FUNCTIONAL, PASSES, PARTITION, LOWERING, SCHEDULE, CODE)
"""The names of the levels in order; without gradients the partition is the whole graph."""

Run = Callable[..., Sequence[torch.Tensor]]


def run_levels(
    gm: fx.GraphModule, inputs: Sequence[object], options: Options | None = None, *, backward: bool = True
) -> list[LevelResult]:
    """Run a graph at every level, in the order of `STAGES`, and return what each did; the first is eager's answer.

    gm: a torch-level or ATen graph with one placeholder per input; it may write to inputs and draw random numbers.
    inputs: tensors and numbers; gradients are taken of those that require grad, for fixed random cotangents.
    backward: whether gradients are taken.  Every level sees copies of the inputs and the same states of the random
    generators; afterwards inputs and generators are as they were.  What a level raises is the `error` of its result.
    A stage that cannot be made (a program that cannot be traced raises Unsupported there) ends the list.
    """
    generators = GeneratorStates.now(inputs)
    chosen = None if backward else ()
    results: list[LevelResult] = []
    levels = _levels(gm, inputs, options or Options())
    while True:
        try:
            level = next(levels, None)
        except Exception as error:  # a stage of ours, or a program that it cannot take
            return [*results, LevelResult(STAGES[len(results)], error=error)]
        if level is None:
            return results
        results.append(run_level(level, inputs, generators, backward=chosen))


def first_departure(
    gm: fx.GraphModule, inputs: Sequence[object], options: Options | None = None, *, backward: bool = True
) -> Departure | None:
    """Return the first stage that does not do what the stage before it does; None where rounding explains all.

    Arguments as for `run_levels`.  Compared are outputs, contents of inputs afterwards, gradients, which outputs
    require grad or share memory, and the random generators.  Raises what making a level raises.
    """
    levels = list(_levels(gm, inputs, options or Options()))
    return compare_levels(levels, inputs, backward=None if backward else ()).departure


def _levels(gm: fx.GraphModule, inputs: Sequence[object], options: Options) -> Iterator[ProgramLevel]:
    """Make the levels one by one, so that what fails is known by its place."""
    yield captured_level(gm)
    plain = _stages(gm, inputs, decomposed=False)
    yield replace(form_levels(plain)[1], stage=TRACED)
    stages = _stages(gm, inputs, decomposed=True)
    yield replace(form_levels(stages)[1], between=list)
    stages = replace(stages, joint=_simplified(stages.joint, options))
    yield from form_levels(stages)[2:4]
    if stages.traced.signature.is_differentiable:
        stages = replace(stages, cut=partition(stages.joint, budget=options.save_budget))
    yield form_levels(stages)[4]
    yield ProgramLevel(LOWERING, halves_call(stages, lambda half: _loops(half, stages, lower_graph)))
    yield ProgramLevel(SCHEDULE, halves_call(stages, lambda half: _loops(half, stages, _scheduled(options))))
    compiled = options.replace(strict=True)
    yield ProgramLevel(CODE, halves_call(stages, lambda half: _compiled(half, compiled)))


def _stages(gm: fx.GraphModule, inputs: Sequence[object], *, decomposed: bool) -> FormStages:
    dynamic = dynamic_arguments(gm)
    metadata, sizes = JointProgram.metadata(inputs, dynamic), dynamic.read(inputs)
    rules = extra_decompositions() if decomposed else None
    state = (torch.is_grad_enabled(), autocast_state())
    program = JointProgram(gm, metadata, *state, rules, dynamic, sizes, keeps_recorded=True)
    traced = trace_call(program)
    return FormStages(program, traced, traced.joint, None, sizes)


def _simplified(joint: JointGraph, options: Options) -> JointGraph:
    passes = (*SIMPLIFY, *COMPACT) if joint.tangents else SIMPLIFY
    return replace(joint, graph=run_passes(joint.graph, passes, options, stage="joint"))


def _scheduled(options: Options) -> Callable[..., LoopProgram]:
    return lambda *graph_and_sizes: schedule(lower_graph(*graph_and_sizes), options)


def _loops(half: fx.GraphModule, stages: FormStages, make: Callable[..., LoopProgram]) -> Run:
    dynamic = [node for node in placeholders(half.graph) if is_symbolic(node.meta.get("val"))]
    program = make(half, size_values(dynamic))
    return lambda *inputs: interpret_program(program, inputs)  # type: ignore[return-value]  # outputs are tensors


def _compiled(half: fx.GraphModule, options: Options) -> Run:
    examples = [tensor_of(node) for node in placeholders(half.graph) if not is_symbolic(node.meta.get("val"))]
    return compile_traced(half, examples, options)  # type: ignore[return-value]  # outputs are tensors
