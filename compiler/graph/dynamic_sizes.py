"""Dynamic sizes in graphs: numbers that a graph is given beside its tensors, and what is computed from them.

While a graph is traced and cut, symbols stand in the arguments of its calls as they are (`torch.SymInt`).  A graph that
is to run names them: `with_size_inputs` adds one placeholder per symbol behind all others, and a call of Python's
arithmetic for each expression.  Such a graph runs on plain numbers, and prints as Python that runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from ..base.errors import Unsupported
from ..base.symbol_facts import expression_text, hint_value, lowest_value, size_expression
from ..base.torch_facts import lazy_module
from .fx_nodes import add_node, map_leaves
from .node_values import copy_facts, placeholders, set_value, value_of
from .size_nodes import node_of_size

Symbolic = torch.SymInt | torch.SymFloat | torch.SymBool


def is_symbolic(value: object) -> bool:
    """Return whether a number is known only when the graph runs."""
    return isinstance(value, Symbolic)


def same_layout(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors have equal sizes and strides, whatever the dynamic sizes are; assumes nothing."""
    if first.dim() != second.dim():
        return False
    pairs = zip((*first.shape, *first.stride()), (*second.shape, *second.stride()), strict=True)
    return all(same_number(one, other) for one, other in pairs)


def same_number(first: object, second: object) -> bool:
    """Return whether two sizes are equal, whatever the dynamic sizes are; assumes nothing."""
    if is_symbolic(first) or is_symbolic(second):
        return is_symbolic(first) and is_symbolic(second) and bool(size_expression(first) == size_expression(second))
    return first == second


def symbol_of(node: fx.Node) -> str:
    """Return the symbol that a size placeholder gives."""
    return str(node.meta["symbol"])


def number_text(value: object) -> tuple[str, tuple[str, ...]]:
    """Return Python text over symbols' names for a number, and the names."""
    expression = size_expression(value)
    return expression_text(expression), tuple(sorted(str(symbol) for symbol in expression.free_symbols))


def size_placeholders(graph: fx.Graph) -> list[fx.Node]:
    """Return the placeholders of dynamic sizes, which stand behind those of the tensors."""
    return [node for node in placeholders(graph) if is_symbolic(node.meta.get("val"))]


def size_values(dynamic: Sequence[fx.Node]) -> dict[str, float]:
    """Return what each size placeholder is in the example that was traced."""
    return {symbol_of(node): hint_value(value_of(node)) for node in dynamic}


def lowest_sizes(graph: fx.Graph) -> dict[str, int | None]:
    """Return the least value of each symbol that a graph is given."""
    return {symbol_of(node): node.meta["lowest"] for node in graph.nodes if "symbol" in node.meta}


def with_size_inputs(gm: fx.GraphModule, symbols: Mapping[str, Any]) -> fx.GraphModule:
    """Return the graph with a placeholder for every symbol, in order, behind all others; itself without symbols.

    symbols: torch's symbol by name.  Raises Unsupported for an expression that has no Python operation.
    """
    if not symbols:
        return gm
    return _Namer(gm, symbols).run()


class _Namer:
    def __init__(self, gm: fx.GraphModule, symbols: Mapping[str, Any]) -> None:
        self.gm = gm
        self.graph = fx.Graph()
        self.symbols = symbols
        self.nodes: dict[str, Any] = {}
        self.mapping: dict[fx.Node, fx.Node] = {}

    def run(self) -> fx.GraphModule:
        nodes = list(self.gm.graph.nodes)
        last = max((n for n, node in enumerate(nodes) if node.op == "placeholder"), default=-1)
        if last < 0:
            self._give_symbols()
        for position, node in enumerate(nodes):
            self._copy(node)
            if position == last:
                self._give_symbols()
        return lazy_module(self.gm, self.graph)

    def _give_symbols(self) -> None:
        for name, value in self.symbols.items():
            node = self.nodes[name] = self.graph.placeholder(name)
            set_value(node, value)
            node.meta.update(symbol=name, lowest=lowest_value(value))

    def _copy(self, node: fx.Node) -> None:
        args, kwargs = map_leaves((node.args, node.kwargs), self._leaf)
        if node.op == "placeholder":
            new = self.graph.placeholder(str(node.target))
        else:
            new = add_node(self.graph, node, args, kwargs)
        copy_facts(node, new)
        self.mapping[node] = new

    def _leaf(self, value: object) -> object:
        if isinstance(value, fx.Node):
            return self.mapping[value]
        return self._node(size_expression(value), value) if is_symbolic(value) else value

    def _node(self, expression: Any, value: object) -> Any:
        node = node_of_size(expression, self.nodes, lambda name: None, self._call)
        if node is None:
            why = "no operation of Python gives it"
            raise Unsupported(f"a size is {expression}", why=why, hint="the graph runs eagerly")
        if isinstance(node, fx.Node):
            set_value(node, value)
        elif isinstance(value, torch.SymFloat):  # the trace has fixed it: algebra writes it as 0, Python as 0.0 or -0.0
            return float(hint_value(value))
        return node

    def _call(self, operation: Callable[..., Any], parts: Sequence[Any]) -> Any:
        if not any(isinstance(part, fx.Node) for part in parts):
            return operation(*parts)
        arguments: Any = tuple(parts)
        node = self.graph.call_function(operation, arguments)
        values = [value_of(part) if isinstance(part, fx.Node) else part for part in parts]
        set_value(node, operation(*values))
        return node
