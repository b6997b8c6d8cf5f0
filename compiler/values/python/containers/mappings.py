"""Dictionaries (plain, ordered, with default): operators, methods, copies; and read-only proxies of them."""

import collections
import types
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NoReturn

from ...constant import Constant
from ...identities import key_among, settled
from ...operator_table import Binary, Comparison
from ...reasons import BUILTIN_METHOD, TEXT, Break
from ...source import Source
from ...type_attributes import type_attribute
from ...value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value, defines, unless_refused
from ..deep_copies import deep_copied
from .dict_entries import DictEntries, missing
from .kept_hashes import keeping_hashes, setting_item
from .mapping_views import DictView, Entry
from .own_attributes import OwnAttributes
from .sequences import call_dunder
from .sets import TokenPool
from .tuples import TupleValue


class DictValue(OwnAttributes, DictEntries):
    """A dict, OrderedDict or defaultdict."""

    equal_by_identity = True  # with another dictionary `compare` has answered

    @classmethod
    def of(cls, ctx: CaptureContext, pairs: Iterable[tuple[Value, Value]], kind: type = dict) -> "DictValue":
        """Return a new dictionary with the pairs."""
        dictionary = cls(kind)
        for key, value in pairs:
            known = dictionary.entries.setdefault(ctx.realize(key).hash_token(ctx), Entry(ctx.realize(key), value))
            known.value = value  # an equal key stays what it was
        return dictionary

    def copied(self, ctx: CaptureContext, kind: type) -> "DictValue":
        """Return a new dictionary of the same keys, which are not hashed again, and values."""
        copy = DictValue(kind, factory=self.factory)
        copy.entries = {token: Entry(entry.key, entry.value) for token, entry in self.read_all(ctx).items()}
        return copy

    def real_tokens(self, pool: TokenPool) -> Any:
        """Return a dictionary of the keys."""
        if pool.outside is not None:
            return dict.fromkeys(pool.token(entry.key) for entry in self.read_all(pool.ctx).values())
        entries = self.read_all(pool.ctx)
        pool.values |= {id(token): (token, entry.key) for token, entry in entries.items()}
        return dict.fromkeys(entries)

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Merge with another dictionary; in place with whatever `update` takes."""
        if record.symbol != "|":
            return None
        in_place = inplace and not reflected and self.kind is not types.MappingProxyType
        if isinstance(other, DictValue | ProxyValue):
            return _merged(ctx, other, self, False) if reflected else _merged(ctx, self, other, in_place)
        if not in_place:
            return None
        self.call_method(ctx, "update", [other], {})
        return self

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare the entries with those of another dictionary."""
        mapping = other.owner if isinstance(other, ProxyValue) else other
        if not isinstance(mapping, DictValue) or not record.asks_equality:
            return None
        left, right = (mapping, self) if reflected else (self, mapping)
        return Constant(_equal_dicts(ctx, left, right) == (record.symbol == "=="))

    def shallow_copy(self, ctx: CaptureContext) -> Value:
        """Return a new dictionary of the same entries."""
        self.demand_no_attributes(ctx, "copy")
        return self.call_method(ctx, "copy", [], {})

    def deep_copy(self, ctx: CaptureContext, memo: dict[int, Value]) -> Value:
        """Return a new dictionary of copies."""
        self.demand_no_attributes(ctx, "copy")
        copied = DictValue(self.kind, factory=self.factory)
        memo[id(self)] = copied
        for token, entry in self.read_all(ctx).items():
            copied.entries[token] = Entry(deep_copied(ctx, entry.key, memo), deep_copied(ctx, entry.value, memo))
        return copied

    def mirrored(self, part: Callable[[Value], object], seen: dict[int, object], ctx: CaptureContext) -> object:
        """Return a dictionary of the kind."""
        entries = self.read_all(ctx).values()
        factory: Any = None if self.factory is None else self.factory.constant()
        mapping: Any = _MirroredDefaults(factory) if self.kind is collections.defaultdict else {}
        mapping = collections.OrderedDict() if self.kind is collections.OrderedDict else mapping
        seen[id(self)] = mapping
        for entry in list(entries):
            mapping[part(entry.key)] = part(entry.value)
        return types.MappingProxyType(mapping) if self.kind is types.MappingProxyType else mapping

    def initialise_instance(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> None:
        """Evaluate `__init__`; the first argument of a defaultdict's is the factory."""
        if self.kind is collections.defaultdict:
            self.factory = ctx.realize(args[0]) if args else Constant(None)
            args = args[1:]
        self.call_method(ctx, "__init__", args, kwargs)

    def fill_instance(self, name: str, base: type, out: Rebuilder) -> list[str]:
        """Return the statements that set the entries."""
        lines = []
        if base is collections.defaultdict:
            initialise: Any = base.__init__
            lines.append(f"{out.inject(initialise)}({name}, {out.value(self.factory or Constant(None))})")
        setter = out.inject(base.__dict__.get("__setitem__", dict.__setitem__))
        pairs = [(out.value(entry.key), out.value(entry.value)) for entry in self.entries.values()]
        filling = [f"{setter}({name}, {key}, {value})" for key, value in pairs]
        return lines + keeping_hashes(filling, self.entries, out)

    def graph_argument(self, ctx: CaptureContext) -> tuple[object, object]:
        """Return a dictionary of the entries' arguments."""
        entries = [
            (entry.key.constant(), ctx.realize(entry.value).graph_argument(ctx))
            for entry in self.read_all(ctx).values()
        ]
        return {key: node for key, (node, _) in entries}, {key: fake for key, (_, fake) in entries}

    def is_constant(self) -> bool:
        """Return whether all keys and values are known; one from outside that is not fully read is not."""
        if self.factory is not None and not self.factory.is_constant():
            return False
        return self.unread is None and all(e.key.is_constant() and e.value.is_constant() for e in self.entries.values())

    def stand_in(self) -> object:
        """Return an empty dictionary of the kind."""
        return types.MappingProxyType({}) if self.kind is types.MappingProxyType else self.kind()

    def constant(self) -> object:
        """Return a fresh dict."""
        pairs = [(entry.key.constant(), entry.value.constant()) for entry in self.entries.values()]
        if self.kind is collections.defaultdict:
            factory: Any = self.factory.constant() if self.factory is not None else None
            return collections.defaultdict(factory, pairs)
        return types.MappingProxyType(dict(pairs)) if self.kind is types.MappingProxyType else self.kind(pairs)

    def proxy(self) -> Value:
        """Return a read-only proxy of the dictionary."""
        return ProxyValue(self)

    def reversed(self, ctx: CaptureContext) -> Value:
        """Return an iterator from the last entry."""
        return self.call_method(ctx, "__reversed__", [], {})

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over the keys."""
        return DictView(self, "keys").iterate(ctx)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Return the value under the key; defaultdict makes one."""
        value = self.find(ctx, key)
        if value is not None:
            return value
        factory = self.factory
        if self.kind is collections.defaultdict and factory is not None and not _is_none(factory):
            default = ctx.call(factory, [], {})
            self.set_item(ctx, key, default)
            return default
        missing(ctx, key)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method, or an attribute of its own."""
        own = self.own_attribute(ctx, name)
        if own is not None:
            return own
        if name == "default_factory" and self.kind is collections.defaultdict:
            return self.factory or Constant(None)
        return type_attribute(ctx, self, name)

    def set_attr(self, ctx: CaptureContext, name: str, value: Value) -> None:
        """Set the factory of a new defaultdict."""
        if name != "default_factory" or self.kind is not collections.defaultdict or self.source is not None:
            super().set_attr(ctx, name, value)
            return
        self.factory = ctx.realize(value)

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Raise TypeError."""
        self.refuse(ctx, "hash", hash)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a dict method."""
        own = self.own_attribute(ctx, name)
        if own is not None:
            return ctx.call(own, args, kwargs)
        rule = _DICT_METHODS.get(name)
        if rule is not None:
            if not hasattr(self.kind, name):
                self.refuse(ctx, f"method {name!r}", lambda value: getattr(value, name), reason=BUILTIN_METHOD)
            return rule(self, ctx, args, kwargs)
        if name == "__init__":
            return _update(self, ctx, args, kwargs)
        if hasattr(self.kind, name):
            return call_dunder(ctx, self, name, args)
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new dict; created empty first, so that it may contain itself."""
        name = out.fresh()
        if self.kind is dict:
            out.line(f"{name} = {{}}")
        elif self.kind is collections.defaultdict:
            out.line(f"{name} = {out.inject(self.kind)}({out.value(self.factory or Constant(None))})")
        else:
            out.line(f"{name} = {out.inject(self.kind)}()")
        out.bind(self, name)
        filling = []
        plain = self.kind is not collections.OrderedDict
        for token, entry in self.entries.items():
            key, value = out.value(entry.key), out.value(entry.value)
            filling.append(setting_item(name, key, value, token if plain else None, out))
        for line in keeping_hashes(filling, self.entries, out):
            out.line(line)
        return name


def _is_none(value: Value) -> bool:
    return isinstance(value, Constant) and value.value is None


def _get(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    value = self.find(ctx, args[0])
    return value if value is not None else (ctx.realize(args[1]) if len(args) > 1 else Constant(None))


def _missing_here(self: DictValue, ctx: CaptureContext, key: Value) -> NoReturn:
    """Raise KeyError; an ordered dictionary's C takes the key for the arguments of the error, if it is a tuple."""
    if self.kind is not collections.OrderedDict:
        missing(ctx, key)
    arguments = key.elements(ctx) if isinstance(key, TupleValue) else [] if _is_none(key) else [key]
    raise Raised(ctx.call(ctx.known(KeyError), arguments, {}))


def _dict_pop(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    args = args or [kwargs["key"]]
    key, token = key_among(ctx, self, ctx.realize(args[0]))
    default = args[1] if len(args) > 1 else kwargs.get("default")
    with self.looked_up(ctx, token) as token:
        value = self.found(ctx, key, token)
        if value is None:
            if default is not None:
                return ctx.realize(default)
            _missing_here(self, ctx, key)
        self.del_by_token(ctx, key, token)
    return value


def _popitem(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    entries = self.read_all(ctx)
    last = ctx.realize(args[0] if args else kwargs.get("last", Constant(True))).truth(ctx)
    if not entries:
        what = "dictionary" if self.kind is collections.OrderedDict else "popitem(): dictionary"
        ctx.throw(KeyError, f"{what} is empty")
    token, entry = list(entries.items())[-1 if last else 0]
    pair = TupleValue([entry.key, ctx.realize(entry.value)])
    if last and self.table is not None and not self.table.ordered:
        self.table.remove_last()
    with settled([token]):
        self.del_by_token(ctx, entry.key, token)
    return pair


def _setdefault(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    args = args or [kwargs["key"]]
    key, token = key_among(ctx, self, ctx.realize(args[0]))
    with self.looked_up(ctx, token) as token:
        value = self.found(ctx, key, token)
        if value is None:
            value = args[1] if len(args) > 1 else kwargs.get("default", Constant(None))
            self.set_by_token(ctx, key, token, value)
    return ctx.realize(value)


def _update(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    for arg in args:
        given = ctx.realize(arg)
        if isinstance(given, DictValue):  # whose keys are not asked for their hashes again
            rows = list(given.read_all(ctx).items())
            whole = not self.read_all(ctx) and not given.gaps  # into an empty one Python copies a table without gaps
            copied = [token for token, _ in rows] if whole else ()
            with settled(copied):
                for given_token, entry in rows:
                    with self.looked_up(ctx, given_token) as token:
                        self.set_by_token(ctx, entry.key, token, entry.value)
            continue
        for key, value in pairs_of(ctx, given, self.kind):
            self.set_item(ctx, key, value)
    for name, value in kwargs.items():
        self.set_item(ctx, Constant(name), value)
    return Constant(None)


def _pair(ctx: CaptureContext, kind: type, position: int, element: Value) -> list[Value]:
    """Return the two parts of an element that a dictionary is updated with, or raise what that kind raises."""
    ordered = kind is collections.OrderedDict
    try:
        iterator = ctx.realize(element.iterate(ctx))
    except Raised as raised:
        if ordered or not issubclass(raised.value.python_type(), TypeError):
            raise
        ctx.throw(TypeError, f"cannot convert dictionary update sequence element #{position} to a sequence")
    parts = iterator.gathered(ctx)
    size = len(parts)
    if size == 2:
        return parts
    if not ordered:
        ctx.throw(ValueError, f"dictionary update sequence element #{position} has length {size}; 2 is required")
    few = f"need more than {size} value{'' if size == 1 else 's'} to unpack"
    ctx.throw(ValueError, few if size < 2 else "too many values to unpack (expected 2)")


def _keys_of(ctx: CaptureContext, value: Value) -> Value | None:
    """Return the method `keys` of an object: of its class or, where that is written in Python, of itself."""
    kind = value.python_type()
    if not defines(kind, "keys") and not value.defines_operators():
        return None
    try:
        return ctx.realize(value.get_attr(ctx, "keys"))
    except Raised as raised:
        if not issubclass(raised.value.python_type(), AttributeError):
            raise
        return None


def pairs_of(ctx: CaptureContext, value: Value, kind: type = dict) -> Iterator[tuple[Value, Value]]:
    """Give the pairs that `dict(value)` takes, or the update of a dictionary of another kind, one by one."""
    if isinstance(value, DictValue):
        yield from [(entry.key, entry.value) for entry in value.read_all(ctx).values()]
    elif (method := _keys_of(ctx, value)) is not None:
        words = kind is not collections.OrderedDict
        if words and not defines(value.python_type(), "keys"):
            method = ctx.realize(value.get_attr(ctx, "keys"))  # asked for whether it is there, and again to be called
        keys = ctx.realize(method.call(ctx, [], {}))
        iterator = unless_refused(ctx, keys.iterate) if words else keys.iterate(ctx)
        if iterator is None:
            owner, given = (each.python_type().__name__ for each in (value, keys))
            ctx.throw(TypeError, f"{owner}.keys() returned a non-iterable (type {given})")
        for key in ctx.unpack(iterator):
            yield key, value.get_item(ctx, key)
    else:
        for position, item in enumerate(value.each(ctx)):
            first, second = _pair(ctx, kind, position, item)
            yield first, second


def _dict_clear(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    ctx.effects.let_go(self, [*self.entries.values(), *(self.unread or {}).values()])
    self.entries, self.unread, self.resized, self.gaps = {}, None, True, False
    if self.table is not None:
        self.table.clear()
    self.write(ctx, "clear", Constant(None), None)
    return Constant(None)


def _dict_copy(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return self.copied(ctx, self.kind)


def _move_to_end(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    last = ctx.realize(args[1] if len(args) > 1 else kwargs.get("last", Constant(True))).truth(ctx)
    self.read_all(ctx)
    key = ctx.realize(args[0] if args else kwargs["key"])
    token = key.hash_token(ctx)
    with self.looked_up(ctx, token) as token:
        if token not in self.entries:
            _missing_here(self, ctx, key)
        entry = self.entries.pop(token)
        self.entries = {**self.entries, token: entry} if last else {token: entry, **self.entries}
    self.resized = True
    if self.table is not None:
        self.table.move(entry, last=last)
    self.write(ctx, "end" if last else "front", key, None)
    return Constant(None)


def _fromkeys(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    keys, default, *_ = [*args, *(kwargs[name] for name in ("iterable", "value") if name in kwargs), Constant(None)]
    given = ctx.realize(keys)
    hashed = given.read_all(ctx) if isinstance(given, DictValue) else getattr(given, "members", None)
    if hashed is None or self.kind is not dict:
        return DictValue.of(ctx, ((key, default) for key in given.each(ctx)), self.kind)
    result = DictValue(self.kind)  # of keys that are not asked for their hashes again
    tokens = {id(one.key if isinstance(one, Entry) else one): token for token, one in hashed.items()}
    for key in list(given.each(ctx)):
        result.entries[tokens[id(key)]] = Entry(key, default)
    return result


def _reversed(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return DictView(self, "keys").call_method(ctx, "__reversed__", [], {})


def _view(kind: str) -> "_Rule":
    def rule(self: DictValue, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        return DictView(self, kind)

    return rule


_Rule = Callable[[DictValue, CaptureContext, Arguments, Keywords], Value]

_DICT_METHODS: dict[str, _Rule] = {
    "get": _get,
    "pop": _dict_pop,
    "popitem": _popitem,
    "setdefault": _setdefault,
    "update": _update,
    "clear": _dict_clear,
    "copy": _dict_copy,
    "move_to_end": _move_to_end,
    "fromkeys": _fromkeys,
    "keys": _view("keys"),
    "values": _view("values"),
    "items": _view("items"),
    "__reversed__": _reversed,
}


class _MirroredDefaults(collections.defaultdict[Any, Any]):
    """A real defaultdict over what is evaluated: it has the text, but the items that it lacks the program makes."""

    def __missing__(self, key: object) -> NoReturn:
        raise Break(TEXT, f"a text with the item {key!r}, which a defaultdict has yet to make")


_MirroredDefaults.__name__ = "collections.defaultdict"  # as C names it in errors; a text leaves out what is in front


class ProxyValue(Value):
    """A `types.MappingProxyType` made while evaluating: it shows what is in the dictionary."""

    equal_by_identity = True  # with another dictionary `compare` has answered

    def __init__(self, owner: DictValue, real: object = None, source: Source | None = None) -> None:
        self.owner = owner
        self.real = real  # the proxy itself, if it comes from outside
        self.source = source

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Merge what it shows with another dictionary."""
        if record.symbol != "|" or not isinstance(other, DictValue | ProxyValue):
            return None
        return _merged(ctx, other, self, False) if reflected else _merged(ctx, self, other, False)

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare what it shows."""
        return self.owner.compare(ctx, record, other, reflected)

    def mirrored(self, part: Callable[[Value], object], seen: dict[int, object], ctx: CaptureContext) -> object:
        """Return a proxy of such a dictionary."""
        shown: Any = part(self.owner)
        return types.MappingProxyType(shown)

    def identity(self) -> object:
        """Return the real proxy if there is one."""
        return self if self.real is None else self.real

    def python_type(self) -> type:
        """Return the proxy type."""
        return types.MappingProxyType

    def stand_in(self) -> object:
        """Return a proxy of nothing."""
        return types.MappingProxyType({})

    def is_constant(self) -> bool:
        """Ask the dictionary."""
        return self.owner.is_constant()

    def constant(self) -> object:
        """Return a fresh proxy of a fresh dictionary."""
        shown: Any = self.owner.constant()
        return types.MappingProxyType(shown)

    def truth(self, ctx: CaptureContext) -> bool:
        """Ask the dictionary."""
        return self.owner.truth(ctx)

    def length(self, ctx: CaptureContext) -> Value:
        """Ask the dictionary."""
        return self.owner.length(ctx)

    def iterate(self, ctx: CaptureContext) -> Value:
        """Ask the dictionary."""
        return self.owner.iterate(ctx)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Ask the dictionary."""
        return self.owner.contains(ctx, item)

    def get_item(self, ctx: CaptureContext, key: Value) -> Value:
        """Ask the dictionary."""
        return self.owner.get_item(ctx, key)

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method that only reads."""
        return type_attribute(ctx, self, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Ask the dictionary."""
        return self.owner.call_method(ctx, name, args, kwargs)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a proxy of the dictionary."""
        name = out.fresh()
        out.line(f"{name} = {out.inject(types.MappingProxyType)}({out.value(self.owner)})")
        return name


def _merged(ctx: CaptureContext, left: Value, right: Value, inplace: bool) -> Value:
    """Evaluate `|` of dictionaries; which class the result has, Python itself says."""
    first = left.owner if isinstance(left, ProxyValue) else left
    assert isinstance(first, DictValue)
    if inplace:
        first.call_method(ctx, "update", [right], {})
        return first
    mixed: Any = (left.stand_in(), right.stand_in())
    kind = type(mixed[0] | mixed[1])
    result = first.copied(ctx, kind)
    result.factory = first.factory if first.kind is kind else getattr(right, "factory", None)
    result.call_method(ctx, "update", [right], {})
    return result


def _equal_dicts(ctx: CaptureContext, left: DictValue, right: DictValue) -> bool:
    first, second = left.read_all(ctx), right.read_all(ctx)
    if len(first) != len(second):
        return False
    for token, entry in list(first.items()):
        other = second.get(token)
        if other is None or not ctx.same_or_equal(ctx.realize(entry.value), ctx.realize(other.value)):
            return False
    return not (left.kind is right.kind is collections.OrderedDict) or list(first) == list(second)
