"""Whether values hold tensors or modules: looked for a few levels deep, because calls are asked for it each time."""

import types
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import torch

DEPTH = 3  # levels of lists, tuples, dicts and attributes
WIDTH = 32  # entries of each

_CLOSED = (str, bytes, int, float, type(None), type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


def holds_tensor(value: object) -> bool:
    """Return whether a value is or holds a tensor, or a module, which has some."""
    return _holds(value, lambda each: isinstance(each, (torch.Tensor, torch.nn.Module)), DEPTH + 1)


def holds_module(value: object) -> bool:
    """Return whether a value is or holds a module."""
    return _holds(value, lambda each: isinstance(each, torch.nn.Module), DEPTH + 1)


def is_tensors(value: object) -> bool:
    """Return whether a value is a tensor or a plain tuple, list or dict of nothing else."""
    if isinstance(value, torch.Tensor):
        return True
    inner = list(value.values()) if type(value) is dict else value
    return type(inner) in (tuple, list) and bool(inner) and all(map(is_tensors, inner))  # type: ignore[call-overload]  # checked here


def is_plain(value: object) -> bool:
    """Return whether a value is a constant or a plain tuple or list of nothing else."""
    if type(value) in (tuple, list):
        return all(map(is_plain, value))  # type: ignore[call-overload]  # checked in the line above
    return isinstance(value, _CONSTANTS)


_CONSTANTS = (int, float, complex, str, type(None), torch.dtype, torch.device, torch.Size)


def _holds(value: object, wanted: Callable[[object], bool], depth: int) -> bool:
    if wanted(value):
        return True
    if depth == 0 or isinstance(value, _CLOSED):
        return False
    return any(_holds(each, wanted, depth - 1) for each in islice(_parts(value), WIDTH))


def _parts(value: Any) -> Iterator[object]:
    """Yield what a value holds; methods that its class may have overridden are not called."""
    if isinstance(value, dict):
        yield from list(dict.values(value))
    elif isinstance(value, tuple):
        yield from tuple.__iter__(value)
    elif isinstance(value, list):
        yield from list.__iter__(value)
    if type(value).__dictoffset__:
        fields = object.__getattribute__(value, "__dict__")
        yield from list(fields.values()) if type(fields) is dict else ()
