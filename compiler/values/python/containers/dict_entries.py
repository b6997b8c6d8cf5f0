"""What is known of a dictionary's entries, and what was changed of them.

A dictionary from outside is read lazily: a lookup guards only its own key, and only iteration, len() and the like
guard all keys. Changes are kept as a log in program order and replayed on the original as they were made.
"""

import collections
import operator
import types
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ...constant import Constant
from ...guard import GuardKind, without_finaliser
from ...identities import HashToken, key_among, settled, stored_token
from ...source import BaseContents, BaseItem, Item, ListedItem, ListedValue, Source
from ...value import CaptureContext, Raised, Rebuilder, Value
from .kept_hashes import keeping_hashes
from .key_tables import KeyTable
from .mapping_views import Entry, MappingValue

_SIMPLE_KEYS = frozenset({str, int, bool, float, type(None), bytes})


class DictEntries(MappingValue):
    """The entries of a dict, OrderedDict or defaultdict: read, looked up, set and deleted."""

    def __init__(
        self,
        kind: type = dict,
        source: Source | None = None,
        real: dict[object, object] | None = None,
        factory: Value | None = None,
    ) -> None:
        self.kind = kind
        self.source = source
        self.unread = real  # the original while not all of its keys were read
        self.entries: dict[Hashable, Entry] = {}
        self.deleted: set[Hashable] = set()  # while unread
        self.moved: set[Hashable] = set()  # deleted while unread, then set again: at the end, in the order of `entries`
        self.log: list[tuple[str, Value, Value | None]] = []
        self.factory = factory
        self.ordered = True  # False for instance namespaces: a new key needs no knowledge of the others
        self.subclass_of: Any = None  # set for the contents of a container subclass
        self.table: KeyTable | None = None
        self.gaps = source is not None  # keys were removed from among the others, as far as is known

    def python_type(self) -> type:
        """Return the class."""
        return self.kind

    def read_all(self, ctx: CaptureContext) -> dict[Hashable, Entry]:
        """Guard all keys of the original and return every entry, in order."""
        if self.unread is None:
            return self.entries
        original, early, source = self.unread, self.entries, self.source
        assert source is not None
        self.unread = None
        if all(type(key) in _SIMPLE_KEYS for key in original):
            ctx.guards.add(self._keys(), GuardKind.KEYS, tuple(original))
        else:
            ctx.guards.add(self._keys(), GuardKind.LENGTH, len(original))
        self.entries = {}
        for position, (key, value) in enumerate(original.items()):
            simple = type(key) in _SIMPLE_KEYS
            wrapped = Constant(key) if simple else ctx.wrap(key, ListedItem(self._keys(), position))
            token = stored_token(ctx, wrapped)
            if token in self.deleted or token in self.moved:
                continue
            known = early.pop(token, None)
            place = self.item(key) if wrapped.is_constant() else ListedValue(source, position)
            if known is not None:
                known.key = wrapped  # asked for by an equal key, it is still the one that was there: 1 for True
            with settled([token]):
                self.entries[token] = known or Entry(wrapped, ctx.lazy(value, place))
        self.entries.update(early)
        return self.entries

    def _keys(self) -> Source:
        """Return how guards ask for the keys of the original: of a subclass, past its methods."""
        assert self.source is not None
        return self.source if self.subclass_of is None else BaseContents(self.source, self.subclass_of.keys)

    def key_table(self, ctx: CaptureContext) -> KeyTable:
        """Return the table that says how iterators go on; it is kept from the first iterator on."""
        entries = self.read_all(ctx).values()
        if self.table is None:
            ordered = issubclass(self.kind, collections.OrderedDict)
            self.table = KeyTable(ordered=ordered, entries=entries, exact=self.ordered and not self.gaps)
        return self.table

    def item(self, key: object) -> Source:
        """Return how a value of the original is reached."""
        assert self.source is not None
        if self.kind is collections.defaultdict:  # a plain subscript would make the missing entry
            return BaseItem(self.source, dict, key)
        return BaseItem(self.source, self.subclass_of, key) if self.subclass_of else Item(self.source, key)

    def find(self, ctx: CaptureContext, key: Value) -> Value | None:
        """Return the value under a key, None if there is none; guards only this key."""
        return self.found(ctx, *key_among(ctx, self, ctx.realize(key)))

    def found(self, ctx: CaptureContext, key: Value, token: Hashable) -> Value | None:
        """Return the value under a key whose token is known, None if there is none."""
        entry = self.entries.get(token)
        if entry is not None:
            entry.value = ctx.realize(entry.value)
            return entry.value
        if self.unread is None or token in self.deleted:
            return None
        if not key.is_constant():
            self.read_all(ctx)
            return self.found(ctx, key, token)
        assert self.source is not None
        real_key = key.constant()
        if real_key not in self.unread:
            ctx.guards.add(self._keys(), GuardKind.LACKS_KEY, real_key)
            return None
        value = ctx.wrap(self.unread[real_key], self.item(real_key))  # fetching it is the guard that it is there
        self.entries[token] = Entry(key, value)
        return value

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Return whether a key is there; guards the key, not its value."""
        return self._has(ctx, *key_among(ctx, self, ctx.realize(item)))

    def _has(self, ctx: CaptureContext, key: Value, token: Hashable) -> bool:
        if self.unread is not None and key.is_constant() and token not in self.entries and token not in self.deleted:
            assert self.source is not None
            present = key.constant() in self.unread
            ctx.guards.add(self._keys(), GuardKind.HAS_KEY if present else GuardKind.LACKS_KEY, key.constant())
            return present
        return self.found(ctx, key, token) is not None

    def truth(self, ctx: CaptureContext) -> bool:
        """Return whether it has entries."""
        if self.unread is not None and not self.log and self.source is not None and not self.unread:
            ctx.guards.add(self._keys(), GuardKind.LENGTH, 0)
            return False
        return bool(self.read_all(ctx))

    def length(self, ctx: CaptureContext) -> Value:
        """Return the number of entries."""
        return Constant(len(self.read_all(ctx)))

    def set_item(self, ctx: CaptureContext, key: Value, value: Value) -> None:
        """Set a key."""
        if self.kind is types.MappingProxyType:
            self.refuse(ctx, "item assignment", operator.setitem, key, value)
        key, token = key_among(ctx, self, ctx.realize(key))
        with self.looked_up(ctx, token) as token:
            self.set_by_token(ctx, key, token, value)

    @contextmanager
    def looked_up(self, ctx: CaptureContext, token: Hashable) -> Iterator[Hashable]:
        """Give the token under which an equal key is, else the token itself, to be compared no further.

        A hash table asks a key once for all that is done with it; each question would call the program again.
        """
        if not isinstance(token, HashToken) or token.settled:
            yield token
            return
        entry = self.read_all(ctx).get(token)
        stored = token if entry is None else next(known for known, one in self.entries.items() if one is entry)
        with settled([token, stored]):
            yield stored

    def set_by_token(self, ctx: CaptureContext, key: Value, token: Hashable, value: Value) -> None:
        """Set a key that was looked up."""
        if self.unread is not None and self.ordered and (token in self.deleted or not self._has(ctx, key, token)):
            self.read_all(ctx)  # a new key goes to the end: the order matters from here on
        known = self.entries.get(token)
        lost = known.value if known is not None else self._unread_value(key)
        if lost is not value:
            ctx.effects.let_go(self, [lost])
        if known is not None:
            known.value = value
        else:
            self._guard_finaliser(ctx, key)
            self.resized = self.resized or self.unread is None or not self.ordered
            self.entries[token] = entry = Entry(key, value)
            if token in self.deleted:
                self.deleted.remove(token)
                self.moved.add(token)
            if self.table is not None:
                self.table.add(entry)
        self.write(ctx, "set", key, value)

    def del_item(self, ctx: CaptureContext, key: Value) -> None:
        """Delete a key."""
        if self.kind is types.MappingProxyType:
            self.refuse(ctx, "item deletion", operator.delitem, key)
        key, token = key_among(ctx, self, ctx.realize(key))
        with self.looked_up(ctx, token) as token:
            if self.found(ctx, key, token) is None:
                missing(ctx, key)
            self.del_by_token(ctx, key, token)

    def del_by_token(self, ctx: CaptureContext, key: Value, token: Hashable) -> None:
        """Delete a key that is there, by the token under which it is."""
        ctx.effects.let_go(self, [self.entries[token]])
        entry = self.entries.pop(token)
        self.moved.discard(token)
        self.resized = self.gaps = True
        if self.table is not None:
            self.table.remove(entry)
        if self.unread is not None:
            self.deleted.add(token)
        self.write(ctx, "del", key, None)

    def _unread_value(self, key: Value) -> object:
        """Return what the original has under a key that nobody has asked for, None if nothing."""
        known = self.unread is not None and key.is_constant()
        return self.unread.get(key.constant()) if known and self.unread is not None else None

    def _guard_finaliser(self, ctx: CaptureContext, key: Value) -> None:
        """Guard that what is under a key that nobody has read has no finaliser, as now: it would run at the write."""
        name = key.constant() if key.is_constant() else None
        plain = self.unread is not None and self.subclass_of is None
        if plain and self.source is not None and isinstance(name, str) and name.isidentifier():
            ctx.guards.add(self.source, GuardKind.EXPRESSION, without_finaliser(name))

    def write(self, ctx: CaptureContext, operation: str, key: Value, value: Value | None) -> None:
        """Log a change that was made to the entries; a view only shows what happens to what is behind it."""
        if self.kind is types.MappingProxyType:
            return
        if self.source is not None:
            self.log.append((operation, key, value))
        ctx.effects.mutated(self)

    def replay(self, out: Rebuilder) -> list[str]:
        """Repeat the log on the original."""
        name, lines = out.value(self), []
        if self.subclass_of is not None:
            return self._replay_past_methods(name, self.subclass_of, out)
        for operation, key, value in self.log:
            if operation == "clear":
                lines.append(f"{name}.clear()")
            elif operation in ("end", "front"):
                lines.append(f"{name}.move_to_end({out.value(key)}, last={operation == 'end'})")
            elif value is None:
                lines.append(f"del {name}[{out.value(key)}]")
            else:
                lines.append(f"{name}[{out.value(key)}] = {out.value(value)}")
        return keeping_hashes(lines, self.entries, out)

    def _replay_past_methods(self, name: str, base: Any, out: Rebuilder) -> list[str]:
        """Repeat the log on an instance of a subclass, past the methods of its class."""
        lines = []
        for operation, key, value in self.log:
            if operation == "clear":
                lines.append(f"{out.inject(base.clear)}({name})")
            elif operation in ("end", "front"):
                move = out.inject(base.move_to_end)
                lines.append(f"{move}({name}, {out.value(key)}, {operation == 'end'})")
            elif value is None:
                lines.append(f"{out.inject(base.__delitem__)}({name}, {out.value(key)})")
            else:
                setter = out.inject(base.__setitem__)
                lines.append(f"{setter}({name}, {out.value(key)}, {out.value(value)})")
        return keeping_hashes(lines, self.entries, out)


def missing(ctx: CaptureContext, key: Value) -> NoReturn:
    """Raise KeyError for a key."""
    raise Raised(ctx.call(ctx.known(KeyError), [ctx.realize(key)], {}))
