"""Backends of two compilers: one for the forward half of a graph and one for the backward half.

The names and arguments are those of torch's `aot_autograd`: `fw_compiler` and `bw_compiler` take an ATen graph and
example inputs and return a callable, `partition_fn` cuts the joint graph, `decompositions` replaces operators by
smaller ones while it is traced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx

from .autograd.compile import compile_with_autograd
from .autograd.forms.form_parts import CompileGraph, Halves
from .autograd.partition import JointGraph, Partition, partition, stamp_of
from .base.config import CONFIG
from .base.errors import CallersFailure, UserError
from .base.torch_facts import OpOverload, lazy_module
from .frontend.specialise import SYMBOLIC
from .graph.fx_nodes import add_output, copy_node
from .graph.node_values import copy_facts, outputs, placeholders, tensor_of

GraphCompiler = Callable[[fx.GraphModule, list[torch.Tensor]], Callable[..., Any]]
PartitionFunction = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]
Backend = Callable[[fx.GraphModule, list[object]], Callable[..., object]]


def aot_autograd(
    *,
    fw_compiler: GraphCompiler,
    bw_compiler: GraphCompiler | None = None,
    partition_fn: PartitionFunction | None = None,
    decompositions: Mapping[OpOverload, Callable[..., object]] | None = None,
) -> Backend:
    """Return a backend for `compile` and `register_backend`: forward and backward traced to ATen, each compiled.

    fw_compiler: gets each forward graph, and graphs without gradients; its result takes the graph's inputs and gives a
    tuple or list.  bw_compiler: the same for backwards, when they first run; by default fw_compiler.  partition_fn:
    (joint graph, its inputs, *, num_fwd_outputs) -> (forward graph, backward graph); by default min_cut_partition.
    decompositions: operator -> function that computes the same.  What these functions raise is raised to the caller.
    """
    forward, rules = _compiler_of(fw_compiler), dict(decompositions or {})
    halves = Halves(
        None if partition_fn is None else _cut_by(partition_fn),
        None if bw_compiler is None else _compiler_of(bw_compiler),
    )

    def backend(graph: fx.GraphModule, example_inputs: list[object]) -> Callable[..., object]:
        options, guarded = CONFIG.over_environment()(), SYMBOLIC in graph.meta
        try:
            return compile_with_autograd(
                graph,
                example_inputs,
                forward,
                options,
                decompositions=lambda: rules,
                guarded=guarded,
                halves=halves,
            )
        except CallersFailure as failure:
            raise failure.error from None

    backend.__name__ = f"aot_{getattr(fw_compiler, '__name__', 'compiler')}"
    return backend


@contextmanager
def _callers() -> Iterator[None]:
    """Mark what a function of the caller's raises."""
    try:
        yield
    except Exception as error:
        raise CallersFailure(error) from error


