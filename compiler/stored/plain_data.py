"""Values as plain data: tuples, texts, numbers and bytes, from which equal values can be made in another process.

The same form serves two ends: its text is part of the key by which a compiled graph is found, and it is what is kept
on disk.  What has no plain form raises `NotPlain`; nothing is approximated, for two values with one form would be one.
"""

from __future__ import annotations

import importlib
import math
import operator
import pickle
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from enum import Enum
from io import BytesIO
from pathlib import Path
from types import BuiltinFunctionType, BuiltinMethodType, FunctionType
from typing import Any

import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list

from ..base.symbol_facts import SizeText, expression_text, size_expression
from ..base.torch_facts import OpOverload

Plain = Any  # None, bool, int, float, str, bytes, and tuples of these


class NotPlain(Exception):
    """A value has no plain form; the text says which."""


def plain_value(value: object, node: Callable[[object], str] | None = None) -> Plain:
    """Return the plain form of a value; raises NotPlain.

    node: gives the name of a graph's node; without it nodes have no form.
    """
    rule = _RULES.get(type(value))
    if rule is not None:
        return rule(value, node)
    if node is not None and isinstance(value, torch.fx.Node):
        return ("node", node(value))
    if isinstance(value, torch.SymInt | torch.SymFloat):
        return ("size", expression_text(size_expression(value)))
    if is_dataclass(value) and not isinstance(value, type):
        return _dataclass_form(value, node)
    if isinstance(value, Enum) and _is_ours(type(value).__module__):
        return ("enum", type(value).__module__, type(value).__qualname__, value.name)
    if isinstance(value, type):
        return ("class", *_class_place(value))
    if isinstance(value, OpOverload):
        return ("operator", *_operator_names(value))
    if isinstance(value, FunctionType | BuiltinFunctionType | BuiltinMethodType):
        return ("function", *function_place(value))
    raise NotPlain(f"a value of type {type(value).__module__}.{type(value).__qualname__}")


def value_of_plain(form: Plain, node: Callable[[str], object] | None = None) -> Any:
    """Return the value of a plain form; raises where there is none, as in a form of another version."""
    if not isinstance(form, tuple):
        return form
    kind, *rest = form
    return _MAKERS[kind](rest, node)


def plain_text(form: Plain) -> str:
    """Return a text that two plain forms share only if they are the same, down to the sign of a zero."""
    return repr(form)


def plain_bytes(form: Plain) -> bytes:
    """Return a plain form as bytes."""
    return pickle.dumps(form, protocol=5)


def plain_of_bytes(content: bytes) -> Plain:
    """Return the plain form; raises for bytes that hold anything else, of which no code is run."""
    return _PlainOnly(BytesIO(content)).load()


class _PlainOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise NotPlain(f"a class, {module}.{name}")


Node = Callable[[object], str] | None
_Rule = Callable[[Any, Node], Plain]


def _same(value: Plain, node: Node) -> Plain:
    return value


def _items(kind: str) -> _Rule:
    return lambda value, node: (kind, *[plain_value(item, node) for item in value])


def _float_form(value: float, node: Node) -> Plain:
    return value if math.isfinite(value) else ("float", struct.pack("<d", value))  # which NaN it is matters too


def _sorted_form(kind: str) -> _Rule:
    def form(value: Iterable[object], node: Node) -> Plain:
        return (kind, *sorted((plain_value(item, node) for item in value), key=plain_text))

    return form


def _dict_form(value: dict[Any, Any], node: Node) -> Plain:
    return ("dict", *[(plain_value(key), plain_value(item, node)) for key, item in value.items()])


_RULES: dict[type, _Rule] = {
    **dict.fromkeys((type(None), bool, int, str, bytes), _same),
    float: _float_form,
    complex: lambda value, node: ("complex", _float_form(value.real, node), _float_form(value.imag, node)),
    tuple: _items("tuple"),
    list: _items("list"),
    immutable_list: _items("list"),  # what fx makes of lists and dictionaries among the arguments of a node
    torch.Size: _items("Size"),
    dict: _dict_form,
    immutable_dict: _dict_form,
    frozenset: _sorted_form("frozenset"),
    slice: lambda value, node: (
        "slice",
        *[plain_value(part, node) for part in (value.start, value.stop, value.step)],
    ),
    type(...): lambda value, node: ("ellipsis",),
    torch.dtype: lambda value, node: ("torch", str(value).removeprefix("torch.")),
    torch.layout: lambda value, node: ("torch", str(value).removeprefix("torch.")),
    torch.memory_format: lambda value, node: ("torch", str(value).removeprefix("torch.")),
    torch.device: lambda value, node: ("device", str(value)),
    SizeText: lambda value, node: ("size", value.text),
}


def _dataclass_form(value: Any, node: Node) -> Plain:
    kind = type(value)
    if not _is_ours(kind.__module__):
        raise NotPlain(f"a value of type {kind.__module__}.{kind.__qualname__}")
    parts = [plain_value(getattr(value, field.name), node) for field in fields(value) if field.init]
    return ("dataclass", kind.__module__, kind.__qualname__, *parts)


def _is_ours(module: str) -> bool:
    return module.startswith(_OURS)


