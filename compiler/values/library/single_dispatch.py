"""`functools.singledispatch`: which implementation answers for a class is asked now and guarded."""

import functools
from collections.abc import Callable

from ..guard import Answer, GuardKind
from ..python.objects.classes import ClassValue
from ..reasons import ARGUMENT_NOT_KNOWN, UNKNOWN_CALLEE, Break
from ..rule_tables import CallRule
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Value

_DISPATCH = functools.singledispatch(len).dispatch.__code__


def dispatch_rule(function: object) -> CallRule | None:
    """Give the rule of `function.dispatch(cls)`, which looks into a registry and a cache with weak keys."""
    if getattr(function, "__code__", None) is not _DISPATCH:
        return None
    dispatch: Callable[[type], object] = function  # type: ignore[assignment]  # by its code

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        kind = ctx.realize(args[0])
        if not isinstance(kind, ClassValue):
            raise Break(ARGUMENT_NOT_KNOWN, f"dispatch on {kind.describe()}")
        try:
            implementation = dispatch(kind.kind)
        except Exception:  # two fit, or a class that was asked raises: what it says may be another thing next time
            raise Break(UNKNOWN_CALLEE, f"dispatch on {kind.describe()}, which raises") from None
        ctx.guards.add(Injected(dispatch), GuardKind.ANSWER, Answer((kind.kind,), {}, implementation))
        return ctx.wrap(implementation, Injected(implementation))

    return rule
