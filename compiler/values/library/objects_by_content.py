"""Objects that Python makes anew all the time and nobody can change: they are guarded by what they hold."""

import re
import types
import typing
from collections.abc import Hashable

import torch

from ..constant import Constant, Known
from ..guard import GuardKind
from ..identities import is_same
from ..operator_table import Comparison
from ..rule_tables import wraps_type
from ..source import Attribute, Injected, Source
from ..value import CaptureContext, Value


class KnownByContent(Known):
    """An object from outside of which the content is guarded, the identity only where the program asks for it."""

    def guard_identity(self, ctx: CaptureContext) -> None:
        """Demand this object."""
        if self.source is not None:
            ctx.guards.add(self.source, GuardKind.IDENTITY, self.value)

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Return the object; one that hashes by its identity has to be the same."""
        if type(self.value).__hash__ is object.__hash__:
            self.guard_identity(ctx)
        return self.value

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare by identity what has no comparison of its own."""
        if not record.asks_equality or type(self.value).__eq__ is not object.__eq__:
            return None
        return Constant(is_same(ctx, self, other) == (record.symbol == "=="))


@wraps_type(torch.finfo, torch.iinfo)
def _limits(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, torch.finfo | torch.iinfo)
    return (
        _by_identity(ctx, value, source) if isinstance(source, Injected) else _by_content(ctx, value, source, "dtype")
    )


@wraps_type(re.Match)
def _match(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, re.Match)
    if isinstance(source, Injected) or type(value.string) not in (str, bytes):
        return _by_identity(ctx, value, source)
    ctx.guards.add(Attribute(source, "re"), GuardKind.IDENTITY, value.re)
    return _by_content(ctx, value, source, "string", "regs", "pos", "endpos", "lastindex")


@wraps_type(types.GenericAlias, types.UnionType)
def _alias(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, types.GenericAlias | types.UnionType)
    if isinstance(source, Injected) or not all(map(_is_fixed, value.__args__)):
        return _by_identity(ctx, value, source)
    if isinstance(value, types.GenericAlias):
        ctx.guards.add(Attribute(source, "__origin__"), GuardKind.IDENTITY, value.__origin__)
        ctx.guards.add(Attribute(source, "__unpacked__"), GuardKind.EQUALS, value.__unpacked__)
    for argument in ctx.unpack(ctx.wrap(value.__args__, Attribute(source, "__args__"))):
        ctx.realize(argument)
    return _by_content(ctx, value, source)


def _is_fixed(argument: object) -> bool:
    """Return whether wrapping an argument of an alias guards all of it."""
    if isinstance(argument, types.GenericAlias | types.UnionType):
        return all(map(_is_fixed, argument.__args__))
    return isinstance(argument, type) or type(argument) in (str, type(None), type(Ellipsis), typing.TypeVar)


def _by_content(ctx: CaptureContext, value: object, source: Source, *names: str) -> Value:
    ctx.guards.add(source, GuardKind.TYPE, type(value))
    for name in names:
        ctx.guards.add(Attribute(source, name), GuardKind.EQUALS, getattr(value, name))
    return KnownByContent(value, source)


def _by_identity(ctx: CaptureContext, value: object, source: Source) -> Value:
    ctx.guards.add(source, GuardKind.IDENTITY, value)
    return Known(value, source)
