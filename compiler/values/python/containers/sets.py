"""Sets and frozen sets, and the set operations of dictionary views.

Beside its members a set value keeps a real set of their tokens, changed by the very operations that the program
makes. Where the tokens hash as the program's objects do, it has the layout of the program's set: the order of
iteration, and what `pop` takes, can be read off.
"""

import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

from ...constant import Constant, MethodOf
from ...guard import GuardKind
from ...identities import token_among
from ...reasons import UNSUPPORTED_OBJECT, Break
from ...source import Listed, Source
from ...value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value, defines
from .mappings import DictValue, DictView, HashToken
from .sequences import SequenceIterator, TupleValue, call_dunder

_PRINTABLE = frozenset({int, str, bool, type(None)})
_TRIES = 1000
_CHANGES = frozenset(
    {
        "add",
        "discard",
        "remove",
        "pop",
        "clear",
        "update",
        "difference_update",
        "intersection_update",
        "symmetric_difference_update",
        "__ior__",
        "__iand__",
        "__isub__",
        "__ixor__",
    }
)
_ASSIGNING = {"|": operator.ior, "&": operator.iand, "-": operator.isub, "^": operator.ixor}
PLAIN: dict[str, Callable[[Any, Any], object]] = {
    "|": operator.or_,
    "&": operator.and_,
    "-": operator.sub,
    "^": operator.xor,
}


