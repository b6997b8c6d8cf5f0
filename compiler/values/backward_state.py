"""What the `backward` of an autograd function reads when it runs: neither its arguments nor what its `ctx` was given.

The program may change that after the forward. Its Python is searched for the names by which it reads.
"""

import enum
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import fx

from ..bytecode.instruction import Instruction, decode
from .guard import look_up

_DEEPEST = 3  # calls below `backward` that are searched
_PLAIN = (
    *(int, float, complex, str, bytes, type(None), type(...), enum.Enum),
    *(torch.dtype, torch.device, torch.memory_format, torch.layout),
)
_OF_LIBRARIES = frozenset({"torch", "numpy", *sys.stdlib_module_names}) - {"__main__"}
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")


@dataclass(frozen=True, slots=True, eq=False)
class ConstantRead:
    """A number, a text or the like that code reads from its module or its closure, and what it was.

    read: gives it now; raises KeyError or ValueError where it is gone.
    """

    name: str
    read: Callable[[], object]
    value: object

    def has_changed(self) -> bool:
        """Return whether it is another one now."""
        try:
            now = self.read()
        except (KeyError, ValueError):
            return True
        return now is not self.value and (type(now) is not type(self.value) or now != self.value)


@dataclass(frozen=True, slots=True)
class BackwardReads:
    """What a backward reads from outside.

    state: the name of what may change in any way; None if there is nothing such.  constants: plain values.
    attributes: all names of attributes in it.
    """

    state: str | None
    constants: tuple[ConstantRead, ...]
    attributes: frozenset[str] = frozenset()


LATER_READS: WeakKeyDictionary[fx.Graph, dict[ConstantRead, None]] = WeakKeyDictionary()
"""Graph -> the constants that the backwards of its functions read."""


def reads_of_backward(backward: Callable[..., Any]) -> BackwardReads:
    """Return what the backward of an autograd function reads, and the functions of its package it calls."""
    constants: dict[str, ConstantRead] = {}
    level, seen = [inspect.unwrap(backward)], set[types.CodeType]()
    if not isinstance(level[0], types.FunctionType):
        return BackwardReads("backward", ())
    package = _root(backward.__module__)
    for _ in range(_DEEPEST + 1):
        here = [one for one in level if _root(one.__module__) == package and one.__code__ not in seen]
        functions, level = here, []
        for function in functions:
            seen.add(function.__code__)
            for found in _read_by(function):
                if isinstance(found, types.FunctionType):
                    level.append(found)
                elif isinstance(found, str):
                    return BackwardReads(found, (), names_in(seen))
                else:
                    constants[f"{function.__qualname__} {found.name}"] = found
    return BackwardReads(None, tuple(constants.values()), names_in(seen))


def names_in(codes: Iterable[types.CodeType]) -> frozenset[str]:
    """Return the names of globals and attributes in code."""
    return frozenset(name for code in codes for name in code.co_names)


def _read_by(function: types.FunctionType) -> Iterator[types.FunctionType | ConstantRead | str]:
    """Give the functions that a function names, the constants that it reads, and the names of other state."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    code = [function.__code__, *(one for one in function.__code__.co_consts if isinstance(one, types.CodeType))]
    for instructions in (decode(one).instructions for one in code):
        for place, instruction in enumerate(instructions):
            name = str(instruction.value)
            if instruction.name == "LOAD_GLOBAL" and name in function.__globals__:
                read = partial(function.__globals__.__getitem__, name)
            elif instruction.name == "LOAD_DEREF" and name in cells:
                read = partial(getattr, cells[name], "cell_contents")
            else:
                continue
            yield from _found(name, read, instructions[place + 1 :])


def _found(
    name: str, read: Callable[[], Any], following: tuple[Instruction, ...] | list[Instruction]
) -> Iterator[types.FunctionType | ConstantRead | str]:
    """Give what a name stands for: attributes of modules and classes are looked up, what else has state is state."""
    try:
        value = read()
    except ValueError:  # a cell that is empty yet
        yield name
        return
    asked = str(following[0].value) if following and following[0].name in _ATTRIBUTES else None
    if isinstance(value, types.ModuleType):
        if asked is not None and not _is_of_library(value.__name__) and asked in vars(value):
            yield from _found(f"{name}.{asked}", partial(vars(value).__getitem__, asked), following[1:])
    elif isinstance(value, type):
        raw: Any = look_up(value, asked)[1] if asked is not None and not _is_of_library(value.__module__) else value
        if isinstance(raw, staticmethod | classmethod):
            raw = raw.__func__
        if isinstance(raw, types.FunctionType):
            yield inspect.unwrap(raw)
        elif not isinstance(raw, type | types.GetSetDescriptorType | property):
            yield f"{name}.{asked}"
    elif isinstance(value, types.FunctionType):
        yield inspect.unwrap(value)
    elif _is_plain(value):
        yield ConstantRead(name, read, value)
    elif not _is_stateless(value):
        yield name


def _is_plain(value: object) -> bool:
    """Return whether a value is a number, a text or the like, or a tuple of those."""
    return all(map(_is_plain, value)) if isinstance(value, tuple | frozenset) else isinstance(value, _PLAIN)


def _is_stateless(value: object) -> bool:
    """Return whether an object is a function in C or an operator: what it gives depends on its arguments alone."""
    if isinstance(value, torch.Tensor | torch.nn.Module):
        return False
    if isinstance(value, types.MethodType):
        return isinstance(value.__self__, type)
    return isinstance(value, types.BuiltinFunctionType) or (_is_of_library(type(value).__module__) and callable(value))


def _is_of_library(module: object) -> bool:
    return _root(module) in _OF_LIBRARIES


def _root(module: object) -> str:
    """Return the name of the outermost package of a module."""
    return str(module).partition(".")[0]
