"""Functions of torch that stand in graphs whole: where a graph finds them by name, and what they find by name.

A test may replace them, or what they call of torch (`torch.relu` in `F.relu`).
"""

import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch

from ..guard import ABSENT, GuardKind, look_up
from ..python.objects.attributes import class_lookup
from ..source import Injected, Item
from ..value import CaptureContext

_CALLED = (types.FunctionType, types.BuiltinFunctionType)


@dataclass(frozen=True, slots=True)
class Found:
    """What a name in a namespace, or of the class of tensors where that is None, held when torch was loaded."""

    namespace: dict[str, Any] | None
    name: str
    original: object

    def is_original(self) -> bool:
        """Return whether it is still there."""
        if self.namespace is None:
            return look_up(torch.Tensor, self.name)[1] is self.original
        return self.namespace.get(self.name) is self.original

    def guard(self, ctx: CaptureContext) -> None:
        """Demand that it is still there."""
        if self.namespace is None:
            class_lookup(torch.Tensor, self.name)
        else:
            ctx.guards.add(Item(Injected(self.namespace), self.name), GuardKind.IDENTITY, self.original)


def places_of(functions: Iterable[object]) -> dict[int, tuple[Found, ...]]:
    """Return for each function where the text of a graph may find it."""
    modules = (torch, torch.functional, torch.nn.functional)
    places: dict[int, tuple[Found, ...]] = {}
    for function in functions:
        name = getattr(function, "__name__", "")
        spaces = [vars(module) for module in modules if vars(module).get(name) is function]
        places[id(function)] = tuple(Found(space, name, function) for space in spaces)
    return places


def what_is_found(functions: Iterable[object]) -> dict[int, tuple[Found, ...]]:
    """Return for each function written in Python the functions of torch that its code may find by name."""
    listed = list(functions)
    known = {id(function) for function in listed}
    return {
        id(function): tuple(_found_by(function, known))
        for function in listed
        if isinstance(function, types.FunctionType)
    }


def _found_by(function: types.FunctionType, known: set[int]) -> Iterable[Found]:
    for name in function.__code__.co_names:
        if name.startswith("has_torch_function"):  # asks for classes of tensors that are none of torch's
            continue
        for namespace in (function.__globals__, vars(torch)):
            called = namespace.get(name)
            if isinstance(called, _CALLED) and id(called) in known and called is not function:
                yield Found(namespace, name, called)
        method = look_up(torch.Tensor, name)[1]
        if method is not ABSENT:
            yield Found(None, name, method)
