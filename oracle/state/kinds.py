"""Kinds of objects, as far as a walk over them and a description of them go: what is entered, and what is not."""

import array
import ast
import collections
import datetime
import decimal
import enum
import functools
import io
import itertools
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
from typing import cast

import numpy
import torch

from .saved_library_objects import LIBRARY_CLASSES

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
    decimal.Decimal,
    datetime.date,
    datetime.time,
    datetime.timedelta,
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
    threading.Thread,
    weakref.ReferenceType,
    types.MappingProxyType,
    logging.Handler,
)


WEAK = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
OPENED = (threading.local, *WEAK)
"""Of the standard library, and with state of the program's: attributes of this thread, objects held weakly."""


CLOSED_PACKAGES = frozenset({"_pytest", "pytest", "pluggy", "xdist", "plumbline", "_io", "_thread", "ctypes"})


CLOSED_MODULES = frozenset({"unittest.case", "unittest.result", "unittest.runner", "unittest.suite"}) | {
    "torch._ops",  # operators keep what they have looked up
    "torch._library.custom_ops",
}


# Packages whose functions read no state of the user's: their globals and classes are not searched.
# What torch requires is what compilers use: their locks, caches and templates are no state of a program.
REQUIRED_BY_TORCH = frozenset({"filelock", "fsspec", "jinja2", "networkx", "sympy"})
LIBRARIES = (
    CLOSED_PACKAGES
    | REQUIRED_BY_TORCH
    | {"unittest", "torch", "numpy", "scipy", "transformers", "pandas", "hypothesis"}
)


# These cannot be set back once they have advanced; a reference run would consume the caller's data.
FORWARD_ONLY = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType, io.IOBase, socket.socket)


_STANDARD_LIBRARY = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})


_SITE = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


def is_generated(function: types.FunctionType) -> bool:
    """Return whether a compiler of ours wrote a function: what it counts and keeps is nothing of the program's."""
    return function.__code__.co_filename.startswith("<plumbline ")


def is_library_file(filename: str) -> bool:
    """Return whether code from this file belongs to the standard library or a package known to hold no user state."""
    if filename.startswith("<"):  # any other name may be that of a text which the user has compiled
        generated = ("<frozen ", "<attrs generated ", "<__array_function__ internals>", "<plumbline ")
        return filename.startswith(generated)
    for site in _SITE:
        if filename.startswith(site):
            return filename[len(site) :].lstrip("/\\").split("/")[0].split("\\")[0] in LIBRARIES
    return filename.startswith(_STANDARD_LIBRARY)


def home_of(thing: object) -> str:
    """Return the name of the module that a class or function says it is from; "" where it says nothing of the kind.

    Classes written in C may have anything in that place, such as a descriptor for their instances.
    """
    name = getattr(thing, "__module__", None)
    return name if isinstance(name, str) else ""


def is_library_module(name: object) -> bool:
    """Return whether a module of this name is the standard library or a package known to hold no user state."""
    root = name.split(".")[0] if isinstance(name, str) else ""
    return root in LIBRARIES or (root in sys.stdlib_module_names and root != "__main__")


def is_library_class(cls: type) -> bool:
    """Return whether a class is a library's; one that a library makes for an object of the program's is that object's.

    A parametrised module has such a class, with a property for each parametrised tensor.
    """
    home, name = (vars(type)[word].__get__(cls) for word in ("__module__", "__name__"))
    return is_library_module(home) and not (home in _MAKE_CLASSES and name not in vars(sys.modules[home]))


_MAKE_CLASSES = frozenset({"torch.nn.utils.parametrize"})


def kind_of(value: object) -> str:
    """Return how this object is walked, as a word: atom, tensor, list, dict, ..., object, closed.

    Its type decides, never its `__class__`, which may be code of the user's.
    """
    cls = type(value)
    if issubclass(cls, ATOMS):
        return "atom"
    if issubclass(cls, torch.Tensor):
        return "tensor"
    if issubclass(cls, OPENED):
        return "weak" if issubclass(cls, WEAK) else "object"
    if issubclass(cls, LIBRARY_CLASSES):
        return "library" if not _is_standard_stream(value) and not _is_a_runners(cls) else "closed"
    module = home_of(cls)
    if issubclass(cls, CLOSED) or module.split(".")[0] in CLOSED_PACKAGES or module in CLOSED_MODULES:
        return "forward-only" if issubclass(cls, FORWARD_ONLY) and not _is_standard_stream(value) else "closed"
    if issubclass(cls, FORWARD_ONLY) or _is_iterator(value):
        return "forward-only"
    for kind, classes in _CONTAINERS:
        if issubclass(cls, classes):
            return kind
    if issubclass(cls, type):
        return "atom" if is_library_class(cast("type", value)) else "class"
    return "object" if _has_fields(value) else "closed"


_CONTAINERS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("list", (list,)),
    ("dict", (dict,)),
    ("tuple", (tuple,)),
    ("set", (set, frozenset)),
    ("deque", (collections.deque,)),
    ("buffer", (bytearray, array.array)),
    ("array", (numpy.ndarray,)),
    ("memoryview", (memoryview,)),
    ("function", (types.FunctionType,)),
    ("method", (types.MethodType,)),
    ("partial", (functools.partial,)),
    ("cell", (types.CellType,)),
    ("storage", (torch.UntypedStorage, torch.TypedStorage)),
    ("generator", (torch.Generator, random.Random, numpy.random.Generator, numpy.random.RandomState)),
)


_COUNT_OF_NUMBERS = re.compile(r"count\((?P<numbers>-?[\d.]+(, -?[\d.]+)?)\)")


def _is_a_runners(cls: type) -> bool:
    """Return whether this is a class of the test runner's, such as a handler that collects records for it."""
    return home_of(cls).split(".")[0] in CLOSED_PACKAGES - {"_io", "_thread", "ctypes"}


def _is_standard_stream(value: object) -> bool:
    streams = (sys.stdin, sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__, sys.__stdin__)
    return any(value is stream for stream in streams)


def _is_iterator(value: object) -> bool:
    """Return whether this is a built-in iterator: an exhausted one cannot be set back."""
    kind = type(value)
    return kind.__module__ in ("builtins", "itertools") and hasattr(kind, "__next__")


def place_of_count(value: object) -> str | None:
    """Return what an `itertools.count` of plain numbers says of itself, which tells its place; None for all else."""
    if type(value) is not itertools.count:
        return None
    said = repr(value)
    return said if _COUNT_OF_NUMBERS.fullmatch(said) else None


def count_from(place: str) -> object:
    """Return a new count that says this of itself."""
    found = _COUNT_OF_NUMBERS.fullmatch(place)
    assert found is not None
    return itertools.count(*(ast.literal_eval(number) for number in found["numbers"].split(", ")))


def _has_fields(value: object) -> bool:
    return hasattr(value, "__dict__") or any("__slots__" in vars(base) for base in type(value).__mro__)
