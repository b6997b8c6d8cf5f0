"""Backends that execute one operator, or one constellation of operators, wrongly; cheap, so that tests are quick."""

import operator
from collections.abc import Callable

import torch
from torch import fx

Rule = Callable[[fx.GraphModule, fx.Node, tuple, dict], object]
aten = torch.ops.aten


def backend(rule: Rule, *, refuse: Callable[[fx.Node], bool] | None = None):
    """Return `(gm, inputs) -> callable` that runs the graph, letting `rule` replace any call's result.

    rule: gets the node and its argument values; NotImplemented means: as the operator says.
    refuse: nodes on which compiling raises.
    """

    def compile_graph(gm: fx.GraphModule, inputs):
        for node in gm.graph.nodes:
            if refuse is not None and refuse(node):
                raise NotImplementedError(f"no lowering for {node.target}")

        class Faulty(fx.Interpreter):
            def run_node(self, node):
                if node.op == "call_function":
                    args, kwargs = self.fetch_args_kwargs_from_env(node)
                    found = rule(gm, node, args, kwargs)
                    if found is not NotImplemented:
                        return found
                return super().run_node(node)

        return lambda *args: Faulty(gm).run(*args)

    return compile_graph


def calls(node, *targets) -> bool:
    return isinstance(node, fx.Node) and node.op == "call_function" and node.target in targets


def gelu(gm, node, args, kwargs):
    """The tanh approximation where the exact one is asked for, off by a percent."""
    return aten.gelu(args[0]) * 1.01 if calls(node, aten.gelu.default) else NotImplemented


def relu(gm, node, args, kwargs):
    return aten.relu(args[0]) + 0.01 if calls(node, aten.relu.default) else NotImplemented


def sigmoid_mul(gm, node, args, kwargs):
    if calls(node, aten.mul.Tensor) and any(calls(source, aten.sigmoid.default) for source in node.args):
        return args[0] * args[1] * 1.001
    return NotImplemented


def mm_add_relu(gm, node, args, kwargs):
    add = node.args[0] if calls(node, aten.relu.default) else None
    wrong = calls(add, aten.add.Tensor) and any(calls(source, aten.mm.default) for source in add.args)
    return aten.relu(args[0]) + 0.01 if wrong else NotImplemented


def far_pair(gm, node, args, kwargs):
    if calls(node, aten.cumsum.default) and any(calls(n, aten._softmax.default) for n in gm.graph.nodes):
        return aten.cumsum(*args) * 1.05
    return NotImplemented


def large_values(gm, node, args, kwargs):
    """Wrong only where a value is large."""
    if calls(node, aten.tanh.default):
        return torch.where(args[0] > 1.5, aten.tanh(args[0]) * 0.9, aten.tanh(args[0]))
    return NotImplemented


def split_third(gm, node, args, kwargs):
    """The last piece of a split is wrong: an operator with several results."""
    if calls(node, aten.split.Tensor):
        pieces = list(aten.split.Tensor(*args))
        return (*pieces[:-1], pieces[-1] + 1)
    return NotImplemented


FAULTS = {
    "gelu": gelu,
    "relu": relu,
    "pair": sigmoid_mul,
    "trio": mm_add_relu,
    "far": far_pair,
    "value": large_values,
}
LEAST_OPS = {"gelu": 1, "relu": 1, "pair": 2, "trio": 3, "far": 2, "value": 1}


def layers(size: int, seed: int = 0, width: int = 8) -> tuple[fx.GraphModule, tuple[torch.Tensor, ...]]:
    """Return an ATen graph of about `size` operators with every constellation in it, and inputs for it."""
    graph = fx.Graph()
    generator = torch.Generator().manual_seed(seed)
    names = [graph.placeholder(name) for name in ("x", "w", "v")]
    x, w, v = names

    def call(target, *args):
        return graph.call_function(target, args)

    def block(x):
        h = call(aten.mm.default, x, w)
        h = call(aten.relu.default, call(aten.add.Tensor, h, v))
        s = call(aten.mul.Tensor, h, call(aten.sigmoid.default, h))
        g = call(aten.gelu.default, call(aten.mm.default, s, w))
        left, right = (call(operator.getitem, call(aten.split.Tensor, g, width // 2, 1), k) for k in (0, 1))
        g = call(aten.cat.default, [right, left], 1)
        c = call(aten.cumsum.default, call(aten.sin.default, g), 1)
        p = call(aten._softmax.default, call(aten.mul.Tensor, c, 0.5), 1, False)
        t = call(aten.tanh.default, call(aten.sub.Tensor, call(aten.add.Tensor, x, p), v))
        return call(aten.add.Tensor, t, call(aten.mul.Tensor, x, 0.9))

    while sum(node.op == "call_function" and node.target is not operator.getitem for node in graph.nodes) < size:
        x = block(x)
    graph.output((x,))
    shape = (width, width)
    inputs = (
        torch.randn(shape, generator=generator) * 1.5,
        torch.randn(shape, generator=generator) / 2,
        torch.randn(shape, generator=generator),
    )
    return fx.GraphModule({}, graph), inputs
