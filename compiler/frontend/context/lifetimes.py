"""Lifetimes: objects whose end the program can notice, because they have a finaliser or are weakly referenced.

An object of Python lives as long as a name of a running frame holds it, read again or not.  Compiled code drops what is
not read again, and what plain Python drops in the middle of a frame it would hold to the end of a segment.  Neither can
be noticed of most objects; of the others the frames keep their names, and a segment ends where a name is dropped.
"""

import types
import weakref
from collections.abc import Iterable

import torch

from ...values.reasons import UNSUPPORTED_OBJECT, Break
from ...values.source import Argument
from ...values.value import Value
from .lazy import LazyValue

_NEVER = (types.FunctionType, types.ModuleType, type)  # plumbline and Python hold weak references to these


def is_watched(value: Value) -> bool:
    """Return whether the program has a weak reference to the object of a value from outside, or it has a finaliser."""
    real = _real(value)
    return real is not None and (_has_finaliser(real) or bool(_references(real)))


def break_where_noticed(value: Value | None) -> None:
    """Break if a name lets go of an object whose end can be noticed: it has to be now.

    What was reached through something else, such as a module of a list, that holds on to it.
    """
    if value is not None and isinstance(value.source, Argument) and is_watched(value):
        kind = type(_real(value)).__name__
        raise Break(UNSUPPORTED_OBJECT, f"a name lets go of a {kind} object, whose end can be noticed")


def watched_by(operands: Iterable[Value]) -> frozenset[int]:
    """Return the ids of the operands of an operation that may make weak references to them."""
    values = [value.inner or value if isinstance(value, LazyValue) else value for value in operands]
    if not any(map(_refers_weakly, values)):
        return frozenset()
    return frozenset(map(id, values))


def _refers_weakly(value: Value) -> bool:
    """Return whether a value is something of the weakref module; it must not be asked, which could need more guards."""
    owner = getattr(value, "owner", None)  # of a bound method
    objects = [getattr(one, name, None) for one in (value, owner) for name in ("real", "kind", "value")]
    return any(_is_of_weakref(real) or _is_of_weakref(type(real)) for real in objects)


def _is_of_weakref(real: object) -> bool:
    return isinstance(real, type | types.FunctionType) and real.__module__ in ("weakref", "_weakref", "_weakrefset")


def _real(value: Value) -> object:
    """Return the object of a value from outside, None if it has none or its end is not watched."""
    if isinstance(value, LazyValue):
        real: object = value.raw
    else:
        real = getattr(value, "real", None) if value.source is not None else None
    return None if isinstance(real, _NEVER) else real


def _has_finaliser(real: object) -> bool:
    return hasattr(type(real), "__del__")


def _references(real: object) -> list["weakref.ref[object]"]:
    """Return the program's weak references to an object."""
    if not type(real).__weakrefoffset__:
        return []
    return [reference for reference in weakref.getweakrefs(real) if not _is_of_a_library(reference, real)]


def _is_of_a_library(reference: "weakref.ref[object]", real: object) -> bool:
    """Return whether torch or plumbline made a weak reference, as stock torch.compile does of every module.

    Keys of a WeakKeyDictionary do not tell whose it is: those of modules and tensors are taken for torch's.
    """
    callback = reference.__callback__
    makers = (type(reference).__module__, getattr(callback, "__module__", None) or "")
    if any(maker.startswith(("torch", "plumbline")) for maker in makers):
        return True
    return isinstance(real, torch.nn.Module | torch.Tensor) and makers[1] in ("weakref", "_weakrefset")
