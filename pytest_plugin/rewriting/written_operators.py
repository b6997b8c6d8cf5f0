"""Operators that a test file writes, where an object of a program evaluates them: `operand @ x` calls its code."""

import ast
import operator
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy
import torch

_EVERYDAY = (int, float, complex, bool, str, bytes, type(None), list, tuple, dict, set, torch.Tensor, numpy.ndarray)


@dataclass(frozen=True, slots=True)
class WrittenOperator:
    """One operator.  names: of the methods that may evaluate it, the left operand's first.  call: it, as a function."""

    names: tuple[str, str]
    function: Callable[[Any, Any], Any]
    call: Callable[[Any, Any], Any]


def _written(name: str, function: Callable[[Any, Any], Any]) -> WrittenOperator:
    def call(left: Any, right: Any) -> Any:
        return function(left, right)

    call.__name__ = call.__qualname__ = f"operator.{name}"
    return WrittenOperator((f"__{name}__", f"__r{name}__"), function, call)


OPERATORS: dict[str, WrittenOperator] = {
    ast.Add.__name__: _written("add", operator.add),
    ast.Sub.__name__: _written("sub", operator.sub),
    ast.Mult.__name__: _written("mul", operator.mul),
    ast.MatMult.__name__: _written("matmul", operator.matmul),
    ast.Div.__name__: _written("truediv", operator.truediv),
    ast.Pow.__name__: _written("pow", operator.pow),
}
"""By the name of the syntax tree's node."""


def methods_of(written: WrittenOperator, left: object, right: object) -> list[types.FunctionType]:
    """Return the methods in Python of operands of other than everyday kinds, which may evaluate an operator."""
    found = (
        _method(type(operand), name)
        for name, operand in zip(written.names, (left, right), strict=True)
        if not isinstance(operand, _EVERYDAY)
    )
    return [method for method in found if method is not None]


def _method(kind: type, name: str) -> types.FunctionType | None:
    method = getattr(kind, name, None)
    return method if isinstance(method, types.FunctionType) else None