def _compiler_of(compiler: GraphCompiler) -> CompileGraph:
    def compile_graph(graph: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[..., tuple[Any, ...]]:
        with _callers():
            compiled = compiler(graph, list(inputs))
            if not callable(compiled):
                hint = "return a callable, such as the graph itself"
                raise UserError(f"a graph compiler returned {type(compiled).__name__}", hint=hint)
        return lambda *values: tuple(compiled(*values))

    return compile_graph


def min_cut_partition(
    joint_module: fx.GraphModule, joint_inputs: Sequence[object] = (), *, num_fwd_outputs: int, recompute: bool = True
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Cut a joint graph where the fewest bytes are kept for the backward, which computes cheap values again.

    joint_module: inputs of the forward, then tangents named `tangents_*`; outputs of the forward, then gradients.
    Returns the forward, whose further outputs are what is kept, and the backward, which takes that and the tangents.
    """
    del joint_inputs
    inputs = placeholders(joint_module.graph)
    tangents = [node for node in inputs if str(node.target).startswith("tangents_")]
    count = len(inputs) - len(tangents)
    joint = JointGraph(
        joint_module, count, num_fwd_outputs, tuple(range(len(tangents))), tuple(range(num_fwd_outputs)), frozenset()
    )
    cut = partition(joint, recompute=recompute)
    return _with_kept_outputs(cut, count), cut.backward


def default_partition(
    joint_module: fx.GraphModule, joint_inputs: Sequence[object] = (), *, num_fwd_outputs: int
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Cut a joint graph so that nothing is computed twice: all that the backward reads of the forward is kept."""
    return min_cut_partition(joint_module, joint_inputs, num_fwd_outputs=num_fwd_outputs, recompute=False)


def _with_kept_outputs(cut: Partition, inputs: int) -> fx.GraphModule:
    """Return the forward of a cut with everything that is kept among its outputs, in the order of the backward."""
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    for node in cut.forward.graph.nodes:
        if node.op != "output":
            values[node] = _copied(graph, node, values)
    given = [values[part] if isinstance(part, fx.Node) else part for part in outputs(cut.forward.graph)]
    places = placeholders(graph)[:inputs]
    extra = given[len(given) - sum(kind == "extra" for kind, _ in cut.kept) :]
    returned = given[: len(given) - len(extra)]
    found: dict[str, list[Any]] = {"input": [*places], "returned": returned, "extra": extra}
    add_output(graph, [*returned, *(found[kind][index] for kind, index in cut.kept)])
    return lazy_module(cut.forward, graph)


def _copied(graph: fx.Graph, node: fx.Node, values: Mapping[fx.Node, fx.Node]) -> fx.Node:
    copy = copy_node(graph, node, values.__getitem__)
    copy_facts(node, copy)
    return copy


def _cut_by(partition_fn: PartitionFunction) -> Callable[[JointGraph], Partition]:
    """Return a cut as the rest of the compiler wants it, made by a function with torch's interface."""

    def cut(joint: JointGraph) -> Partition:
        graph, stamps = _named_as_torch_does(joint)
        with _callers():
            forward, backward = partition_fn(
                graph, [tensor_of(node) for node in placeholders(graph.graph)], num_fwd_outputs=joint.returned
            )
            return _partition_of(forward, backward, joint, stamps)

    return cut


def _named_as_torch_does(joint: JointGraph) -> tuple[fx.GraphModule, dict[str, int | str]]:
    """Return a copy whose inputs are `primals_*` and `tangents_*`, and what its nodes are called across traces."""
    graph = fx.Graph()
    values: dict[fx.Node, fx.Node] = {}
    stamps: dict[str, int | str] = {}
    seen = 0
    for node in joint.graph.graph.nodes:
        if node.op == "output":
            continue
        if node.op == "placeholder":
            seen += 1
            name = f"primals_{seen}" if seen <= joint.inputs else f"tangents_{seen - joint.inputs}"
            values[node] = graph.placeholder(name)
            copy_facts(node, values[node])
        else:
            values[node] = _copied(graph, node, values)
        stamps[values[node].name] = stamp_of(node)
    add_output(graph, [values[part] if isinstance(part, fx.Node) else part for part in outputs(joint.graph.graph)])
    return fx.GraphModule(joint.graph, graph), stamps


def _partition_of(
    forward: fx.GraphModule, backward: fx.GraphModule, joint: JointGraph, stamps: Mapping[str, int | str]
) -> Partition:
    """Read a caller's two graphs; raises UserError for two that do not fit together."""
    given, taken = outputs(forward.graph), placeholders(backward.graph)
    kept, tangents = given[joint.returned :], len(joint.tangents)
    if len(taken) != len(kept) + tangents or len(placeholders(forward.graph)) != joint.inputs:
        raise UserError(
            f"partition_fn gave a forward that keeps {len(kept)} values and a backward that takes {len(taken)} inputs",
            hint=f"the backward takes what is kept, then {tangents} tangents; the forward {joint.inputs} inputs",
        )
    nodes = [part for part in kept if isinstance(part, fx.Node)]
    if len(nodes) != len(kept):
        raise UserError("partition_fn keeps something that no node gives", hint="keep tensors")
    inputs = {node: place for place, node in enumerate(placeholders(forward.graph))}
    places = [("input", inputs[node]) if node in inputs else ("extra", index) for index, node in enumerate(nodes)]
    return Partition(forward, backward, tuple(places), tuple(stamps.get(node.name, node.name) for node in nodes))
