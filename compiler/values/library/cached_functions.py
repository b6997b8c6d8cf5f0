"""`functools.lru_cache`: the cached answer for known arguments is part of the specialisation."""

import functools
import logging
from collections.abc import Hashable

from ..constant import Constant, Known
from ..guard import Answer, GuardKind
from ..python.containers.mappings import DictValue
from ..python.objects.classes import ClassValue, constructs
from ..python.objects.functions import FunctionValue
from ..python.objects.instances import ObjectValue, OpaqueValue
from ..reasons import ARGUMENT_NOT_KNOWN, ATTRIBUTE, BUILTIN_METHOD, CANNOT_REBUILD, UNKNOWN_CALLEE, Break
from ..rule_tables import wraps_type
from ..source import Injected, Source
from ..type_attributes import type_attribute
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value


class CachedFunctionValue(Value):
    """A function under `lru_cache`.

    Called with known arguments it is called for real, and again by a guard in every call of the compiled code: so does
    eager, which finds the answer in the cache, or after `cache_clear` computes it again. Tensors as arguments break,
    because the cache goes by their identity.
    """

    always_true = True

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

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the wrapped function and the names."""
        if name in ("__wrapped__", "__name__", "__qualname__", "__module__", "__doc__"):
            return ctx.known(getattr(self.real, name))
        self.unsupported(f"attribute {name!r}", ATTRIBUTE)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Call the cached function now."""
        known = [_real_argument(ctx, arg) for arg in args]
        named = {name: _real_argument(ctx, value) for name, value in kwargs.items()}
        try:
            answer = self.real(*known, **named)
        except Exception:
            raise Break(UNKNOWN_CALLEE, f"{self.describe()}, which raises") from None
        ctx.guards.add(Injected(self.real), GuardKind.ANSWER, Answer(tuple(known), named, answer))
        if isinstance(answer, list | dict | set):
            return ctx.wrap(answer, Injected(answer))
        return ctx.known(answer)


class MadeCache(Value):
    """A function that was put under `lru_cache` while capturing: its cache starts empty and is kept here."""

    always_true = True

    def __init__(self, function: Value, maximum: int | None, typed: bool) -> None:
        self.function = function
        self.maximum = maximum
        self.typed = typed
        self.answers: dict[Hashable, Value] = {}  # the least recently used first
        self.hits = self.misses = 0
        self.attributes: dict[str, Value] = {}

    def python_type(self) -> type:
        """Return the wrapper's type."""
        return functools._lru_cache_wrapper

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Give the cached answer, or call the function."""
        key = self._key(ctx, args, kwargs)
        answer = self.answers.pop(key, None)
        self.hits, self.misses = self.hits + (answer is not None), self.misses + (answer is None)
        if answer is None:
            answer = ctx.call(self.function, args, kwargs)
        if self.maximum != 0:
            self.answers[key] = answer
        if self.maximum is not None and len(self.answers) > self.maximum:
            del self.answers[next(iter(self.answers))]
        return answer

    def _key(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Hashable:
        reals = [ctx.realize(arg) for arg in args]
        named = [(name, ctx.realize(value)) for name, value in kwargs.items()]
        if len(reals) == 1 and not named and not self.typed and reals[0].python_type() in (int, str):
            return reals[0].hash_token(ctx)
        kinds = tuple(value.python_type() for value in (*reals, *(value for _, value in named))) if self.typed else ()
        tokens = tuple(value.hash_token(ctx) for value in reals)
        return ("call", tokens, tuple((name, value.hash_token(ctx)) for name, value in named), kinds)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Keep an attribute."""
        self.attributes[name] = value

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the attributes set on it, and the methods of caches."""
        if name in self.attributes:
            return ctx.realize(self.attributes[name])
        if name == "__dict__":
            return DictValue.of(ctx, [(Constant(key), value) for key, value in self.attributes.items()])
        return type_attribute(ctx, self, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the methods of caches."""
        if name == "cache_info":
            known = functools._CacheInfo(self.hits, self.misses, self.maximum, len(self.answers))
            return ctx.known(known)
        if name == "cache_clear":
            self.answers.clear()
            self.hits = self.misses = 0
            return Constant(None)
        if name == "__call__":
            return self.call(ctx, args, kwargs)
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the function again, while its cache is empty."""
        if self.answers or self.misses:
            self.unsupported("rebuilding a cache that has answers", CANNOT_REBUILD)
        name = out.fresh()
        maker = f"{out.inject(functools.lru_cache)}({self.maximum}, {self.typed})"
        out.line(f"{name} = {maker}({out.value(self.function)})")
        return name


@constructs(functools._lru_cache_wrapper)
def _make_cache(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    function, maximum, typed = (ctx.realize(arg) for arg in args[:3])
    limit = maximum.constant()
    return MadeCache(function, limit if isinstance(limit, int) else None, typed.truth(ctx))


def _real_argument(ctx: CaptureContext, value: Value) -> object:
    value = ctx.realize(value)
    if isinstance(value, Constant | Known | ClassValue):
        return value.constant()
    if isinstance(value, FunctionValue) and value.real is not None:
        return value.real
    if isinstance(value, ObjectValue | OpaqueValue) and isinstance(value.real, logging.Logger):
        return value.real
    if value.is_constant():
        return value.constant()
    raise Break(ARGUMENT_NOT_KNOWN, f"a cached function called with {value.describe()}")


@wraps_type(functools._lru_cache_wrapper)
def _cached(ctx: CaptureContext, value: object, source: Source) -> Value:
    assert isinstance(value, functools._lru_cache_wrapper)
    if not isinstance(source, Injected):
        ctx.guards.add(source, GuardKind.IDENTITY, value)
    return CachedFunctionValue(value, source)
