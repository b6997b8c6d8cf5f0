"""A candidate of the minifier: a graph with the values of its inputs, and the key that recognises it."""

import hashlib
import operator
import re
from dataclasses import dataclass

import torch
from torch import fx

from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.base.origin import Origin
from plumbline.compiler.graph.fx_nodes import map_leaves
from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.node_values import calls, origin_of, placeholders
from plumbline.oracle.harness.captured_graphs import cloned_inputs

SEED = 0
"""Of torch, NumPy and Python before each run: random operators draw the same in every query and in the script."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphCase:
    """A graph and one value per placeholder; neither changes afterwards.

    A run gets copies of the inputs (`fresh_inputs`), so that graphs that write to them can be run again.
    """

    graph: fx.GraphModule
    inputs: tuple[object, ...]

    def fresh_inputs(self) -> tuple[object, ...]:
        """Return copies of the inputs with the same strides, sharing and requires_grad."""
        return cloned_inputs(self.inputs)

    def run(self, *inputs: object) -> tuple[object, ...]:
        """Run the graph as it is written; always a tuple."""
        return interpret(self.graph, inputs)

    def ops(self) -> list[fx.Node]:
        """Return the operators in order; taking a part of a call's result does not count."""
        return ops_of(self.graph)

    def __len__(self) -> int:
        """Return the number of operators."""
        return len(self.ops())


def case_of(gm: fx.GraphModule, inputs: tuple[object, ...]) -> GraphCase:
    """Return a captured graph as a case: tensors that it holds become inputs.

    Raises Unsupported for a graph that calls modules: their code cannot be written into a script.
    """
    graph = fx.Graph()
    mapping: dict[fx.Node, fx.Node] = {}
    tensors: dict[fx.Node, torch.Tensor] = {}
    for node in gm.graph.nodes:
        if node.op == "call_module":
            what = f"the graph calls the module {node.target}"
            raise Unsupported(what, why="its code is not in the graph", hint="minify with --after aot")
        if node.op == "get_attr" and isinstance(value := attribute_of(gm, str(node.target)), torch.Tensor):
            tensors[node] = value
    inputs_of_graph = placeholders(gm.graph)
    for node in (*inputs_of_graph, *tensors):
        mapping[node] = graph.placeholder(node.name)
        mapping[node].meta = dict(node.meta)
    for node in gm.graph.nodes:
        if node not in mapping:
            mapping[node] = graph.node_copy(node, mapping.__getitem__)
            mapping[node].meta = dict(node.meta)
            _set_origin(mapping[node])
    return GraphCase(fx.GraphModule(gm, graph), cloned_inputs((*inputs, *tensors.values())))


def _set_origin(node: fx.Node) -> None:
    """Keep the innermost line of the stack trace that another compiler left on a node."""
    lines = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', str(node.meta.get("stack_trace") or ""))
    if lines and origin_of(node) is None:
        file, line, function = lines[-1]
        node.meta["origin"] = Origin(file, int(line), function)


def attribute_of(gm: fx.GraphModule, path: str) -> object:
    """Return what a `get_attr` node names."""
    value: object = gm
    for part in path.split("."):
        value = getattr(value, part)
    return value


def ops_of(gm: fx.GraphModule) -> list[fx.Node]:
    """Return the operators of a graph in order; taking a part of a call's result does not count."""
    return [node for node in calls(gm.graph) if not is_part(node)]


def is_part(node: fx.Node) -> bool:
    """Return whether a node only takes one of several results of another call."""
    if node.op != "call_function" or node.target is not operator.getitem or len(node.args) != 2:
        return False
    whole, index = node.args
    return isinstance(whole, fx.Node) and isinstance(index, int) and not isinstance(whole.meta.get("val"), torch.Tensor)


def case_key(case: GraphCase) -> str:
    """Return a hash of what a compiler could see: operators, arguments, wiring, inputs by value; names do not count."""
    numbers = {node: f"%{number}" for number, node in enumerate(case.graph.graph.nodes)}
    digest = hashlib.sha256()
    for node in case.graph.graph.nodes:
        parts = map_leaves((node.args, dict(node.kwargs)), lambda leaf: numbers.get(leaf, leaf))
        target = "" if node.op in ("placeholder", "output") else _target_name(node.target)
        digest.update(f"{node.op} {target} {parts!r}\n".encode())
    for name, value in zip(placeholders(case.graph.graph), case.inputs, strict=True):
        digest.update(f"{numbers[name]} ".encode())
        _add_value(digest, value)
    return digest.hexdigest()


def _target_name(target: object) -> str:
    if isinstance(target, str):
        return target
    name = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
    return f"{getattr(target, '__module__', '')}.{name} {target}" if name else str(target)


def _add_value(digest: "hashlib._Hash", value: object) -> None:
    if not isinstance(value, torch.Tensor):
        digest.update(repr(value).encode())
        return
    facts = (value.dtype, tuple(value.shape), str(value.device), value.requires_grad, value.layout)
    digest.update(repr(facts).encode())
    plain = value.detach()
    if plain.layout == torch.strided:
        digest.update(repr((plain.stride(), plain.storage_offset())).encode())
    digest.update(tensor_bytes(plain))


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """Return the elements of a tensor as bytes, in order of the indices."""
    plain = tensor.detach()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    # A copy: a tensor of one element counts as contiguous whatever its stride, and not every stride can be reviewed.
    flat = plain.resolve_conj().resolve_neg().cpu().clone(memory_format=torch.contiguous_format).flatten()
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
