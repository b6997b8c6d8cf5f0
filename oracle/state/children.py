"""What an object holds, each part with a path as a user would write it; nothing of the user's runs."""

import collections
import re
import threading
import types
import weakref
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from typing import Any

import torch

from .kinds import ATOMS, is_generated
from .plain_contents import entries_of, items_of
from .saved_library_objects import held_parts, library_parts

# Attributes that a compiler leaves on functions, modules and tensors; the program does not read them.
COMPILER_MARKS = (
    "_is_torch_compile",
    "_torchdynamo",
    "_dynamo",
    "__dynamo",
    "__compiled_fn",
    "__resume_at",
    "_plumbline",
)


_slot_names: dict[int, tuple["weakref.ref[type]", tuple[str, ...]]] = {}
"""By address, because a metaclass may hash and compare its classes as it likes; the reference says whether it holds."""


def slot_names(kind: type) -> tuple[str, ...]:
    """Return the names of the slots that instances of `kind` have, without `__dict__` and `__weakref__`."""
    known = _slot_names.get(id(kind))
    if known is None or known[0]() is not kind:
        known = _slot_names[id(kind)] = (weakref.ref(kind), tuple(_own_slots(kind)))
    return known[1]


def _own_slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                private = name.startswith("__") and not name.endswith("__")
                yield f"_{base.__name__.lstrip('_')}{name}" if private else name


def _hooks_of(tensor: torch.Tensor) -> Iterator[object]:
    """Yield the functions that a backward calls with a tensor's gradient; they are no fields of the tensor."""
    for hooks in (tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None)):
        yield from (hooks or {}).values()


def is_mark(name: object) -> bool:
    """Return whether an attribute, a global or an entry of this name or key was left by a compiler.

    Functions that a program allows in graphs are called with fake tensors, and note their classes.
    """
    if isinstance(name, str):
        return name.startswith(COMPILER_MARKS)
    return any(map(_is_of_tracing, name)) if type(name) is tuple else _is_of_tracing(name)


def _is_of_tracing(kind: object) -> bool:
    return isinstance(kind, type) and isinstance(kind.__module__, str) and kind.__module__.startswith(_TRACING)


_TRACING = "torch._subclasses."


def fields_of(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the instance attributes of an object, from its `__dict__` and its slots, without running user code."""
    for name, item in tuple((own_dict(value) or {}).items()):
        if not is_mark(name):
            yield name, item
    for name in slot_names(type(value)):
        try:
            yield name, object.__getattribute__(value, name)
        except AttributeError:
            continue


def own_dict(value: object) -> dict[str, Any] | None:
    """Return the `__dict__` of an object, whatever its class says when asked for an attribute; None without one."""
    own = threading.local if issubclass(type(value), threading.local) else object  # that of this thread
    if own is object and not type(value).__dictoffset__:
        return None  # most of what a walk meets: asking costs more than all else
    with suppress(AttributeError):
        fields = own.__getattribute__(value, "__dict__")
        if isinstance(fields, dict):
            return fields
    return None


_CACHES_OF_ENUM = ("_value2member_map_", "_unhashable_values_", "_hashable_values_")
"""Where flags keep the combinations that were asked for."""


def class_attributes(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the attributes a user class itself defines, without the dunders that every class has."""
    for name, value in list(vars(kind).items()):
        special = (name.startswith("__") and name.endswith("__")) or (
            name in _CACHES_OF_ENUM and issubclass(kind, Enum)
        )
        if not special and not isinstance(value, types.GetSetDescriptorType):
            yield name, value


def special_methods(kind: type) -> Iterator[tuple[str, types.FunctionType]]:
    """Yield the methods with a name of Python's that a user class defines: operators and statements call them."""
    for name, value in list(vars(kind).items()):
        method = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if name.startswith("__") and name.endswith("__") and isinstance(method, types.FunctionType):
            yield name, method


def children_of(path: str, kind: str, value: Any) -> Iterator[tuple[str, object]]:
    """Yield `(path, child)` for every object that this one holds; the state of an object, not what its code reads."""
    if kind == "tensor":
        if value.is_leaf and value.grad is not None:
            yield f"{path}.grad", value.grad
        yield from ((f"hook of {path}", hook) for hook in _hooks_of(value))
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value))
    elif kind in ("list", "tuple", "deque"):
        names = getattr(value, "_fields", None) if kind == "tuple" else None
        for index, child in enumerate(items_of(value)):
            yield (f"{path}.{names[index]}" if names else f"{path}[{index}]"), child
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value))
    elif kind == "dict":
        for key, child in entries_of(value):
            yield (f"{path}[{key!r}]" if _short(key) else f"{path}[...]"), child
        yield from ((f"key of {path}", key) for key in items_of(value) if not isinstance(key, ATOMS))
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value))
    elif kind == "weak":
        yield from ((f"{path}[{number}]", part) for number, part in enumerate(weak_parts(value)))
    elif kind == "set":
        yield from ((f"member of {path}", child) for child in items_of(value))
    elif kind == "method":
        yield path.rpartition(".")[0] or "self", value.__self__
        yield path, value.__func__
    elif kind == "partial":
        yield from ((path, value.func), (f"{path}.args", value.args), (f"{path}.keywords", value.keywords))
    elif kind == "cell":
        if _filled(value):
            yield path, value.cell_contents
    elif kind == "function":
        cells = () if is_generated(value) else value.__closure__ or ()
        yield from ((name, cell) for name, cell in zip(value.__code__.co_freevars if cells else (), cells, strict=True))
        yield from ((f"default of {path}", child) for child in value.__defaults__ or ())
        yield from ((f"default of {path}", child) for child in (value.__kwdefaults__ or {}).values())
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value) if name != "__wrapped__")
        if "__wrapped__" in vars(value):
            yield path, value.__wrapped__
    elif kind == "library":
        yield from held_parts(path, value)
    elif kind == "array":
        if value.dtype.hasobject and value.dtype.names is None:
            yield from ((f"{path}[{number}]", item) for number, item in enumerate(value.flat))
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value))
    elif kind == "memoryview":
        with suppress(ValueError):  # it is released
            yield f"{path}.obj", value.obj
    elif kind == "object":
        yield from _object_children(path, value)


