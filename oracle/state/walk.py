"""What a call can reach: a walk over Python objects from named roots, each once, with a path as a user would write it.

The walk knows kinds of objects, not their use: snapshots rewind what it visits, records describe it.
"""

import array
import collections
import dis
import enum
import functools
import io
import logging
import pathlib
import random
import re
import socket
import sys
import sysconfig
import threading
import types
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import torch

LARGEST_WALK = 60_000
"""Objects visited at most; the state of a test is far smaller, an application object it refers to may not be."""

ATOMS = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    slice,
    type(Ellipsis),
    type(NotImplemented),
    torch.dtype,
    torch.device,
    torch.Size,
    torch.layout,
    torch.memory_format,
    numpy.dtype,
    numpy.generic,
    enum.Enum,
    re.Pattern,
    pathlib.PurePath,
    types.BuiltinFunctionType,
    types.CodeType,
    property,
    staticmethod,
    classmethod,
    types.MethodWrapperType,
    types.WrapperDescriptorType,
    types.MethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.GenericAlias,
)

# Never entered: programs do not compute with these, or they belong to the test runner.
CLOSED = (
    types.ModuleType,
    types.FrameType,
    types.TracebackType,
    logging.Logger,
    logging.Handler,
    threading.Thread,
    type(threading.Lock()),
    type(threading.RLock()),
    threading.local,
    threading.Event,
    weakref.ReferenceType,
    weakref.WeakKeyDictionary,
    weakref.WeakValueDictionary,
    weakref.WeakSet,
    types.MappingProxyType,
)
CLOSED_PACKAGES = frozenset({"_pytest", "pytest", "pluggy", "xdist", "plumbline", "_io", "_thread", "ctypes"})
CLOSED_MODULES = frozenset({"unittest.case", "unittest.result", "unittest.runner", "unittest.suite"})
# Attributes that a compiler leaves on functions, modules and tensors; the program does not read them.
COMPILER_MARKS = ("_is_torch_compile", "_torchdynamo", "_dynamo", "__compiled_fn", "__resume_at", "_plumbline")

# Packages whose functions read no state of the user's: their globals and classes are not searched.
LIBRARIES = CLOSED_PACKAGES | {"unittest", "torch", "numpy", "scipy", "sympy", "transformers", "pandas", "hypothesis"}

# These cannot be set back once they have advanced; a reference run would consume the caller's data.
FORWARD_ONLY = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, io.IOBase, socket.socket)

_STANDARD_LIBRARY = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_SITE = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


@dataclass(frozen=True, slots=True)
class Visit:
    """One object the call can reach.

    path: as the user would write it (`x`, `self.cache[0]`).  kind: one of the words of `kind_of`.
    """

    path: str
    kind: str
    value: Any


@dataclass(frozen=True, slots=True)
class Binding:
    """A name in a module's globals that reached code reads or writes; `present` is False for a name not bound yet."""

    path: str
    namespace: dict[str, Any]
    name: str


@dataclass(frozen=True, slots=True)
class Walk:
    """Everything reached from the roots, in the order of the visit.

    bindings: global names that may be rebound.  forward_only: paths of objects that cannot be rewound.
    truncated: the walk hit its limit.
    """

    visits: tuple[Visit, ...]
    bindings: tuple[Binding, ...]
    forward_only: tuple[str, ...]
    truncated: bool


def is_library_file(filename: str) -> bool:
    """Return whether code from this file belongs to the standard library or a package known to hold no user state."""
    if filename.startswith("<"):
        return filename != "<stdin>" and not filename.startswith(("<string", "<ipython", "<doctest"))
    for site in _SITE:
        if filename.startswith(site):
            return filename[len(site) :].lstrip("/\\").split("/")[0].split("\\")[0] in LIBRARIES
    return filename.startswith(_STANDARD_LIBRARY)


def is_library_module(name: str | None) -> bool:
    """Return whether a module of this name is the standard library or a package known to hold no user state."""
    root = (name or "").split(".")[0]
    return root in LIBRARIES or (root in sys.stdlib_module_names and root != "__main__")


