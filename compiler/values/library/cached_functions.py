"""`functools.lru_cache`: the cached answer for known arguments is part of the specialisation."""

import dis
import functools
import gc
import inspect
import logging
import re
import types
import typing
import warnings
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from ...base.noted_warnings import shown_warnings
from ..constant import Constant, Known
from ..guard import Answer, GuardKind
from ..python.containers.lists import ListValue
from ..python.containers.mappings import DictValue
from ..python.containers.sets import SetValue
from ..python.containers.tuples import TupleValue
from ..python.objects.attributes import MISSING, class_lookup
from ..python.objects.classes import ClassValue, constructs
from ..python.objects.functions import FunctionValue
from ..python.objects.instances import ObjectValue, OpaqueValue
from ..reasons import ARGUMENT_NOT_KNOWN, ATTRIBUTE, BUILTIN_METHOD, CANNOT_REBUILD, UNKNOWN_CALLEE, Break
from ..rule_tables import wraps_type
from ..scalar import SizeValue
from ..source import Injected, Source
from ..torch.tensor import TensorValue
from ..type_attributes import type_attribute
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value

_Cached: TypeAlias = "functools._lru_cache_wrapper[object]"
_MOST_HELD = 10_000  # objects that one argument may hold
_MOST_READ = 256  # answers; twice the bound that a cache has by default
_ABSENT = type("Absent", (), {"__repr__": lambda self: "nothing in its cache"})()
_COUNTED: Counter[tuple[int, Hashable]] = Counter()  # real calls, by wrapper and key, that a replayed one stands for


def _contents(wrapper: _Cached) -> tuple[dict[Hashable, object], object] | None:
    """Return the answers of a cache by key, and its mark before keywords; None where Python keeps them otherwise.

    The cache itself is asked, not called: a call counts as a hit, and makes the answer the most recently used. One
    with a bound is read whole, so a large one is called after all, by the guard in place of the program.
    """
    info = wrapper.cache_info()
    if info.maxsize is not None and info.currsize > _MOST_READ:
        return None
    parts = gc.get_referents(wrapper)
    end = next((i for i in range(4, len(parts)) if parts[i] is functools._CacheInfo), 0)
    if not end or type(parts[end - 4]) is not dict:
        return None
    entries, answers, mark = parts[1 : end - 4], parts[end - 4], parts[end - 2]
    if not entries:
        return answers, mark  # without a bound; or there is nothing in it
    if len(entries) != 3 * len(answers):
        return None
    return dict(zip(entries[::3], entries[1::3], strict=True)), mark


def _key(wrapper: Any, args: tuple[object, ...], named: dict[str, object], mark: object) -> Hashable:
    if wrapper.cache_parameters()["typed"]:
        kinds = (*map(type, args), *map(type, named.values()))
    elif len(args) == 1 and not named and type(args[0]) in (int, str):
        return args[0]
    else:
        kinds = ()
    pairs = (mark, *(part for pair in named.items() for part in pair)) if named else ()
    return (*args, *pairs, *kinds)


def _cached_answer(wrapper: _Cached, args: tuple[object, ...], named: dict[str, object]) -> object:
    """Return what the cache has for a call, without counting one; `_ABSENT` if nothing."""
    contents = _contents(wrapper)
    if contents is None:
        return wrapper(*args, **named)
    return contents[0].get(_key(wrapper, args, named, contents[1]), _ABSENT)


def _answer_of(wrapper: _Cached, args: tuple[object, ...], named: dict[str, object]) -> object:
    """Return what a cached function gives: from its cache, or by a call that the next `_count` stands for."""
    answer = _cached_answer(wrapper, args, named)
    contents = _contents(wrapper) if answer is _ABSENT else None
    if contents is not None:
        with shown_warnings():
            answer = wrapper(*args, **named)
        _COUNTED[id(wrapper), _key(wrapper, args, named, contents[1])] += 1
    return answer


def _count(wrapper: _Cached, args: tuple[object, ...], named: dict[str, object]) -> None:
    """Call a cached function as the program did, so that the cache counts it; not if it has been called for that."""
    contents = _contents(wrapper)
    place = (id(wrapper), _key(wrapper, args, named, contents[1])) if contents is not None else None
    if contents is None or place is None:
        return
    if _COUNTED[place]:
        _COUNTED[place] -= 1
    else:
        del _COUNTED[place]
        wrapper(*args, **named)


def _is_full(wrapper: Any) -> bool:
    """Return whether a new answer would push out one that another capture relies on."""
    info = wrapper.cache_info()
    return info.maxsize is not None and info.currsize >= info.maxsize


