"""Trace forward and gradients of a torch-level graph into one functional ATen graph.

The program runs once on fake tensors with autograd on; then `torch.autograd.grad` runs inside the same recorder, so
the backward is whatever autograd does, custom functions included. A returned value's tangent that eager would not
have (its gradient is None) is not an input of the graph: the program is traced again without it (`trace_call`),
because a zero in its place would be another program (0 * inf is nan, None is not zero).
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from typing import Any

import torch
from torch import fx

from ..base.errors import Unsupported
from ..base.noted_warnings import noted_warnings
from ..base.origin import Origin
from ..base.symbol_facts import rounded_symbol
from ..base.torch_facts import (
    FakeTensor,
    FakeTensorMode,
    apply_function,
    lazy_module,
    next_gradient_number,
    running_gradient_number,
)
from ..graph.aliasing import argument, memory_root
from ..graph.effects.shared_generator import demand_untouched_generator, watched_generator
from ..graph.effects.undo import WARNED
from ..graph.fx_nodes import add_call, add_output, copy_node
from ..graph.graph_interpreter import interpret
from ..graph.node_values import copy_facts, in_backward, origin_of, set_value, tensor_of, value_of
from ..graph.shapes.shape_dispatch import call_with_dynamic_sizes, python_shape_rules
from ..graph.tracer import AtenRecorder, TensorMetadata
from .analyze import Analysis, StateBefore, TracedCall, analyze
from .call_signature import CallSignature
from .dynamic_arguments import TracedSizes
from .functionalize import Functionalizer
from .histories.history_reach import HANDS_ON, InnerResult, inner_results, reach_of, steps_of_several
from .histories.independent_results import Group, independent_results
from .joint_program import JointProgram
from .partition import JointGraph
from .value_graph import ValueGraph


@dataclass(frozen=True, slots=True)
class Traced:
    """A traced call.

    constants: tensors that the graph takes behind the call's own.  gradients_of: inputs (by their number) that may get
    a gradient, in the order of the graph's last outputs; empty without gradients.  forward_targets: the operators of
    the forward, to tell whether two traces ran the same program.  sizes: the dynamic ones.
    recorded: the calls as they were recorded, writes and all, with the outputs of `joint`; kept where the program asks.
    reach: for each input, from which of the values with a gradient a history leads to it, gradient or none.
    independent: groups of the values with a gradient (see independent_results).  arrival: the inputs that get a
    gradient, by their number, in the order in which the engine has found it.  steps_of_several: the steps that take
    several gradients, by their numbers; None where nothing follows from that (see history_reach).  inner: values that
    the histories of others lead to.
    """

    joint: JointGraph
    signature: CallSignature
    constants: tuple[torch.Tensor, ...]
    gradients_of: tuple[int, ...]
    forward_targets: tuple[object, ...]
    sizes: TracedSizes
    recorded: fx.GraphModule | None = None
    reach: tuple[frozenset[int], ...] = ()
    independent: tuple[Group, ...] = ()
    arrival: tuple[int, ...] = ()
    steps_of_several: frozenset[int] | None = None
    inner: tuple[InnerResult, ...] = ()


class _Entry(torch.autograd.Function):
    """Stands for the unknown history of a non-leaf input: the program sees a non-leaf of the same sizes."""

    @staticmethod
    def forward(ctx: torch.autograd.function.FunctionCtx, primal: torch.Tensor, recorder: AtenRecorder) -> torch.Tensor:
        """Return a tensor of its own memory."""
        setattr(ctx, HANDS_ON, True)
        ctx.set_materialize_grads(False)  # no gradient is handed on as none: zeros would go on through what is outside
        with recorder.paused():
            return torch.empty_strided(primal.shape, primal.stride(), dtype=primal.dtype, device=primal.device)

    @staticmethod
    def backward(ctx: object, gradient: torch.Tensor | None) -> tuple[torch.Tensor | None, None]:
        """Hand the gradient on, if there is one."""
        del ctx
        return gradient, None


@dataclass(slots=True)
class _Run:
    program: JointProgram
    sizes: TracedSizes = field(init=False)
    mode: FakeTensorMode = field(init=False)
    recorder: AtenRecorder = field(init=False)
    worker: Functionalizer = field(init=False)
    positions: list[int] = field(default_factory=list)
    primals: list[torch.Tensor] = field(default_factory=list)
    lines: list[tuple[int, Origin | None]] = field(default_factory=list)
    arrival: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        dynamic = self.program.dynamic
        sizes = dict(zip(dynamic.labels, self.program.sizes, strict=True))
        self.sizes = TracedSizes.of(sizes, frozenset(dynamic.numbers.values()))
        self.mode = self.sizes.mode
        gate = self.program.gate
        self.recorder = AtenRecorder(self.mode, self.program.decompositions, gate.again() if gate is not None else None)
        self.worker = Functionalizer(ValueGraph(self.mode))

    # -- forward -----------------------------------------------------------------------------------------------

    def forward(self) -> Analysis:
        """Run the program on fakes and analyse what it did."""
        with torch.inference_mode(False):
            arguments, call_inputs, input_nodes = self._make_inputs()
        before = [StateBefore.of(item) for item in call_inputs]
        with self.program.tracing_state(), self.mode, self.recorder:
            by = call_with_dynamic_sizes if self.program.dynamic.labels else None
            results = interpret(self.program.gm, arguments, before=self._note_origin, after=_rounded, call=by)
        self.recorder.origin = None
        demand_untouched_generator()
        if any(primal.is_leaf and primal.grad is not None for primal in self.primals):
            raise Unsupported("the program runs a backward itself", hint="expected: the graph runs eagerly")
        if any(isinstance(item, FakeTensor) and item.is_inference() for item in results):
            raise Unsupported("an output is made in inference mode", hint="expected: the graph runs eagerly")
        self.worker.take(list(self.recorder.graph.nodes))
        node_of, object_of = self.recorder.node_of, self.recorder.object_of
        call = TracedCall(self.worker, input_nodes, call_inputs, before, self.primals, results, node_of, object_of)
        with torch.inference_mode(False), torch.set_grad_enabled(self.program.grad_enabled):
            return analyze(call, self.positions)

    def _make_inputs(self) -> tuple[list[object], list[torch.Tensor], list[fx.Node]]:
        arguments: list[object] = []
        seen: dict[int, torch.Tensor] = {}
        nodes: list[fx.Node] = []
        for position, value in enumerate(self.program.arguments):
            if not isinstance(value, TensorMetadata):
                label = self.program.dynamic.numbers.get(position)
                arguments.append(value if label is None else self.sizes.values[label])
                continue
            if id(value) not in seen:
                primal = value.fake(self.mode, self.sizes.values)
                node = self.recorder.add_input(f"input_{len(nodes)}", primal)
                seen[id(value)] = self._program_side(primal, value, node)
                self.positions.append(position)
                self.primals.append(primal)
                nodes.append(node)
            arguments.append(seen[id(value)])
        return arguments, list(seen.values()), nodes

    def _program_side(self, primal: torch.Tensor, value: TensorMetadata, node: fx.Node) -> torch.Tensor:
        if not value.requires_grad or value.is_leaf:
            return primal
        with self.mode, torch.enable_grad():
            entered: torch.Tensor = apply_function(_Entry, primal, self.recorder)
        self.recorder.bind(entered, node)
        return entered

    def _note_origin(self, node: fx.Node) -> None:
        self.recorder.origin = origin_of(node)
        self.lines.append((next_gradient_number(), self.recorder.origin))

    def _line_of_gradient(self) -> Origin | None:
        """Return the user line whose call made the autograd node that runs now; nodes are numbered in that order."""
        number = running_gradient_number()
        place = bisect_right(self.lines, number, key=itemgetter(0)) if number is not None else 0
        return self.lines[place - 1][1] if place else None

    # -- gradients ---------------------------------------------------------------------------------------------

    def gradients(self, analysis: Analysis, tangents: Sequence[int]) -> tuple[list[int], list[fx.Node | None]]:
        """Record the gradients of some returned values; returns the inputs that may have one, and their nodes."""
        indexes = [index for index, primal in enumerate(self.primals) if primal.requires_grad]
        seeds = [self._add_tangent(index, analysis.objects[index]) for index in tangents]
        _demand_checked_backward(self.recorder.graph)
        self.recorder.backward, self.recorder.backward_origin = True, self._line_of_gradient
        rules = python_shape_rules() if self.program.dynamic.labels else nullcontext()
        with torch.inference_mode(False), rules, self.mode, self.recorder, self._arrivals_noted(indexes):
            results = torch.autograd.grad(
                [analysis.objects[index] for index in tangents],
                [self.primals[index] for index in indexes],
                seeds,
                allow_unused=True,
            )
        self.worker.take(list(self.recorder.graph.nodes))
        return indexes, [None if g is None else self.recorder.node_of(g) for g in results]

    @contextmanager
    def _arrivals_noted(self, indexes: Sequence[int]) -> Iterator[None]:
        """Note in which order gradients arrive; no hook stays: graphs keep these leaves, and a hook keeps this run."""
        leaves: list[Any] = [self.primals[index] for index in indexes]  # whose method has no types
        handles = [
            leaf.register_hook(partial(self._note_arrival, index)) for index, leaf in zip(indexes, leaves, strict=True)
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _note_arrival(self, index: int, gradient: torch.Tensor) -> None:
        del gradient
        self.arrival.append(index)

    def reach(self, analysis: Analysis, tangents: Sequence[int]) -> tuple[frozenset[int], ...]:
        """Return for each input which of some returned values lead to it; to be asked before the backward."""
        return reach_of([analysis.objects[index] for index in tangents], self.primals)

    def recorded(self, analysis: Analysis, gradients: Sequence[fx.Node | None]) -> fx.GraphModule:
        """Return what was recorded as a graph with the outputs of the joint graph."""
        graph = fx.Graph()
        mapping: dict[fx.Node, fx.Node] = {}
        for node in self.recorder.graph.nodes:
            mapping[node] = copy_node(graph, node, mapping.__getitem__)
            copy_facts(node, mapping[node])
        values = [self.recorder.node_of(item) for item in analysis.objects]
        add_output(graph, [None if node is None else mapping[node] for node in (*values, *gradients)])
        return lazy_module(dict(self.recorder.constants), graph)

    def _add_tangent(self, index: int, item: torch.Tensor) -> torch.Tensor:
        """Add a placeholder for the gradient of one value: sizes and dtype of the value, its strides if dense."""
        with self.mode, torch.no_grad():
            tangent = torch.empty_like(item)
        last = [node for node in self.recorder.graph.nodes if node.op == "placeholder"][-1]
        with self.recorder.graph.inserting_after(last):
            node = self.recorder.graph.placeholder(f"tangent_{index}")
        set_value(node, tangent)
        self.recorder.bind(tangent, node)
        self.worker.take([node])
        return tangent


def _rounded(node: fx.Node, value: object) -> object:
    """Keep the order in which floats computed from sizes are rounded."""
    del node
    return rounded_symbol(value) if isinstance(value, torch.SymFloat) else value


# Their backward looks at values to tell whether the gradient exists; on fake tensors it cannot look.
_VALUE_CHECKED = frozenset({torch.ops.aten.linalg_eig.default})
_VALUE_CHECKED_IF_COMPLEX = frozenset({torch.ops.aten._linalg_svd.default, torch.ops.aten._linalg_eigh.default})


def _demand_checked_backward(graph: fx.Graph) -> None:
    for node in graph.nodes:
        complex_input = node.target in _VALUE_CHECKED_IF_COMPLEX and tensor_of(node.all_input_nodes[0]).is_complex()
        if node.target in _VALUE_CHECKED or complex_input:
            raise Unsupported(
                "the gradient of eigenvectors or singular vectors depends on their phase",
                why="eager refuses by looking at values",
                hint="expected: the graph runs eagerly",
            )
        if node.target is torch.ops.aten.clamp.Tensor:
            _demand_bounds_inside(node)


def _demand_bounds_inside(node: fx.Node) -> None:
    """Raise for a clamp between tensors whose backward eager may refuse: it works in place, fakes make new tensors.

    Eager compares the input with each bound and writes into what that gives, which has to have all dimensions.
    """
    source, low, high = (argument(node, position) for position in range(3))
    if isinstance(source, fx.Node) and isinstance(low, fx.Node) and isinstance(high, fx.Node):
        x, first, second = (tensor_of(one).shape for one in (source, low, high))
        for bound, other in ((first, second), (second, first)):
            pairs = zip_longest(reversed(x), reversed(bound), fillvalue=1)
            inside = [larger if size == 1 else size for size, larger in pairs]
            fits = (size == 1 or size == mine for size, mine in zip(reversed(other), inside, strict=False))
            if len(other) > len(inside) or not all(fits):
                raise Unsupported("one bound has more elements than the rest", hint="expected: it runs eagerly")


def trace_call(program: JointProgram, tangents: Sequence[int] | None = None) -> Traced:
    """Trace a program: forward, and the gradients of the values in `tangents` (None: of all that require grad).

    Raises Unsupported for what cannot be rebuilt exactly, and whatever the program raises on fake tensors.
    """
    with watched_generator(), noted_warnings([], program.gm.meta.get(WARNED, ())):
        return _trace_call(program, tangents)


def _trace_call(program: JointProgram, tangents: Sequence[int] | None) -> Traced:
    run = _Run(program)
    analysis = run.forward()
    targets = tuple(node.target for node in run.worker.result.graph.nodes if node.op == "call_function")
    needs = analysis.signature.requires_grad
    chosen = [index for index, need in enumerate(needs) if need] if tangents is None else list(tangents)
    reach = run.reach(analysis, chosen) if chosen else ()
    differentiable = [analysis.objects[index] for index in chosen]
    independent = independent_results(differentiable) if tangents is None else ()
    inner = inner_results(differentiable) if tangents is None and len(chosen) > 1 else ()
    several = steps_of_several(differentiable) if tangents is None and len(chosen) > 1 else None
    wanted, found = run.gradients(analysis, chosen) if chosen else ([], [])
    recorded = run.recorded(analysis, found) if program.keeps_recorded else None
    gradients = [None if node is None else run.worker.value_after(node) for node in found]
    inputs = len(run.primals)
    worker = run.worker
    add_output(worker.result.graph, [*_own_memory(worker.result.graph, analysis.values), *gradients])
    names = [str(node.target) for node in worker.constants]
    joint = JointGraph(
        lazy_module({}, worker.result.graph),
        inputs + len(names),
        len(analysis.values),
        tuple(chosen),
        tuple(range(analysis.signature.returned)),
        frozenset(fact.input for fact in analysis.signature.writes),
    )
    constants = tuple(run.recorder.constants[name] for name in names)
    ordered = _ordered(joint, worker)
    return Traced(
        ordered,
        analysis.signature,
        constants,
        tuple(wanted),
        targets,
        run.sizes,
        recorded=recorded,
        reach=reach,
        independent=independent,
        arrival=tuple(run.arrival),
        steps_of_several=several,
        inner=inner,
    )


def _own_memory(graph: fx.Graph, values: Sequence[fx.Node]) -> list[fx.Node]:
    """Copy a value that shares memory with an input or an earlier value: what a call returns is the caller's own."""
    seen: set[fx.Node] = set()
    own = []
    for value in values:
        root = memory_root(value)
        if root.op == "placeholder" or root in seen:
            value = add_call(graph, torch.ops.aten.clone.default, (value,), value=value_of(value))
        seen.add(root)
        own.append(value)
    return own


def _ordered(joint: JointGraph, worker: Functionalizer) -> JointGraph:
    """Put the placeholders in the order inputs, constants, tangents and give forward values their stamps."""
    graph = joint.graph.graph
    recorded = [node for node in graph.nodes if node.op == "placeholder"]
    constants = {worker.handles[node].region.value for node in worker.constants if node in worker.handles}
    tangents = [node for node in recorded if node.name.startswith("tangent_")]
    late = set(tangents)
    inputs = [node for node in recorded if node not in late and node not in constants]
    behind = [node for node in recorded if node in constants]
    for node in reversed([*inputs, *behind, *tangents]):
        first = next(iter(graph.nodes))
        if node is not first:
            first.prepend(node)
    stamp = 0
    for node in graph.nodes:
        if node.op == "call_function" and not in_backward(node):
            node.meta["stamp"] = stamp
            stamp += 1
    return joint