def kind_of(value: object) -> str:
    """Return how this object is walked, as a word: atom, tensor, list, dict, ..., object, closed."""
    if isinstance(value, ATOMS):
        return "atom"
    if isinstance(value, torch.Tensor):
        return "tensor"
    module = type(value).__module__
    if isinstance(value, CLOSED) or module.split(".")[0] in CLOSED_PACKAGES or module in CLOSED_MODULES:
        return "forward-only" if isinstance(value, FORWARD_ONLY) and not _is_standard_stream(value) else "closed"
    if isinstance(value, FORWARD_ONLY) or _is_iterator(value):
        return "forward-only"
    for kind, classes in _CONTAINERS:
        if isinstance(value, classes):
            return kind
    if isinstance(value, type):
        return "atom" if is_library_module(value.__module__) else "class"
    return "object" if _has_fields(value) else "closed"


_CONTAINERS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("list", (list,)),
    ("dict", (dict,)),
    ("tuple", (tuple,)),
    ("set", (set, frozenset)),
    ("deque", (collections.deque,)),
    ("buffer", (bytearray, array.array)),
    ("array", (numpy.ndarray,)),
    ("function", (types.FunctionType,)),
    ("method", (types.MethodType,)),
    ("partial", (functools.partial,)),
    ("cell", (types.CellType,)),
    ("generator", (torch.Generator, random.Random, numpy.random.Generator, numpy.random.RandomState)),
)


def _is_standard_stream(value: object) -> bool:
    return value in (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__, sys.__stdin__)


def _is_iterator(value: object) -> bool:
    """Return whether this is a built-in iterator: an exhausted one cannot be set back."""
    kind = type(value)
    return kind.__module__ in ("builtins", "itertools") and hasattr(kind, "__next__")


def _has_fields(value: object) -> bool:
    return hasattr(value, "__dict__") or any("__slots__" in vars(base) for base in type(value).__mro__)


def slot_names(kind: type) -> Iterator[str]:
    """Yield the names of the slots that instances of `kind` have, without `__dict__` and `__weakref__`."""
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                private = name.startswith("__") and not name.endswith("__")
                yield f"_{base.__name__.lstrip('_')}{name}" if private else name


def is_mark(name: object) -> bool:
    """Return whether an attribute or global of this name was left by a compiler."""
    return isinstance(name, str) and name.startswith(COMPILER_MARKS)


