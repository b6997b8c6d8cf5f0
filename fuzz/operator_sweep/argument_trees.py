"""Arguments of a call as trees: the tensors in them, the same tree with other tensors, and as Python text."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

from plumbline.compiler.base.nested import leaves

_NAMED = (torch.dtype, torch.layout, torch.memory_format)


def tensors_of(tree: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of nested tuples, lists and dicts, in order."""
    return (leaf for leaf in leaves(tree) if isinstance(leaf, torch.Tensor))


def with_tensors(tree: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return the tree with every tensor replaced; named tuples become tuples."""
    if isinstance(tree, torch.Tensor):
        return change(tree)
    if type(tree) is dict:
        return {key: with_tensors(item, change) for key, item in tree.items()}
    if isinstance(tree, list):
        return [with_tensors(item, change) for item in tree]
    if isinstance(tree, tuple) and not isinstance(tree, torch.Size):
        return tuple(with_tensors(item, change) for item in tree)
    return tree


class CallText:
    """Writes arguments as Python text; what has no literal becomes a constant of the module the text lives in.

    tensor: the text of each tensor.  prefix: of the names of constants.
    """

    def __init__(self, tensor: Callable[[torch.Tensor], str], prefix: str) -> None:
        self._tensor = tensor
        self._prefix = prefix
        self.constants: dict[str, Any] = {}

    def call(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """Return a call as text."""
        texts = [self.text(arg) for arg in args] + [f"{name}={self.text(value)}" for name, value in kwargs.items()]
        return f"{function}({', '.join(texts)})"

    def text(self, value: Any) -> str:
        """Return one argument as text."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if value is None or type(value) in (bool, int, str):
            return repr(value)
        if type(value) in (float, complex) and math.isfinite(abs(value)):
            return repr(value)
        if type(value) is float:
            return f"float({str(value)!r})"
        if isinstance(value, _NAMED):
            return str(value)
        if type(value) is torch.device:
            return repr(str(value))
        if type(value) is slice:
            return f"slice({', '.join(map(self.text, (value.start, value.stop, value.step)))})"
        if type(value) in (tuple, torch.Size):
            return f"({''.join(f'{self.text(item)}, ' for item in value)})"
        if type(value) is list:
            return f"[{', '.join(map(self.text, value))}]"
        if type(value) is dict and all(type(key) is str for key in value):
            return f"{{{', '.join(f'{key!r}: {self.text(item)}' for key, item in value.items())}}}"
        if value is Ellipsis:
            return "..."
        name = f"{self._prefix}_{len(self.constants)}"
        self.constants[name] = value
        return name


def tensor_text(tensor: torch.Tensor) -> str:
    """Return an expression that makes an equal leaf: the same values, dtype, strides and `requires_grad`."""
    values = tensor.detach()
    dtype = str(tensor.dtype)
    text = f"torch.tensor({_values_text(values.tolist())}, dtype={dtype})"
    if 0 in values.shape:
        text = f"torch.empty({tuple(values.shape)}, dtype={dtype})"
    if values.stride() != torch.empty(values.shape).stride():
        text = f"torch.empty_strided({tuple(values.shape)}, {values.stride()}, dtype={dtype}).copy_({text})"
    return f"{text}.requires_grad_()" if tensor.requires_grad else text


def _values_text(values: Any) -> str:
    if isinstance(values, list):
        return f"[{', '.join(map(_values_text, values))}]"
    if isinstance(values, float) and not math.isfinite(values):
        return f"float({str(values)!r})"
    return repr(values)
