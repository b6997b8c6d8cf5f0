"""Families and units that several `compile()` calls share, and how long they live.

One code object under one backend and the same settings has one unit, whichever call of `compile` asks for it: six
blocks of one class are captured once, where the guards allow it. A unit lives as long as a compiled form of it does;
of the last forms also as long as what was compiled does, so that `compile(f)(x)` in a loop captures once. Nothing
here holds what was compiled: when it goes, its units go.
"""

import types
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any
from weakref import ReferenceType, WeakValueDictionary, ref

import torch

from ...base.locks import ForkedLock
from .unit import Family, Unit

_MOST_KEPT = 64
_FAMILIES: WeakValueDictionary[Hashable, Family] = WeakValueDictionary()
_KEPT: OrderedDict[tuple[int, int], tuple[ReferenceType[Any], Unit]] = OrderedDict()  # by ids of owner and unit
_LOCK = ForkedLock()


def shared_family(key: Hashable, make: Callable[[], Family]) -> Family:
    """Return the family of a key, made if there is none; a key that cannot be hashed is nobody else's."""
    try:
        hash(key)
    except TypeError:
        return make()
    with _LOCK:
        family = _FAMILIES.get(key)
        if family is None:
            family = _FAMILIES[key] = make()
        return family


def keep_unit(target: object, family: Family) -> None:
    """Keep the unit of what was compiled while that lives, and let it have as many forms more as one may have."""
    function = _function_of(target)
    if function is None:
        return
    try:
        unit = family.unit_of(function)
    except Exception:  # the first call meets the same error, and puts it on record
        return
    unit.allow_more_forms()
    owner = target if isinstance(target, torch.nn.Module) else function
    key = (id(owner), id(unit))

    def forget(_: object) -> None:
        _KEPT.pop(key, None)

    _KEPT[key] = (ref(owner, forget), unit)
    _KEPT.move_to_end(key)
    while len(_KEPT) > _MOST_KEPT:
        _KEPT.popitem(last=False)


def forget_units() -> None:
    """Let go of every unit that no compiled form holds; later calls of `compile` find none of those before."""
    _KEPT.clear()
    _FAMILIES.clear()


def _function_of(target: object) -> types.FunctionType | None:
    """Return the function that a compiled form of the target runs first."""
    function: Any = target.forward if isinstance(target, torch.nn.Module) else target
    function = getattr(function, "__func__", function)
    return function if isinstance(function, types.FunctionType) else None
