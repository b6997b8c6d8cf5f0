"""What autograd makes of a captured graph, as levels that can run beside each other.

Each is a whole call: it takes the arguments, writes to them, and its outputs have gradients.  The captured graph itself
is eager's answer.  The levels before the cut run the joint graph twice, for the values and again for the gradients.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import fx

from ...base.options import Options
from ...base.torch_facts import lazy_module
from ...comparison.private_inputs import GeneratorStates, strided_copy
from ...comparison.program_level import Call, ProgramLevel
from ...graph.dynamic_sizes import with_size_inputs
from ...graph.fx_nodes import add_output, copy_node, map_nodes
from ...graph.graph_interpreter import interpret
from ...graph.node_values import copy_facts, in_backward, outputs, placeholders
from ...graph.passes import SIMPLIFY, run_passes
from ..call_wrappers import finisher, run_plain
from ..function import CompiledBackward, CompiledPair
from ..joint import Traced, trace_call
from ..joint_program import JointProgram
from ..partition import JointGraph, Partition
from ..tangent_layouts import layouts_at, layouts_of
from .compact_values import COMPACT

Sizes = tuple[float, ...]
Values = Sequence[torch.Tensor]
Run = Callable[..., Values]


@dataclass(frozen=True, slots=True, eq=False)
class FormStages:
    """One compiled form, stage by stage.

    program: what was traced, with its decompositions.  joint: after the graph passes.  cut: None without gradients.
    backward: of the cut, with the kept values it reads; None for the cut's own.  sizes: the dynamic ones of the call.
    """

    program: JointProgram
    traced: Traced
    joint: JointGraph
    cut: Partition | None
    sizes: Sizes = ()
    backward: tuple[fx.GraphModule, tuple[int, ...]] | None = None


CAPTURED, TRACED, DECOMPOSED = "captured graph", "traced graph", "decomposed graph"
FUNCTIONAL, PASSES, PARTITION = "functionalised graph", "graph passes", "partition"


def captured_level(gm: fx.GraphModule) -> ProgramLevel:
    """Return the graph as it was captured, which PyTorch runs: eager's answer."""
    return ProgramLevel(CAPTURED, lambda arguments: interpret(gm, arguments))


def form_levels(stages: FormStages) -> list[ProgramLevel]:
    """Return the levels of a form, the captured graph first."""
    levels = [captured_level(stages.program.gm)]
    if stages.traced.recorded is not None:
        levels += _recorded_levels(stages)
    functional = stages.traced.joint.graph
    levels.append(ProgramLevel(FUNCTIONAL, _joint_call(stages, functional)))
    levels.append(ProgramLevel(PASSES, _joint_call(stages, stages.joint.graph), lambda: _passes(stages, functional)))
    levels.append(ProgramLevel(PARTITION, halves_call(stages, _interpreted)))
    return levels


def _recorded_levels(stages: FormStages) -> list[ProgramLevel]:
    """Return the recorded calls, writes and all; without decompositions only where somebody asks."""
    if not stages.program.decompositions:
        return [ProgramLevel(TRACED, recorded_call(stages))]
    decomposed = ProgramLevel(DECOMPOSED, recorded_call(stages))
    return [replace(decomposed, between=lambda: [traced_level(stages), decomposed])]


def traced_level(stages: FormStages) -> ProgramLevel:
    """Trace the program again, without decompositions."""
    again = trace_call(replace(stages.program, decompositions=None), stages.traced.joint.tangents)
    return ProgramLevel(TRACED, recorded_call(replace(stages, traced=again)))


def _passes(stages: FormStages, functional: fx.GraphModule) -> list[ProgramLevel]:
    """Return the graph after each pass."""
    levels, gm = [], functional
    for name in (*SIMPLIFY, *COMPACT) if stages.traced.joint.tangents else SIMPLIFY:
        gm = run_passes(gm, (name,), Options(), stage="joint")
        levels.append(ProgramLevel(f"{PASSES}: {name}", _joint_call(stages, gm)))
    return levels


def recorded_call(stages: FormStages) -> Call:
    """Return the recorded calls as a call: copies of the inputs are written to, and read afterwards."""
    assert stages.traced.recorded is not None
    return _whole(stages, stages.traced.recorded, held=len(stages.traced.constants))


def _joint_call(stages: FormStages, joint: fx.GraphModule) -> Call:
    return _whole(stages, joint, held=0)


def _whole(stages: FormStages, joint: fx.GraphModule, held: int) -> Call:
    """Return a joint graph as a call. held: how many constants it holds itself, which are given and not read."""
    traced = stages.traced
    symbols, returned = traced.sizes.symbols, traced.joint.returned
    forward = with_size_inputs(forward_half(joint, returned), symbols)
    if not traced.signature.is_differentiable:
        return _plain_call(traced, _without(held, forward, len(traced.constants)), stages.sizes)
    # the tangents are the last inputs before the sizes
    run = _JointRun(forward, with_size_inputs(joint, symbols), returned, len(traced.constants) if held else 0)
    backward = CompiledBackward(run.gradients, (), tuple(traced.gradients_of))
    return _pair_call(traced, run.values, (), backward, stages.sizes)


def _without(held: int, gm: fx.GraphModule, constants: int) -> Run:
    """Return a graph as a function of inputs, constants and sizes, of which it does not take the constants."""
    count = len(placeholders(gm.graph))

    def run(*inputs: object) -> Values:
        arguments = _leave_out(inputs, count, constants) if held else inputs
        return interpret(gm, arguments)  # type: ignore[return-value]  # joint graphs give tensors

    return run