class SetValue(Value):
    """A set or frozenset. tokens: the real set of tokens; members: by token."""

    def __init__(self, kind: type = set, source: Source | None = None) -> None:
        self.kind = kind
        self.source = source
        self.tokens: Any = kind()
        self.members: dict[Hashable, Value] = {}
        self.log: list[tuple[str, Value | None]] = []
        self.exact = source is None  # the real set has the layout of the program's

    @classmethod
    def of(cls, ctx: CaptureContext, items: Iterable[Value], kind: type = set) -> "SetValue":
        """Return a new set of the items, added one after the other."""
        made = cls(kind)
        for item in items:
            value = ctx.real(item)
            made.members.setdefault(value.hash_token(ctx), value)
        made.tokens = kind(list(made.members))  # from a dict it would be laid out otherwise
        return made

    @classmethod
    def like(cls, ctx: CaptureContext, real: Any) -> "SetValue":
        """Return a set with the members and the layout of a real one, which nobody else changes."""
        made = cls(type(real))
        made.tokens = real
        made.members = {item: ctx.known(item) for item in real}
        return made

    def python_type(self) -> type:
        """Return set or frozenset."""
        return self.kind

    def stand_in(self) -> object:
        """Return an empty set of the kind."""
        return self.kind()

    def is_constant(self) -> bool:
        """Return whether all members are known."""
        return all(member.is_constant() for member in self.members.values())

    def constant(self) -> object:
        """Return a fresh set."""
        plain = all(type(token) in _PRINTABLE for token in self.tokens)
        return self.tokens.copy() if plain else self.kind(self.members[token].constant() for token in self.tokens)

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Frozen sets hash by their members."""
        if self.kind is not frozenset:
            self.refuse(ctx, "hash", hash)
        return frozenset(self.tokens)

    def truth(self, ctx: CaptureContext) -> bool:
        """Return whether it has members."""
        return bool(self.members)

    def length(self, ctx: CaptureContext) -> Value:
        """Return the number of members."""
        return Constant(len(self.members))

    def _hashes_are_real(self) -> bool:
        return all(value.is_constant() or isinstance(token, HashToken) for token, value in self.members.items())

    def ordered(self, ctx: CaptureContext) -> list[Value]:
        """Return the members in the order of the real set; Break if it cannot be known."""
        if len(self.members) < 2:
            return list(self.members.values())
        if self.source is None:
            if not self.exact:
                self.no("iteration over a set made of one from outside, whose layout is not known", UNSUPPORTED_OBJECT)
            if not self._hashes_are_real():
                self.no("iteration over a set of objects, whose order is not known", UNSUPPORTED_OBJECT)
            return [self.members[token] for token in self.tokens]
        if self.log:
            self.no("iteration over a set from outside that was changed", UNSUPPORTED_OBJECT)
        members = list(self.members.values())  # in the order of the original: so it was wrapped
        if any(member.source is None for member in members):
            ctx.guard(Listed(self.source), GuardKind.EQUALS, tuple(member.constant() for member in members))
        return members

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate in the order of the real set."""
        return SetIterator(self, self.ordered(ctx))

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Test by hash; a set is looked for as the frozen set that is equal to it."""
        value = ctx.real(item)
        if isinstance(value, SetValue) and value.kind is set:
            return frozenset(value.tokens) in self.tokens
        return token_among(ctx, self, value) in self.tokens

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        if name == "__class__":
            return ctx.known(self.kind)
        if not hasattr(self.kind, name):
            self.refuse(ctx, f"attribute {name!r}", lambda value: getattr(value, name))
        return MethodOf(self, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a set method by the real one on tokens."""
        if name in ("__len__", "__contains__", "__iter__"):
            return call_dunder(ctx, self, name, args)
        if name == "__init__":
            self.change(ctx, lambda tokens, *rest: (tokens.clear(), tokens.update(*rest))[0], args)
            return Constant(None)
        if kwargs or not hasattr(self.kind, name):
            self.refuse(ctx, f"method {name!r}", lambda value: getattr(value, name)(**kwargs))
        if name in _CHANGES:
            known = self.exact and self.source is None and self._hashes_are_real()
            if name == "pop" and len(self.members) > 1 and not known:
                self.no("pop of a set whose layout is not known", UNSUPPORTED_OBJECT)
            one = name in ("add", "discard", "remove")
            return self.change(ctx, lambda tokens, *rest: getattr(tokens, name)(*rest), args, by_token=one)
        if name.startswith("__"):
            self.no(f"method {name!r}")
        pool, reals = _Pool(ctx, self), [self.tokens]
        reals += [pool.real(ctx.real(arg)) for arg in args]
        return pool.result(lambda: getattr(reals[0], name)(*reals[1:]))

    def change(
        self, ctx: CaptureContext, act: Callable[..., object], args: Arguments, *, by_token: bool = False
    ) -> Value:
        """Change the set by a real operation on the tokens; by_token: the arguments are members."""
        pool = _Pool(ctx, self)
        reals = [pool.token(ctx.real(arg)) if by_token else pool.real(ctx.real(arg)) for arg in args]
        before = dict(self.members)
        found = pool.run(lambda: act(self.tokens, *reals))
        self.members = {token: before.get(token) or pool.value(token) for token in self.tokens}
        self.exact = self.exact and pool.exact
        if self.source is not None:
            self.log += [("discard", value) for token, value in before.items() if token not in self.tokens]
            self.log += [("add", value) for token, value in self.members.items() if token not in before]
        ctx.mutated(self)
        if found is None or isinstance(found, tuple):
            return Constant(None)
        return self if found is self.tokens else pool.value(found)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new set."""
        name = out.fresh()
        members = "".join(f"{out.value(self.members[token])}, " for token in self._insertion_order())
        out.line(f"{name} = {out.inject(self.kind)}(({members}))")
        return name

    def _insertion_order(self) -> list[Hashable]:
        """Return an order of adding the members that gives a set the order of iteration that this one has."""
        wanted = list(self.tokens)
        if not self._hashes_are_real() or not self.exact:
            return wanted
        for order in itertools.islice(itertools.permutations(wanted), _TRIES):
            if list(self.kind(order)) == wanted:
                return list(order)
        self.no("rebuilding a set whose order comes from its history", UNSUPPORTED_OBJECT)

    def replay(self, out: Rebuilder) -> list[str]:
        """Repeat the changes on the original."""
        name, methods = out.value(self), {word: out.inject(getattr(set, word)) for word in ("add", "discard")}
        return [f"{methods[operation]}({name}, {out.value(item)})" for operation, item in self.log if item is not None]


class SetIterator(SequenceIterator):
    """An iterator over a set, which must not change size meanwhile."""

    def __init__(self, owner: SetValue, elements: list[Value]) -> None:
        super().__init__(TupleValue(elements))
        self.members = owner
        self.size = len(elements)

    def python_type(self) -> type:
        """Return the iterator type."""
        return type(iter(set()))

    def next(self, ctx: CaptureContext) -> Value:
        """Give the next element; raise RuntimeError if the size changed."""
        if len(self.members.members) != self.size:
            ctx.throw(RuntimeError, "Set changed size during iteration")
        return super().next(ctx)


class _Pool:
    """The values that stand behind tokens while a real operation runs on them."""

    def __init__(self, ctx: CaptureContext, *sets: SetValue) -> None:
        self.ctx = ctx
        self.exact = True
        self.values: dict[int, tuple[Hashable, Value]] = {}
        self.outside = next((one for one in sets if one.source is not None), None)
        for one in sets:
            self._add(one)

    def _add(self, one: SetValue) -> None:
        self.exact = self.exact and one.exact and one.source is None
        for token in one.tokens:
            self.values[id(token)] = (token, one.members[token])

    def token(self, value: Value) -> Hashable:
        """Return the token of a value."""
        token = value.hash_token(self.ctx) if self.outside is None else token_among(self.ctx, self.outside, value)
        self.values[id(token)] = (token, value)
        return token

    def value(self, token: Any) -> Value:
        """Return the value behind a token."""
        found = self.values.get(id(token))
        return found[1] if found is not None else self.ctx.known(token)

    def real(self, value: Value, *, operand: bool = False) -> Any:
        """Return a real container of tokens; operand: only what operators of sets take is looked into."""
        if isinstance(value, SetValue):
            self._add(value)
            return value.tokens
        if operand and not isinstance(value, DictView | Constant):
            return value.stand_in()
        if isinstance(value, DictValue):
            return dict.fromkeys(self.token(entry.key) for entry in value.read_all(self.ctx).values())
        if isinstance(value, DictView) and value.part == "keys":
            return dict.fromkeys(map(self.token, value.elements(self.ctx))).keys()
        if isinstance(value, DictView) and value.part == "items":
            return self._items(value)
        if isinstance(value, Constant):
            return value.constant()
        if operand or not defines(value.python_type(), "__iter__"):
            return value.stand_in()
        return [self.token(element) for element in self.ctx.unpack(value)]

    def _items(self, view: DictView) -> object:
        made: dict[Hashable, Hashable] = {}
        for entry in view.owner.read_all(self.ctx).values():
            try:
                made[self.token(entry.key)] = self.token(self.ctx.real(entry.value))
            except Raised:
                raise Break(UNSUPPORTED_OBJECT, "a set operation on items that do not hash") from None
        items = made.items()
        pairs = {
            (entry.key.hash_token(self.ctx), self.ctx.real(entry.value).hash_token(self.ctx)): entry
            for entry in view.owner.read_all(self.ctx).values()
        }
        self.pairs = {pair: TupleValue([entry.key, entry.value]) for pair, entry in pairs.items()}
        return items

    def run(self, act: Callable[[], object]) -> object:
        """Run a real operation; its exception is raised in the program."""
        try:
            return act()
        except Exception as error:
            if isinstance(error, KeyError):
                self.ctx.throw(KeyError, *(self._thrown(token) for token in error.args))
            self.ctx.throw(type(error), *error.args)

    def _thrown(self, token: Any) -> object:
        value = self.value(token)
        return value.constant() if value.is_constant() else value.no("the words of a KeyError")

    def result(self, act: Callable[[], object]) -> Value:
        """Return the value of what a real operation gives: a set of tokens, or a verdict."""
        found = self.run(act)
        if not isinstance(found, set | frozenset):
            return Constant(found)
        made = SetValue(type(found))
        made.tokens = found
        made.exact = self.exact
        made.members = {token: self._member(token) for token in found}
        return made

    def _member(self, token: Any) -> Value:
        pairs: dict[Hashable, Value] = getattr(self, "pairs", {})
        return pairs[token] if token in pairs else self.value(token)


def set_operation(ctx: CaptureContext, symbol: str, left: Value, right: Value, *, inplace: bool) -> Value:
    """Evaluate `left <symbol> right` where one of them is a set or a view of a dictionary."""
    if inplace and isinstance(left, SetValue) and left.kind is set:
        if not isinstance(right, SetValue | DictView) or (isinstance(right, DictView) and right.part == "values"):
            left.refuse(ctx, f"{symbol}=", _ASSIGNING[symbol], right)
        return left.change(ctx, _ASSIGNING[symbol], [right])
    return compare_sets(ctx, _ASSIGNING[symbol] if inplace else PLAIN[symbol], left, right)


def compare_sets(ctx: CaptureContext, function: Callable[[Any, Any], object], left: Value, right: Value) -> Value:
    """Evaluate an operator on sets or views that changes nothing."""
    pool = _Pool(ctx)
    looked_into = any(isinstance(value, DictView) and value.part != "values" for value in (left, right))
    first, second = (pool.real(value, operand=not looked_into) for value in (left, right))
    return pool.result(lambda: function(first, second))


def steps(ctx: CaptureContext, value: Value) -> Iterator[Value]:
    """Give the elements of a set whose order does not matter to the caller."""
    return iter(value.members.values() if isinstance(value, SetValue) else ctx.unpack(value))


def copy_of_set(value: SetValue, kind: type) -> SetValue:
    """Evaluate `kind(value)`; a frozen set of a frozen set is itself."""
    if kind is frozenset is value.kind:
        return value
    made = SetValue(kind)
    made.tokens, made.members = kind(value.tokens), dict(value.members)
    made.exact = value.exact
    return made