def weak_parts(value: Any) -> list[object]:
    """Return the live members of a set of weak references; keys and values by turns of such a dictionary."""
    if isinstance(value, weakref.WeakSet):
        return list(value)
    return [part for item in list(value.items()) for part in item]


def _object_children(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield attributes; a module has parameters, buffers and children in dicts, a user writes `self.weight`."""
    if isinstance(value, torch.nn.Module):
        for table in ("_parameters", "_buffers", "_modules"):
            yield from ((f"{path}.{name}", child) for name, child in vars(value).get(table, {}).items())
    yield from _held_by_exception(path, value)
    for name, child in fields_of(value):
        yield f"{path}.{name}", child


def _held_by_exception(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield what an exception was made with, the text left out: no `except` clause reads it."""
    if isinstance(value, BaseException):
        yield from ((f"{path}.args[{n}]", part) for n, part in enumerate(value.args) if not isinstance(part, str))


def _form_of(view: memoryview) -> Iterator[tuple[str, object]]:
    """Yield how a view of memory shows it, and what it shows."""
    with suppress(ValueError):  # it is released
        yield "form", repr((view.format, view.shape, view.strides, view.readonly))
        yield "content", view.tobytes()


def _key_words(key: object, number: int) -> str:
    """Return how a description names a key.

    The text of a tensor has its numbers, which may round otherwise; that of most objects has their address, and each
    run may make objects of its own.
    """
    if isinstance(key, torch.Tensor):
        return f"tensor key {number}"
    text = repr(key)
    return f"{type(key).__name__} key {number}" if ADDRESS.search(text) else text


ADDRESS = re.compile(r" at 0x[0-9a-f]+", re.IGNORECASE)


def _short(key: object) -> bool:
    return isinstance(key, (str, int, bool, float, type(None)))


def _filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def shown_parts(path: str, value: Any) -> list[tuple[str, object]] | None:
    """Return `(path, part)` for what an object shows that no walk enters; None for one that shows nothing."""
    if type(value) in _VIEWS:
        return [(f"{path} item {number}", item) for number, item in enumerate(value)]
    if isinstance(value, types.MappingProxyType):
        return [(f"what {path} shows", dict(value))]
    if isinstance(value, re.Match):
        return [(f"what {path} has found", (value.re, value.string, value.regs))]
    if type(value) is weakref.ref:
        return [(f"{path}()", value())]
    if isinstance(value, torch.futures.Future) and value.done():
        return [(f"{path}.value()", value.value())]
    return None


def described_parts(path: str, kind: str, value: Any) -> list[tuple[str, object]]:
    """Return `(path, part)` for what a description says of an object; sets in an order by their values alone."""
    if kind == "set":
        return [(f"{path} member {number}", member) for number, member in enumerate(sorted(items_of(value), key=repr))]
    if kind == "dict":
        numbered = enumerate(entry for entry in entries_of(value) if not is_mark(entry[0]))
        entries = [(f"{path}[{_key_words(key, number)}]", child) for number, (key, child) in numbered]
        if isinstance(value, collections.defaultdict):
            entries.append((f"{path}.default_factory", value.default_factory))
        keys = (key for key in items_of(value) if isinstance(key, torch.Tensor))  # a text of one would round
        entries += [(f"tensor key {number} of {path}", key) for number, key in enumerate(keys)]
        return entries + [(f"{path}.{name}", child) for name, child in fields_of(value)]
    if kind in ("object", "class"):
        fields = class_attributes(value) if kind == "class" else fields_of(value)
        return [*_held_by_exception(path, value), *((f"{path}.{name}", child) for name, child in fields)]
    if kind == "memoryview":
        return [*children_of(path, kind, value), *((f"{name} of {path}", part) for name, part in _form_of(value))]
    if kind == "library":
        return library_parts(path, value)
    if kind == "array":
        return [*children_of(path, kind, value), (f"whether {path} may be written", bool(value.flags.writeable))]
    if kind == "buffer":
        return []
    if kind == "deque":
        return [*children_of(path, kind, value), (f"{path}.maxlen", value.maxlen)]
    return list(children_of(path, kind, value))