def _leave_out(inputs: Sequence[object], taken: int, constants: int) -> tuple[object, ...]:
    """Return the inputs without the constants, which stand behind the tensors of the call."""
    sizes = sum(not isinstance(value, torch.Tensor) for value in inputs)
    tensors = len(inputs) - sizes - constants
    assert tensors + sizes == taken
    return (*inputs[:tensors], *inputs[tensors + constants :])


@dataclass(slots=True, eq=False)
class _JointRun:
    """A joint graph run for its values and then, on copies of the same inputs, for its gradients."""

    forward: fx.GraphModule
    joint: fx.GraphModule
    returned: int
    constants: int  # that the graph holds itself
    inputs: tuple[object, ...] = ()
    before: GeneratorStates | None = None

    def values(self, *inputs: object) -> Values:
        """Run the forward half."""
        taken = _leave_out(inputs, len(inputs) - self.constants, self.constants)
        self.inputs = _copies(taken)
        self.before = GeneratorStates.now(taken)
        return interpret(self.forward, _copies(taken))  # type: ignore[return-value]  # joint graphs give tensors

    def gradients(self, *tangents: object) -> Values:
        """Run the joint graph with the draws of the forward; sizes stand behind the tangents."""
        sizes = [value for value in tangents if not isinstance(value, torch.Tensor)]
        tangent_values = [value for value in tangents if isinstance(value, torch.Tensor)]
        tensors = [value for value in self.inputs if isinstance(value, torch.Tensor)]
        assert self.before is not None
        after = GeneratorStates.now(self.inputs)
        self.before.put_back()
        try:
            results = interpret(self.joint, (*_copies(tensors), *tangent_values, *sizes))
        finally:
            after.put_back()
        return results[self.returned :]  # type: ignore[return-value]  # behind the values


def _copies(values: Sequence[object]) -> tuple[object, ...]:
    return tuple(strided_copy(value) if isinstance(value, torch.Tensor) else value for value in values)


def forward_half(joint: fx.GraphModule, returned: int) -> fx.GraphModule:
    """Return the part of a joint graph, recorded or functional, that gives the values of the forward."""
    graph = fx.Graph()
    mapping: dict[fx.Node, fx.Node] = {}
    for node in joint.graph.nodes:
        late = in_backward(node) or node.name.startswith("tangent_")
        if node.op != "output" and not late and all(source in mapping for source in node.all_input_nodes):
            mapping[node] = copy_node(graph, node, mapping.__getitem__)
            copy_facts(node, mapping[node])
    add_output(graph, [map_nodes(value, mapping.__getitem__) for value in outputs(joint.graph)[:returned]])
    return lazy_module(joint, graph)


def halves_call(stages: FormStages, run_half: Callable[[fx.GraphModule], Run]) -> Call:
    """Return the halves of the cut as a call, or the one graph of a form without gradients.

    run_half: makes a function out of a functional ATen graph; of the backward's when it first runs.
    """
    traced, cut = stages.traced, stages.cut
    symbols = traced.sizes.symbols
    if cut is None:
        return _plain_call(traced, run_half(with_size_inputs(stages.joint.graph, symbols)), stages.sizes)
    graph, reads = stages.backward or (cut.backward, tuple(range(len(cut.kept))))
    backward = with_size_inputs(graph, symbols)
    parts = outputs(stages.joint.graph.graph)[stages.joint.returned :]
    present = [place for place, part in enumerate(parts) if part is not None]

    def run_backward(*inputs: object) -> Values:
        results = run_half(backward)(*inputs)  # compiling it leaves out what is None
        return results if len(results) == len(present) else tuple(results[place] for place in present)

    gradients = CompiledBackward(run_backward, reads, tuple(traced.gradients_of[place] for place in present))
    return _pair_call(traced, run_half(with_size_inputs(cut.forward, symbols)), cut.kept, gradients, stages.sizes)


def _interpreted(gm: fx.GraphModule) -> Run:
    return lambda *inputs: interpret(gm, inputs)  # type: ignore[return-value]  # the halves give tensors


def _plain_call(traced: Traced, forward: Run, sizes: Sizes) -> Call:
    finish = finisher(traced.signature, list(traced.sizes.symbols))

    def call(arguments: Sequence[object]) -> tuple[object, ...]:
        tensors = [arguments[position] for position in traced.signature.inputs]
        values = run_plain(forward, (*tensors, *traced.constants, *sizes))
        return finish(arguments, values, sizes)

    return call


def _pair_call(
    traced: Traced, forward: Run, kept: tuple[tuple[str, int], ...], backward: CompiledBackward, sizes: Sizes
) -> Call:
    pair = CompiledPair(
        signature=traced.signature,
        forward=forward,
        kept=kept,
        constants=traced.constants,
        tangents=traced.joint.tangents,
        layouts=layouts_at(layouts_of(traced.joint.graph.graph, traced.joint.inputs), list(traced.sizes.symbols)),
        backward_for=lambda pattern, sizes: backward,
    )
    finish = finisher(traced.signature, list(traced.sizes.symbols))

    def call(arguments: Sequence[object]) -> tuple[object, ...]:
        values = pair([arguments[position] for position in traced.signature.inputs], sizes)
        return finish(arguments, values, sizes)

    return call
