"""Calls of Python's arithmetic for expressions of dynamic sizes, one per operation of sympy's expression."""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

OPERATIONS: Mapping[str, Callable[..., Any]] = {  # name of a class of sympy's or torch's expressions -> operation
    "Add": operator.add,
    "Mul": operator.mul,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "Pow": operator.pow,
    "PowByNatural": operator.pow,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "FloatPow": operator.pow,
    "ToFloat": torch.sym_float,
    "Identity": operator.pos,
    "OpaqueUnaryFn_sqrt": torch.sym_sqrt,
    "Max": torch.sym_max,
    "Min": torch.sym_min,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "TruncToInt": math.trunc,
    "RoundToInt": round,
}


def node_of_size(
    expression: Any,
    nodes: dict[str, Any],
    symbol: Callable[[str], Any],
    call: Callable[[Callable[..., Any], Sequence[Any]], Any],
) -> Any:
    """Return the node that computes an expression, or its number; None if a part of it has no operation of Python.

    nodes: those that are there, by the text of what they compute; new ones are added.  symbol: gives the node of a
    symbol's name, None for an unknown one.  call: adds the call of an operation to the graph.
    """
    text = str(expression)
    if text in nodes:
        return nodes[text]
    if expression.is_Integer:
        return int(expression)
    if expression.is_Float or expression.is_Rational:
        return float(expression)
    node = symbol(text)
    if node is None:
        operation = OPERATIONS.get(type(expression).__name__)
        parts = [node_of_size(part, nodes, symbol, call) for part in expression.args] if operation is not None else []
        if operation is None or any(part is None for part in parts):
            return None
        node = parts[0] if len(parts) > 1 else call(operation, parts)
        for part in parts[1:]:
            node = call(operation, [node, part])
    nodes[text] = node
    return node
