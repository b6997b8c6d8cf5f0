"""`functools.lru_cache`: the cached answer for known arguments is part of the specialisation."""

import functools
import logging

from .classes import ClassValue
from .constant import Constant, Known
from .functions import FunctionValue
from .guard import Answer, Kind
from .objects import ObjectValue, OpaqueValue
from .reasons import UNKNOWN_CALLEE, Break
from .source import Injected, Source
from .value import Arguments, CaptureContext, Keywords, Value
from .wrap import wraps_type


class CachedFunctionValue(Value):
    """A function under `lru_cache`.

    Called with known arguments it is called for real, and again by a guard in every call of the compiled code: so does
    eager, which finds the answer in the cache, or after `cache_clear` computes it anew. Tensors as arguments break,
    because the cache goes by their identity.
    """

    def __init__(self, real: "functools._lru_cache_wrapper[object]", source: Source) -> None:
        self.real = real
        self.source = source

    def python_type(self) -> type:
        """Return the wrapper's type."""
        return type(self.real)

    def describe(self) -> str:
        """Return the function's name."""
        return f"cached function {getattr(self.real, '__qualname__', '')}"

    def identity(self) -> object:
        """Return the wrapper."""
        return self.real

    def truth(self, ctx: CaptureContext) -> bool:
        """Functions are true."""
        return True

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the wrapped function and the names."""
        if name in ("__wrapped__", "__name__", "__qualname__", "__module__", "__doc__"):
            return ctx.known(getattr(self.real, name))
        self.no(f"attribute {name!r}")

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Call the cached function now."""
        known = [_real_argument(ctx, arg) for arg in args]
        named = {name: _real_argument(ctx, value) for name, value in kwargs.items()}
        try:
            answer = self.real(*known, **named)
        except Exception:
            raise Break(UNKNOWN_CALLEE, f"{self.describe()}, which raises") from None
        ctx.guard(Injected(self.real), Kind.ANSWER, Answer(tuple(known), named, answer))
        if isinstance(answer, list | dict | set):
            return ctx.wrap(answer, Injected(answer))
        return ctx.known(answer)


def _real_argument(ctx: CaptureContext, value: Value) -> object:
    value = ctx.real(value)
    if isinstance(value, Constant | Known | ClassValue):
        return value.constant()
    if isinstance(value, FunctionValue) and value.real is not None:
        return value.real
    if isinstance(value, ObjectValue | OpaqueValue) and isinstance(value.real, logging.Logger):
        return value.real
    if value.is_constant():
        return value.constant()
    raise Break(UNKNOWN_CALLEE, f"a cached function called with {value.describe()}")


@wraps_type(functools._lru_cache_wrapper)
def _cached(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, functools._lru_cache_wrapper)
    if not isinstance(source, Injected):
        ctx.guard(source, Kind.IDENTITY, value)
    return CachedFunctionValue(value, source)