def _names_state(function: object) -> bool:
    """Return whether a function names something outside that can change: then it may not be called early."""
    if not isinstance(function, types.FunctionType):
        return True
    code = function.__code__
    if any(one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL") for one in dis.get_instructions(code)):
        return True
    named = [function.__globals__[name] for name in code.co_names if name in function.__globals__]
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    return bool(code.co_freevars and not cells) or not all(isinstance(value, _FIXED) for value in (*named, *cells))


_FIXED = (
    *(types.FunctionType, types.BuiltinFunctionType, type, types.ModuleType, functools._lru_cache_wrapper),
    *(int, float, complex, str, bytes, tuple, frozenset, type(None), re.Pattern, logging.Logger, torch.dtype),
    *(torch.device, types.GenericAlias, typing.TypeVar, type(typing.Any), type(typing.Optional[int])),  # noqa: UP045 - its class
)


class CachedAnswer(Answer):
    """What a cached function gave; asking the cache for it again does not count as a call."""

    def found(self, function: Callable[..., object]) -> object:
        """Return what the cache has; what it has not any more is computed where the program calls the function."""
        assert isinstance(function, functools._lru_cache_wrapper)
        return _cached_answer(function, self.args, self.kwargs)


class CachedFunctionValue(Value):
    """A function under `lru_cache`.

    Called with known arguments it is called now, unless its cache has the answer; a guard asks that the cache still has
    it. The call itself is replayed, so that the cache counts as many as in eager. Called with symbolic sizes, or with
    objects that the cache does not know, it is evaluated. Tensors as arguments break, because the cache goes by their
    identity.
    """

    always_true = True

    def __init__(self, real: "functools._lru_cache_wrapper[object]", source: Source) -> None:
        self.real = real
        self.source = source
        self.answers: dict[Hashable, Value] = {}  # what it gave in this capture where it was evaluated

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
        """Call the cached function now, or evaluate it where an argument is an object or a symbolic size."""
        if _hashes_by_evaluation(ctx, [*args, *kwargs.values()]):
            evaluated = self._evaluated(ctx, args, kwargs)
            if evaluated is not None:
                return evaluated
        known = [_real_argument(ctx, arg) for arg in args]
        named = {name: _real_argument(ctx, value) for name, value in kwargs.items()}
        try:
            absent = _cached_answer(self.real, tuple(known), named) is _ABSENT
        except TypeError:  # an argument that cannot be hashed
            raise Break(UNKNOWN_CALLEE, f"{self.describe()}, which raises") from None
        if absent and any(isinstance(ctx.realize(value), ObjectValue) for value in (*args, *kwargs.values())):
            evaluated = self._evaluated(ctx, args, kwargs)
            if evaluated is None:
                raise Break(UNKNOWN_CALLEE, f"{self.describe()}, which gives something that can change")
            return evaluated
        function = inspect.unwrap(self.real)
        if absent and (_is_full(self.real) or _names_state(function) or any(map(_acts, (function, *known)))):
            raise Break(UNKNOWN_CALLEE, f"{self.describe()}, whose cache does not have the answer")
        try:
            answer = _answer_of(self.real, tuple(known), named)
        except Exception:
            raise Break(UNKNOWN_CALLEE, f"{self.describe()}, which raises") from None
        ctx.guards.add(Injected(self.real), GuardKind.ANSWER, CachedAnswer(tuple(known), named, answer))
        ctx.effects.note_count(
            lambda out: f"{out.inject(_count)}({', '.join(map(out.inject, (self.real, tuple(known), named)))})"
        )
        if isinstance(answer, list | dict | set):
            return ctx.wrap(answer, Injected(answer))
        return ctx.known(answer)

    def _evaluated(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value | None:
        """Evaluate the wrapped function, guarded by what it reads; afterwards the program's own call fills the cache.

        That call comes after the changes of this capture: none of them may be one of what the arguments hold.  None for
        an answer that can change: the cache has the one that is meant, with what became of it.
        """
        function = inspect.unwrap(self.real)
        if _names_state(function) or _names_output(function):
            raise Break(UNKNOWN_CALLEE, f"{self.describe()}, which does not go by its arguments alone")
        values = [ctx.realize(value) for value in (*args, *kwargs.values())]
        key = (tuple(value.key(ctx) for value in map(_Key, values)), tuple(kwargs))
        if key not in self.answers:
            before = ctx.effects.count()
            answer = ctx.call(ctx.wrap(function, Injected(function)), args, kwargs)
            if ctx.effects.count() != before or not _is_plain(ctx, answer):
                raise Break(UNKNOWN_CALLEE, f"{self.describe()}, which makes or changes objects")
            self.answers[key] = answer
        if isinstance(ctx.realize(self.answers[key]), ListValue | DictValue | SetValue):
            return None
        held = _held_by([value.identity() for value in values])

        def write(out: Rebuilder) -> str:
            if held is None or held & ctx.effects.changed_objects():
                raise Break(UNKNOWN_CALLEE, f"{self.describe()}, called with an object that changes afterwards")
            named = [f"{name}={out.value(value)}" for name, value in kwargs.items()]
            return f"{out.inject(self.real)}({', '.join([*map(out.value, args), *named])})"

        write_now = held is None or held & ctx.effects.changed_objects()
        if write_now:
            raise Break(UNKNOWN_CALLEE, f"{self.describe()}, called with an object that has changed")
        ctx.effects.note_count(write)
        return self.answers[key]


@dataclass(frozen=True)
class _Key:
    """An argument of a cached function, as the key of an answer."""

    value: Value

    def key(self, ctx: CaptureContext) -> Hashable:
        """Return what equal arguments have in common; a symbolic size is not fixed by it."""
        if isinstance(self.value, SizeValue):
            return ("size", str(self.value.symbol))
        if isinstance(self.value, TupleValue):
            return tuple(_Key(ctx.realize(item)).key(ctx) for item in self.value.items)
        if isinstance(self.value, TensorValue):
            raise Break(ARGUMENT_NOT_KNOWN, f"a cached function called with {self.value.describe()}")
        return self.value.hash_token(ctx)


def _hashes_by_evaluation(ctx: CaptureContext, values: list[Value]) -> bool:
    """Return whether an argument is a symbolic size, or an object that can be told from others only by evaluation."""
    for value in map(ctx.realize, values):
        if isinstance(value, SizeValue) or (isinstance(value, ObjectValue) and not _is_known_by_identity(value)):
            return True
        if isinstance(value, TupleValue) and _hashes_by_evaluation(ctx, list(value.items)):
            return True
    return False


def _is_known_by_identity(value: ObjectValue) -> bool:
    """Return whether an object came from outside and a dictionary would find it by its identity."""
    if value.real is MISSING or value.source is None:
        return False
    owners = {class_lookup(value.kind, name)[0] for name in ("__hash__", "__eq__")}
    return owners <= {object, torch.nn.Module}


def _is_plain(ctx: CaptureContext, value: Value) -> bool:
    """Return whether a value is made of numbers, texts and containers of them."""
    value = ctx.realize(value)
    if isinstance(value, TupleValue | ListValue):
        return all(_is_plain(ctx, item) for item in value.items)
    if isinstance(value, DictValue):
        return all(_is_plain(ctx, entry.value) for entry in value.read_all(ctx).values())
    return isinstance(value, Constant | SizeValue | Known | ClassValue) or value.source is not None


def _held_by(roots: list[object]) -> set[int] | None:
    """Return the ids of what objects hold in attributes and containers; None if that is too much to be looked at."""
    seen: dict[int, object] = {}
    pending = list(roots)
    while pending:
        one = pending.pop()
        if id(one) in seen or (isinstance(one, _FIXED) and not isinstance(one, tuple)):
            continue
        seen[id(one)] = one
        if len(seen) > _MOST_HELD:
            return None
        pending += gc.get_referents(one) if not isinstance(one, torch.Tensor) else []
    return set(seen)


def _names_output(function: types.FunctionType) -> bool:
    """Return whether a function names what it would say things by: evaluated, it would say them at each call."""
    named = [function.__globals__.get(name) for name in function.__code__.co_names]
    return any(value is warnings or isinstance(value, logging.Logger) for value in named) or _acts(function)


def _acts(function: object) -> bool:
    """Return whether a function names a builtin that does something outside: called early, it does that too soon."""
    return isinstance(function, types.FunctionType) and not _ACTING.isdisjoint(function.__code__.co_names)


_ACTING = frozenset({"print", "input", "open", "exec", "eval", "breakpoint", "setattr", "delattr", "__import__"})


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

    def del_attr(self, ctx: CaptureContext, name: str) -> None:
        """Delete an attribute that was set here."""
        if self.attributes.pop(name, None) is None:
            super().del_attr(ctx, name)

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
        out.bind(self, name)
        for key, value in self.attributes.items():
            out.line(f"{out.inject(setattr)}({name}, {key!r}, {out.value(value)})")
        return name


@constructs(functools._lru_cache_wrapper)
def _make_cache(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    function, maximum, typed = (ctx.realize(arg) for arg in args[:3])
    limit = maximum.constant()
    return MadeCache(function, limit if isinstance(limit, int) else None, typed.truth(ctx))


def _real_argument(ctx: CaptureContext, value: Value) -> object:
    value = ctx.realize(value)
    if isinstance(value, Constant | Known | ClassValue | SizeValue):
        return value.constant()
    if isinstance(value, TupleValue) and type(value) is TupleValue:
        return tuple(_real_argument(ctx, item) for item in value.items)
    if isinstance(value, FunctionValue) and value.real is not None:
        return value.real
    if isinstance(value, ObjectValue | OpaqueValue) and isinstance(value.real, logging.Logger):
        return value.real
    if isinstance(value, ObjectValue) and _is_known_by_identity(value) and value.source is not None:
        if not isinstance(value.source, Injected):
            ctx.guards.add(value.source, GuardKind.IDENTITY, value.real)
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