def fields_of(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the instance attributes of an object, from its `__dict__` and its slots, without running user code."""
    for name, item in getattr(value, "__dict__", {}).copy().items():
        if not is_mark(name):
            yield name, item
    for name in slot_names(type(value)):
        try:
            yield name, object.__getattribute__(value, name)
        except AttributeError:
            continue


def class_attributes(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the attributes a user class itself defines, without the dunders that every class has."""
    for name, value in list(vars(kind).items()):
        if not (name.startswith("__") and name.endswith("__")) and not isinstance(value, types.GetSetDescriptorType):
            yield name, value


@functools.lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> frozenset[str]:
    """Return every global or attribute name that this code, or code nested in it, mentions."""
    nested = (names_in(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*nested)


class _Walker:
    """Depth-first, each object once; a class because a visit needs the state of the whole walk."""

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.bindings: dict[tuple[int, str], Binding] = {}
        self.forward_only: list[str] = []
        self.seen: set[int] = set()
        self.alive: list[object] = []  # temporary objects (bound methods) must stay alive: ids would be reused
        self.truncated = False

    def walk(self, roots: Mapping[str, object]) -> Walk:
        stack = [(path, value) for path, value in reversed(list(roots.items()))]
        while stack:
            path, value = stack.pop()
            if id(value) in self.seen:
                continue
            if len(self.visits) >= LARGEST_WALK:
                self.truncated = True
                break
            kind = kind_of(value)
            if kind in ("atom", "closed"):
                continue
            self.seen.add(id(value))
            self.alive.append(value)
            if kind == "forward-only":
                self.forward_only.append(path)
                continue
            self.visits.append(Visit(path, kind, value))
            stack.extend(reversed(list(self.children(path, kind, value))))
        return Walk(tuple(self.visits), tuple(self.bindings.values()), tuple(self.forward_only), self.truncated)

    def children(self, path: str, kind: str, value: Any) -> Iterator[tuple[str, object]]:
        if kind == "function":
            yield from self.function(path, value)
        elif kind == "class":
            yield from ((f"{path}.{name}", member) for name, member in class_attributes(value))
            yield from ((f"{path}.{name}", _unwrapped(member)) for name, member in class_attributes(value))
        elif kind == "object" or isinstance(value, torch.nn.Module):
            yield from children_of(path, kind, value)
            yield from self.class_of(value)
        else:
            yield from children_of(path, kind, value)

    def class_of(self, value: object) -> Iterator[tuple[str, object]]:
        """Yield the user classes of an instance: attributes are read through it, and methods run on it."""
        for base in type(value).__mro__:
            if not is_library_module(base.__module__):
                yield base.__name__, base

    def function(self, path: str, function: types.FunctionType) -> Iterator[tuple[str, object]]:
        yield from children_of(path, "function", function)
        code = function.__code__
        if is_library_file(code.co_filename) or is_library_module(function.__globals__.get("__name__")):
            return
        names = names_in(code)
        for name in sorted(names & function.__globals__.keys()):
            value = function.__globals__[name]
            if not isinstance(value, types.ModuleType):
                self.bind(name, function.__globals__, name)
                yield name, value
            elif not is_library_module(value.__name__) and not is_library_file(getattr(value, "__file__", None) or "<"):
                for attribute in sorted(names & vars(value).keys()):
                    self.bind(f"{name}.{attribute}", vars(value), attribute)
                    yield f"{name}.{attribute}", vars(value)[attribute]
        for name in sorted(_stored_globals(code) - function.__globals__.keys()):
            self.bind(name, function.__globals__, name)

    def bind(self, path: str, namespace: dict[str, Any], name: str) -> None:
        self.bindings.setdefault((id(namespace), name), Binding(path, namespace, name))


def _unwrapped(member: object) -> object:
    if isinstance(member, (staticmethod, classmethod)):
        return member.__func__
    return member.fget if isinstance(member, property) else member


_REBINDING = frozenset({dis.opmap["STORE_GLOBAL"], dis.opmap["DELETE_GLOBAL"]})


@functools.lru_cache(maxsize=4096)
def _stored_globals(code: types.CodeType) -> frozenset[str]:
    own: set[str] = set()
    if not _REBINDING.isdisjoint(code.co_code[::2]):  # the bytes first: decoding costs more than most tests
        own = {str(i.argval) for i in dis.get_instructions(code) if i.opcode in _REBINDING}
    nested = (_stored_globals(constant) for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(own).union(*nested)


def children_of(path: str, kind: str, value: Any) -> Iterator[tuple[str, object]]:
    """Yield `(path, child)` for every object that this one holds; the state of an object, not what its code reads."""
    if kind == "tensor":
        if value.is_leaf and value.grad is not None:
            yield f"{path}.grad", value.grad
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value))
    elif kind in ("list", "tuple", "deque"):
        names = getattr(value, "_fields", None) if kind == "tuple" else None
        for index, child in enumerate(list(value)):
            yield (f"{path}.{names[index]}" if names else f"{path}[{index}]"), child
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value) if kind != "tuple" or not names)
    elif kind == "dict":
        for key, child in list(value.items()):
            yield (f"{path}[{key!r}]" if _short(key) else f"{path}[...]"), child
        yield from ((f"key of {path}", key) for key in list(value) if not isinstance(key, ATOMS))
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value))
    elif kind == "set":
        yield from ((f"member of {path}", child) for child in value)
    elif kind == "method":
        yield path.rpartition(".")[0] or "self", value.__self__
        yield path, value.__func__
    elif kind == "partial":
        yield from ((path, value.func), (f"{path}.args", value.args), (f"{path}.keywords", value.keywords))
    elif kind == "cell":
        if _filled(value):
            yield path, value.cell_contents
    elif kind == "function":
        cells = value.__closure__ or ()
        yield from ((name, cell) for name, cell in zip(value.__code__.co_freevars, cells, strict=True))
        yield from ((f"default of {path}", child) for child in value.__defaults__ or ())
        yield from ((f"default of {path}", child) for child in (value.__kwdefaults__ or {}).values())
        yield from ((f"{path}.{name}", child) for name, child in fields_of(value) if name != "__wrapped__")
        if "__wrapped__" in vars(value):
            yield path, value.__wrapped__
    elif kind == "object":
        yield from _object_children(path, value)


def _object_children(path: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield attributes; a module has parameters, buffers and children in dicts, a user writes `self.weight`."""
    if isinstance(value, torch.nn.Module):
        for table in ("_parameters", "_buffers", "_modules"):
            yield from ((f"{path}.{name}", child) for name, child in vars(value).get(table, {}).items())
    for name, child in fields_of(value):
        yield f"{path}.{name}", child


def _short(key: object) -> bool:
    return isinstance(key, (str, int, bool, float, type(None)))


def _filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def walk(roots: Mapping[str, object]) -> Walk:
    """Visit everything the roots reach; `roots` maps the path of a root to the object."""
    return _Walker().walk(roots)