_OURS = f"{__name__.partition('.')[0]}.compiler."


def _class_place(kind: type) -> tuple[str, str]:
    """Return where a class of Python or torch is found; such a form is good for keys, and nothing is made of it."""
    if kind.__module__.partition(".")[0] not in ("builtins", "torch") or _is_ours(kind.__module__):
        raise NotPlain(f"the class {kind.__module__}.{kind.__qualname__}")
    return kind.__module__, kind.__qualname__


def _class_of(module: str, name: str) -> Any:
    if not _is_ours(module):
        raise NotPlain(f"the class {module}.{name}")
    return getattr(importlib.import_module(module), name)


def _made_dataclass(rest: list[Plain], node: Any) -> Any:
    module, name, *parts = rest
    kind = _class_of(module, name)
    names = [field.name for field in fields(kind) if field.init]
    return kind(**dict(zip(names, [value_of_plain(part, node) for part in parts], strict=True)))


def _made_node(rest: list[Plain], node: Any) -> Any:
    if node is None:
        raise NotPlain("a node outside a graph")
    return node(rest[0])


def _values(rest: list[Plain], node: Any) -> list[Any]:
    return [value_of_plain(part, node) for part in rest]


def _made_torch(rest: list[Plain], node: Any) -> Any:
    value = getattr(torch, rest[0])
    if not isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        raise NotPlain(f"torch.{rest[0]}")
    return value


_MAKERS: dict[str, Callable[[list[Plain], Any], Any]] = {
    "tuple": lambda rest, node: tuple(_values(rest, node)),
    "list": _values,
    "Size": lambda rest, node: torch.Size(_values(rest, node)),
    "frozenset": lambda rest, node: frozenset(_values(rest, node)),
    "dict": lambda rest, node: {value_of_plain(key, node): value_of_plain(item, node) for key, item in rest},
    "float": lambda rest, node: struct.unpack("<d", rest[0])[0],
    "complex": lambda rest, node: complex(*_values(rest, node)),
    "slice": lambda rest, node: slice(*_values(rest, node)),
    "ellipsis": lambda rest, node: ...,
    "torch": _made_torch,
    "device": lambda rest, node: torch.device(rest[0]),
    "size": lambda rest, node: SizeText(rest[0]),
    "operator": lambda rest, node: _operator_of(*rest),
    "function": lambda rest, node: _function_of(*rest),
    "enum": lambda rest, node: _class_of(rest[0], rest[1])[rest[2]],
    "dataclass": _made_dataclass,
    "node": _made_node,
}


# -- operators and functions ---------------------------------------------------------------------------------------

_KNOWN_NAMESPACES = frozenset({"aten", "prims", "plumbline"})


def _operator_names(operator: OpOverload) -> tuple[str, str, str]:
    """Return namespace, name and overload; raises NotPlain for an operator that others define, in code of theirs."""
    namespace, _, name = operator._schema.name.partition("::")
    if namespace not in _KNOWN_NAMESPACES:
        raise NotPlain(f"the operator {operator}, which neither torch nor plumbline defines")
    return namespace, name, operator._overloadname


def _operator_of(namespace: str, name: str, overload: str) -> OpOverload:
    found = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    if not isinstance(found, OpOverload):
        raise NotPlain(f"{namespace}.{name}.{overload}")
    return found


_TORCH = f"{Path(torch.__file__).parent}{'/'}"
_ROOT = f"{Path(__file__).resolve().parent.parent}{'/'}"
_HOMES = ("torch", "torch._C._nn", "torch.nn.functional", "torch._C._VariableFunctions", "_operator", "math")


def function_place(function: Any) -> tuple[str, str]:
    """Return (module, name) of a function of torch, of Python or of ours that is found there, and is no other now.

    Raises NotPlain for the user's own, and for one that somebody has put in the place of torch's.
    """
    place = _PLACES.get(function)
    if place is None or _attribute(*place) is not function:
        place = _PLACES[function] = _found_place(function)
    return place


_PLACES: dict[Any, tuple[str, str]] = {}


def _found_place(function: Any) -> tuple[str, str]:
    name = getattr(function, "__name__", "")
    if isinstance(function, FunctionType) and not is_library_code(function):
        raise NotPlain(f"the function {function.__qualname__}, which neither torch nor plumbline defines")
    for module in (getattr(function, "__module__", None), *_HOMES):
        if module and _is_known(module) and _attribute(module, name) is function:
            return module, name
    raise NotPlain(f"the function {name}, which is in no known module")


def is_library_code(function: FunctionType) -> bool:
    """Return whether the code of a function is torch's or ours: its text is fixed by their versions."""
    return function.__code__.co_filename.startswith((_TORCH, _ROOT))


def _is_known(module: str) -> bool:
    return module.partition(".")[0] in ("torch", "math", "_operator", "builtins") or _is_ours(module)


def _attribute(module: str, name: str) -> object:
    return getattr(sys.modules.get(module), name, None)


def _function_of(module: str, name: str) -> Any:
    if module == "_operator":
        return getattr(operator, name)
    if not _is_known(module):
        raise NotPlain(f"the function {module}.{name}")
    return getattr(importlib.import_module(module), name)
