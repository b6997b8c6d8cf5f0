"""Symbolic sizes: how they are made, and what is known of them. The second importer of private torch names."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy  # type: ignore[import-untyped]  # it ships no types
import torch
from torch._guards import Source  # names symbolic numbers in the shape environment
from torch.fx.experimental.sym_node import SymNode  # a float made of sizes, kept from being put in another order
from torch.fx.experimental.symbolic_shapes import DimDynamic  # which symbol a size becomes
from torch.utils._sympy.functions import Identity  # hides a sum or product of floats from sympy's algebra
from torch.utils._sympy.printers import PythonPrinter  # prints conditions on sizes for the guards

from .borrowed.size_environment import SizeEnvironment
from .dense_order import dense_strides
from .torch_facts import FakeTensorMode, ShapeEnv

__all__ = [
    "SizeText",
    "bound_size",
    "expression_text",
    "hint_value",
    "is_at_most",
    "least_size",
    "lowest_value",
    "make_shape_environment",
    "make_symbolic_fake",
    "make_symbolic_float",
    "make_symbolic_number",
    "make_symbolic_size",
    "rounded_symbol",
    "size_conditions",
    "size_expression",
    "symbol_name",
]


@dataclass(frozen=True, slots=True)
class SizeText:
    """A number made of sizes by its Python text alone, where it comes from another process."""

    text: str


def make_shape_environment() -> ShapeEnv:
    """Return an environment for symbolic sizes: each dimension its own symbol, 0 and 1 always fixed.

    Nothing that depends on data becomes a symbol: such operations break the graph.
    """
    environment: ShapeEnv = SizeEnvironment(
        duck_shape=False, allow_scalar_outputs=False, allow_dynamic_output_shape_ops=False
    )
    return environment


def make_symbolic_fake(
    mode: FakeTensorMode, tensor: torch.Tensor, dimensions: frozenset[int], order: tuple[int, ...]
) -> torch.Tensor:
    """Return the fake twin of a dense input in which some dimensions are symbols; order: its dimensions in memory.

    The twin is made from a stand-in: the gradient of the input and the base of a view would be given symbols too,
    which nothing at the entry could compute.
    """
    environment = mode.shape_env
    assert environment is not None
    count = len(environment.var_to_range)
    sizes = [
        make_symbolic_size(environment, size, f"size_{count}_{index}") if index in dimensions else size
        for index, size in enumerate(tensor.shape)
    ]
    strides = dense_strides(sizes, order)
    with mode, torch.no_grad(), torch.inference_mode(tensor.is_inference()):
        twin = torch.empty_strided(sizes, strides, dtype=tensor.dtype, device=tensor.device)
        if isinstance(tensor, torch.nn.Parameter):
            twin = torch.nn.Parameter(twin, requires_grad=False)
    twin.requires_grad = tensor.requires_grad  # the method is refused inside a transform of torch.func
    if tensor.is_leaf:
        return twin
    with mode, torch.enable_grad():
        return twin.clone()


class _NamedInput(Source):
    """What the shape environment wants to know of a whole number that is a symbol: a name."""

    def __init__(self, label: str) -> None:
        object.__setattr__(self, "label", label)

    @property
    def _name_template(self) -> str:
        return str(self.__dict__["label"])


def make_symbolic_number(environment: ShapeEnv, value: int, label: str) -> Any:
    """Return a symbol that stands for a whole number from outside; `value` is what it is now."""
    return environment.create_unspecified_symint_and_symbol(value, _NamedInput(label), DimDynamic.DYNAMIC)


def make_symbolic_float(environment: ShapeEnv, value: float, label: str) -> Any:
    """Return a symbol that stands for a finite float from outside; `value` is what it is now."""
    source: Any = _NamedInput(label)
    expression = environment.create_unspecified_symbol(value, source, DimDynamic.DYNAMIC)
    return environment.create_symfloatnode(expression, hint=value, source=source)


def make_symbolic_size(environment: ShapeEnv, value: int, label: str) -> Any:
    """Return a symbol that stands for the size of a dimension, which is at least 2; `value` is what it is now."""
    source: Any = _NamedInput(label)
    expression = environment.create_symbol(value, source, DimDynamic.DYNAMIC)
    return environment.create_symintnode(expression, hint=value, source=source)


def size_expression(symbol: Any) -> Any:
    """Return the sympy expression of a SymInt, SymFloat or SymBool, simplified by what is known by now."""
    return symbol.node.expr


def rounded_symbol(symbol: Any) -> Any:
    """Return a SymFloat as an operand of further arithmetic: sums and products of it round when they are made.

    sympy takes (n * 0.1) * 3 for n * 0.3, which has other bits; Identity keeps the parts together.
    """
    node = symbol.node
    if not (node.expr.is_Add or node.expr.is_Mul):
        return symbol
    constructor: Callable[[SymNode], Any] = torch.SymFloat
    return constructor(SymNode(Identity(node.expr), node.shape_env, float, node.hint))


def bound_size(symbol: Any, least: int | None, greatest: int | None) -> None:
    """Promise the range of a size that is a symbol: guards hold it, and what it decides needs no other guard."""
    node = symbol.node
    low, high = max(least or 2, 2), greatest if greatest is not None else 1 << 62
    if node.expr.is_Symbol and low <= node.hint <= high:
        node.shape_env.constrain_symbol_range(node.expr, compiler_min=low, compiler_max=high)


def is_at_most(symbol: Any, expression: Any, limit: int, values: Mapping[str, float]) -> bool:
    """Return whether an expression of the symbols of `symbol` is at most a number now; what it says is guarded.

    values: of the symbols, by name.  Torch's own evaluation of a float that is rounded to a whole number fails.
    """
    now: bool = eval(expression_text(expression), {"math": math, **values}) <= limit
    return bool(symbol.node.shape_env.evaluate_expr(sympy.Le(expression, limit), hint=now))


def hint_value(symbol: Any) -> Any:
    """Return what a SymInt or SymFloat is in the example that was traced, assuming nothing."""
    return symbol.node.hint


def lowest_value(symbol: Any) -> int | None:
    """Return the least value that a plain SymInt can have, None where nothing is known (kernels rely on it)."""
    environment, expression = symbol.node.shape_env, symbol.node.expr
    span = environment.var_to_range.get(expression)
    return int(span.lower) if span is not None and span.lower.is_Integer else None


def least_size(symbol: Any) -> int:
    """Return a bound below which no value of a size made of symbols lies; 0 where nothing better is known."""
    lower = symbol.node.shape_env.bound_sympy(symbol.node.expr).lower
    return max(0, int(lower)) if lower.is_Integer else 0


def symbol_name(symbol: Any) -> str:
    """Return the name under which a symbol was made, whatever it turned out to be equal to."""
    return str(symbol.node._expr)


def expression_text(expression: Any) -> str:
    """Return a sympy expression of sizes as Python text over the names of its symbols, of `math` and of builtins.

    The printer writes two functions for torch's symbols, where a guard has plain numbers, and has no text for others.
    """
    text = str(PythonPrinter().doprint(expression))
    text = text.replace("torch.sym_float(", "float(").replace("torch._sym_sqrt(", "math.sqrt(")
    return text.replace("OpaqueUnaryFn_", "math.")


def size_conditions(environment: ShapeEnv) -> list[Any]:
    """Return what was assumed of the symbols: comparisons as sympy expressions."""
    conditions: list[Any] = [guard.expr for guard in environment.guards]
    conditions += [sympy.Eq(symbol, value, evaluate=False) for symbol, value in environment.replacements.items()]
    for symbol, span in environment.var_to_range.items():
        if span.lower.is_Integer:
            conditions.append(sympy.Ge(symbol, span.lower, evaluate=False))
        if span.upper.is_Integer:
            conditions.append(sympy.Le(symbol, span.upper, evaluate=False))
    return conditions
