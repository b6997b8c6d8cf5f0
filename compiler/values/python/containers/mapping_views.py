"""Views of dictionaries, `keys()`, `values()` and `items()`, and iterators over dictionaries."""

import collections
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from ...constant import Constant
from ...operator_table import Binary
from ...reasons import BUILTIN_METHOD, CANNOT_REBUILD, UNSUPPORTED_OBJECT, Break
from ...type_attributes import type_attribute
from ...value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value
from .key_tables import KeyTable
from .sequences import TableIterator, call_dunder
from .sets import SET_OPERATORS, SetOperand, TokenPool, on_tokens
from .tuples import TupleValue


@dataclass(slots=True)
class Entry:
    """One key and its value; value None: deleted."""

    key: Value
    value: Value


class MappingValue(SetOperand):
    """What views and iterators ask of a dictionary. entries: those read so far, by the tokens of their keys.

    resized: keys were added, removed or moved.
    """

    resized = False
    kind: type
    entries: dict[Hashable, Entry]

    def read_all(self, ctx: CaptureContext) -> dict[Hashable, Entry]:
        """Guard all keys of the original and return every entry, in order."""
        raise NotImplementedError

    def key_table(self, ctx: CaptureContext) -> KeyTable:
        """Return the table that says how iterators go on."""
        raise NotImplementedError

    def proxy(self) -> Value:
        """Return a read-only proxy of the dictionary."""
        raise NotImplementedError


class DictView(SetOperand):
    """`keys()`, `values()` or `items()` of a dictionary; sees later changes."""

    equal_by_identity = True  # with another view `compare` has answered

    def __init__(self, owner: MappingValue, part: str) -> None:
        self.owner = owner
        self.part = part

    def python_type(self) -> type:
        """Return the view type."""
        return type(self._empty())

    def has_set_operators(self) -> bool:
        """Return whether it shows keys or items."""
        return self.part != "values"

    def real_tokens(self, pool: TokenPool) -> Any:
        """Return a real view of a dictionary of tokens."""
        if self.part == "keys":
            if pool.keeps_hashes:
                return self.owner.real_tokens(pool).keys()
            return dict.fromkeys(map(pool.token, self.elements(pool.ctx))).keys()
        if self.part == "values":
            return [pool.token(element) for element in pool.ctx.unpack(self)]
        tokens: dict[Hashable, Hashable] = {}
        entries = self.owner.read_all(pool.ctx).values()
        for entry in entries:
            try:
                tokens[pool.token(entry.key)] = pool.token(pool.ctx.realize(entry.value))
            except Raised:
                raise Break(UNSUPPORTED_OBJECT, "a set operation on items that do not hash") from None
        for entry in entries:
            pair = (entry.key.hash_token(pool.ctx), pool.ctx.realize(entry.value).hash_token(pool.ctx))
            pool.pairs[pair] = TupleValue([entry.key, entry.value])
        return tokens.items()

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Evaluate the operators of sets, with any iterable on the other side."""
        if record.symbol not in SET_OPERATORS or not self.has_set_operators():
            return None
        left, right = (other, self) if reflected else (self, other)
        return on_tokens(ctx, record.assigning if inplace else record.function, left, right)

    def mirrored(self, part: Callable[[Value], object], seen: dict[int, object], ctx: CaptureContext) -> object:
        """Return a view of a dictionary of the kind."""
        return getattr(part(self.owner), self.part)()

    def _empty(self) -> Any:
        """Return such a view of nothing."""
        ordered = issubclass(self.owner.kind, collections.OrderedDict)
        return getattr(collections.OrderedDict() if ordered else {}, self.part)()

    def elements(self, ctx: CaptureContext) -> list[Value]:
        """Return what the view shows now."""
        entries = self.owner.read_all(ctx).values()
        if self.part == "keys":
            return [entry.key for entry in entries]
        for entry in entries:
            entry.value = ctx.realize(entry.value)
        if self.part == "values":
            return [entry.value for entry in entries]
        return [TupleValue([entry.key, entry.value]) for entry in entries]

    def stand_in(self) -> object:
        """Return a view of nothing."""
        return self._empty()

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method, or what is viewed."""
        if name == "mapping":
            return self.owner.proxy()
        return type_attribute(ctx, self, name)

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Raise TypeError, but for views of values."""
        self.refuse(ctx, "hash", hash)

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate over what the view shows now."""
        return MappingIterator(ctx, self, iter)

    def reversed(self, ctx: CaptureContext) -> Value:
        """Return an iterator from the last entry."""
        return self.call_method(ctx, "__reversed__", [], {})

    def length(self, ctx: CaptureContext) -> Value:
        """Return the number of entries."""
        return self.owner.length(ctx)

    def truth(self, ctx: CaptureContext) -> bool:
        """Return whether there are entries."""
        return self.owner.truth(ctx)

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Test a key by lookup, other views by comparing."""
        if self.part == "keys":
            return self.owner.contains(ctx, item)
        return any(ctx.same_or_equal(element, item) for element in self.elements(ctx))

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate explicit special methods and isdisjoint."""
        if name == "__reversed__":
            return MappingIterator(ctx, self, reversed)
        if name == "isdisjoint" and len(args) == 1:
            return Constant(not any(self.contains(ctx, item) for item in ctx.realize(args[0]).each(ctx)))
        if hasattr(self.python_type(), name):
            return call_dunder(ctx, self, name, args)
        self.unsupported(f"method {name!r}", BUILTIN_METHOD)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the view of the dictionary."""
        name = out.fresh()
        if self.owner.holder is not None:
            out.line(f"{name} = {out.inject(getattr(self.owner.kind, self.part))}({out.value(self.owner)})")
        else:
            out.line(f"{name} = {out.value(self.owner)}.{self.part}()")
        return name


class MappingIterator(TableIterator):
    """An iterator over a dictionary; reads values when it reaches them."""

    def __init__(self, ctx: CaptureContext, view: DictView, function: Callable[[Any], Any]) -> None:
        self.mapping = view.owner
        self.table = view.owner.key_table(ctx)
        super().__init__(function, view, function(getattr(self.table.real, view.part)()))
        self.part = view.part
        self.size = len(self.table.real)
        self.changes = self.table.changes

    def changed(self) -> bool:
        """Return whether keys were added, removed or moved."""
        return self.table.changes != self.changes

    def demand_order(self) -> None:
        """Raise Break where keys were exchanged, and Python may have made room for that."""
        if len(self.table.real) == self.size and not self.table.says_what_follows():
            self.unsupported("going on over a dictionary whose keys were exchanged", UNSUPPORTED_OBJECT)

    def element(self, ctx: CaptureContext, found: Any) -> Value:
        """Return the key, the value that it has now, or both."""
        if self.part == "keys":
            key: Value = self.table.real[found].key
            return key
        entry: Entry = found[1] if self.part == "items" else found
        entry.value = ctx.realize(entry.value)
        return entry.value if self.part == "values" else TupleValue([entry.key, entry.value])

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator at the same position over a dictionary that does not change after this."""
        if self.mapping.source is not None and self.mapping.resized and not self.ended:
            self.unsupported("handing over an iterator over a dictionary that has changed", CANNOT_REBUILD)
        return super().rebuild(out)
