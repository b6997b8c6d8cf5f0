"""Sets and frozen sets, and the set operations of dictionary views.

Beside its members a set value keeps a real set of their tokens, changed by the very operations that the program
makes. Where the tokens hash as the program's objects do, it has the layout of the program's set: the order of
iteration, and what `pop` takes, can be read off.
"""

import itertools
import operator
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...constant import Constant
from ...guard import GuardKind
from ...identities import HashToken, settled, token_among
from ...operator_table import Binary, Comparison
from ...reasons import BUILTIN_METHOD, CANNOT_REBUILD, UNSUPPORTED_OBJECT
from ...source import SetOrder, Source
from ...type_attributes import type_attribute
from ...value import Arguments, CaptureContext, Keywords, Raised, Rebuilder, Value, defines
from ..deep_copies import deep_copied
from .kept_hashes import keeping_hashes
from .sequences import SequenceValue, TableIterator, call_dunder
from .tuples import TupleValue

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
_METHODS = {
    "|": "update",
    "&": "intersection_update",
    "-": "difference_update",
    "^": "symmetric_difference_update",
}
SET_OPERATORS = frozenset(_METHODS)


class SetOperand(Value):
    """What has the operators of sets, or is read by them: a set, a dictionary, a view of one."""

    def has_set_operators(self) -> bool:
        """Return whether `|`, `&`, `-` and `^` are those of sets."""
        return False

    def real_tokens(self, pool: "TokenPool") -> Any:
        """Return a real container of the same kind over the tokens of the elements."""
        raise NotImplementedError

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare sets as Python compares real ones; None for anything but two of them."""
        if self is other or not (self.has_set_operators() and has_set_operators(other)):
            return None
        left, right = (other, self) if reflected else (self, other)
        return on_tokens(ctx, record.function, left, right)


def has_set_operators(value: Value) -> bool:
    """Return whether `|`, `&`, `-` and `^` of a value are those of sets."""
    return isinstance(value, SetOperand) and value.has_set_operators()


@dataclass(frozen=True, slots=True)
class SetChange:
    """A change of a set from outside: the method that made it, or the members that it has exchanged.

    method: None where it or its arguments are not known.
    """

    method: str | None
    given: tuple[Value, ...] = ()
    exchanged: tuple[tuple[str, Value], ...] = ()

    def calls(self) -> list[tuple[str, tuple[Value, ...]]]:
        """Return the calls that make it: of the method, if nothing that it was given has changed since."""
        changed = any(isinstance(value, SetValue) and value.log for value in self.given)
        if self.method is None or changed:
            return [(method, (value,)) for method, value in self.exchanged]
        return [(self.method, self.given)]


class SetValue(SetOperand):
    """A set or frozenset. tokens: the real set of tokens; members: by token, in the order in which they were added."""

    equal_by_identity = True  # with another set `compare` has answered

    def __init__(self, kind: type = set, source: Source | None = None) -> None:
        self.kind = kind
        self.source = source
        self.tokens: Any = kind()
        self.members: dict[Hashable, Value] = {}
        self.log: list[SetChange] = []
        self.exact = source is None  # the real set has the layout of the program's
        self.changes = 0

    @classmethod
    def of(cls, ctx: CaptureContext, items: Iterable[Value], kind: type = set) -> "SetValue":
        """Return a new set of the items, added one after the other."""
        result = cls(kind)
        for item in items:
            value = ctx.realize(item)
            result.members.setdefault(value.hash_token(ctx), value)
        with settled(result.members):
            result.tokens = kind(list(result.members))  # from a dict it would be laid out otherwise
        return result

    @classmethod
    def of_keys(cls, entries: Mapping[Hashable, Any], kind: type) -> "SetValue":
        """Return a new set of the keys of a plain dictionary, which are not asked for their hashes again."""
        result = cls(kind)
        with settled(entries):
            result.members = {token: entry.key for token, entry in entries.items()}
            keys = dict.fromkeys(result.members)
        result.tokens = kind(keys)  # Python lays it out at once
        return result

    @classmethod
    def of_members(cls, frozen: "SetValue") -> "SetValue":
        """Return another frozen set than a frozen set, of its members."""
        copy = copy_of_set(frozen, set)
        copy.kind, copy.tokens = frozenset, frozenset(copy.tokens)
        return copy

    @classmethod
    def like(cls, ctx: CaptureContext, real: Any) -> "SetValue":
        """Return a set with the members and the layout of a real one, which nobody else changes."""
        result = cls(type(real))
        result.tokens = real
        result.members = {item: ctx.known(item) for item in real}
        return result

    def has_set_operators(self) -> bool:
        """Return True."""
        return True

    def real_tokens(self, pool: "TokenPool") -> Any:
        """Return the set of tokens."""
        pool.add(self)
        return self.tokens

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Unite, cut, subtract; a set from the left in place."""
        if record.symbol not in SET_OPERATORS or not has_set_operators(other):
            return None
        if inplace and not reflected and self.kind is set:
            return self.change(ctx, record.assigning, [other], method=_METHODS[record.symbol])
        left, right = (other, self) if reflected else (self, other)
        return on_tokens(ctx, record.assigning if inplace else record.function, left, right)

    def initialise_instance(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> None:
        """Evaluate `__init__`; frozen sets were filled when they were made."""
        if self.kind is not frozenset:
            self.call_method(ctx, "__init__", args, kwargs)

    def fill_instance(self, name: str, base: type, out: Rebuilder) -> list[str]:
        """Return the statement that adds the members."""
        members = "".join(f"{out.value(member)}, " for member in self.laid_out())
        return keeping_hashes([f"{out.inject(set.update)}({name}, ({members}))"], self.members, out)

    def shallow_copy(self, ctx: CaptureContext) -> Value:
        """Return a new set of the same members."""
        return self.call_method(ctx, "copy", [], {})

    def deep_copy(self, ctx: CaptureContext, memo: dict[int, Value]) -> Value:
        """Return a new set of copies."""
        return SetValue.of(ctx, [deep_copied(ctx, member, memo) for member in self.laid_out()], self.kind)

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
        return self.tokens.copy() if plain else self.kind(member.constant() for member in self.laid_out())

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

    def laid_out(self) -> list[Value]:
        """Return the members in the order of the tokens."""
        with settled(self.members):
            return [self.members[token] for token in self.tokens]

    def layout_is_known(self) -> bool:
        """Return whether the real set is laid out as the program's."""
        return self.exact and self.source is None and _hashes_are_real(self.members)

    def ordered(self, ctx: CaptureContext) -> list[Value]:
        """Return the members in the order of the real set; Break if it cannot be known."""
        if len(self.members) < 2:
            return list(self.members.values())
        if self.source is None:
            if not self.exact:
                self.unsupported(
                    "iteration over a set made of one from outside, whose layout is not known", UNSUPPORTED_OBJECT
                )
            if not _hashes_are_real(self.members):
                self.unsupported("iteration over a set of objects, whose order is not known", UNSUPPORTED_OBJECT)
            return self.laid_out()
        if self.log:
            self.unsupported("iteration over a set from outside that was changed", UNSUPPORTED_OBJECT)
        members = list(self.members.values())  # in the order of the original: so it was wrapped
        if any(member.source is None for member in members):
            ctx.guards.add(SetOrder(self.source), GuardKind.EQUALS, tuple(member.constant() for member in members))
        return members

    def iterate(self, ctx: CaptureContext) -> Value:
        """Iterate in the order of the real set."""
        return SetIterator(self, self.ordered(ctx))

    def contains(self, ctx: CaptureContext, item: Value) -> bool:
        """Test by hash; a set is looked for as the frozen set that is equal to it."""
        value = as_frozen(ctx, ctx.realize(item))
        return token_among(ctx, self, value) in self.tokens

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Return a method."""
        return type_attribute(ctx, self, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate a set method by the real one on tokens."""
        if name in ("__len__", "__contains__", "__iter__"):
            return call_dunder(ctx, self, name, args)
        if name == "__init__":
            self.change(ctx, lambda tokens, *rest: (tokens.clear(), tokens.update(*rest))[0], args)
            return Constant(None)
        if kwargs or not hasattr(self.kind, name):
            self.refuse(ctx, f"method {name!r}", lambda value: getattr(value, name)(**kwargs), reason=BUILTIN_METHOD)
        if name in _CHANGES:
            if name == "pop" and len(self.members) > 1 and not self.layout_is_known():
                self.unsupported("pop of a set whose layout is not known", UNSUPPORTED_OBJECT)
            if name == "clear" and not args:
                return self.change(ctx, _clear, args)
            if name == "update":
                return self._update(ctx, args)
            one = name in ("add", "discard", "remove")
            act = _add if name == "add" and len(args) == 1 else lambda tokens, *rest: getattr(tokens, name)(*rest)
            return self.change(ctx, act, args, by_token=one, method=None if one or name == "pop" else name)
        if name.startswith("__"):
            self.unsupported(f"method {name!r}", BUILTIN_METHOD)
        if name == "copy" and self.kind is frozenset:
            return self
        pool, reals = TokenPool(ctx, self), [self.tokens]
        reals += [pool.real(ctx.realize(arg)) for arg in args]
        return pool.result(lambda: getattr(reals[0], name)(*reals[1:]))

    def _update(self, ctx: CaptureContext, args: Arguments) -> Value:
        """Add the members of sets at once, and what code of the program gives one by one: it may look at this set."""
        for arg in args:
            value = ctx.realize(arg)
            if isinstance(value, SetOperand | SequenceValue | Constant):
                self.change(ctx, lambda tokens, other: tokens.update(other), [value], method="update")
                continue
            for item in value.each(ctx):
                self.change(ctx, _add, [item], by_token=True)
        return Constant(None)

    def change(
        self,
        ctx: CaptureContext,
        act: Callable[..., object],
        args: Arguments,
        *,
        by_token: bool = False,
        method: str | None = None,
    ) -> Value:
        """Change the set by a real operation on the tokens; by_token: the arguments are members.

        method: does the same to the program's set; exchanged one by one its members may come to lie otherwise.
        """
        pool = TokenPool(ctx, self)
        values = [ctx.realize(arg) for arg in args]
        reals = [pool.token(value, looked_for=act is not _add) if by_token else pool.real(value) for value in values]
        before, given = dict(self.members), None if method is None else _as_they_are(self, values)
        whole = SetChange(None)
        try:
            answer = pool.run(lambda: act(self.tokens, *reals))
            whole = SetChange(None if given is None else method, given or ())
        finally:  # what an iterable raises comes between two members
            self._note_change(ctx, pool, before, act, by_token, whole)
        if answer is None or isinstance(answer, tuple):
            return Constant(None)
        return self if answer is self.tokens else pool.value(answer)

    def _note_change(
        self,
        ctx: CaptureContext,
        pool: "TokenPool",
        before: dict[Hashable, Value],
        act: Callable[..., object],
        by_token: bool,
        whole: SetChange,
    ) -> None:
        """Take over what a real operation has done to the tokens."""
        self.members = pool.members(self.tokens)
        here, there = {id(token) for token in self.tokens}, {id(token) for token in before}
        gone = [value for token, value in before.items() if not _is_among(token, self.tokens, here)]
        self.exact = self.exact and pool.exact
        self.changes += not by_token or here != there  # another operation may make it anew
        ctx.effects.let_go(self, gone)
        if self.source is not None and act is _clear:
            self.log = [SetChange("clear")]
        elif self.source is not None:
            new = [value for token, value in self.members.items() if not _is_among(token, before, there)]
            exchanged = (*(("discard", value) for value in gone), *(("add", value) for value in new))
            if exchanged or whole.method is not None:
                self.log.append(replace(whole, exchanged=exchanged))
        ctx.effects.mutated(self)

    def rebuild(self, out: Rebuilder) -> str:
        """Make a new set."""
        name = out.fresh()
        order = _insertion_order(self)
        with settled(order):
            added = [self.members[token] for token in order]
        members = "".join(f"{out.value(member)}, " for member in added)
        for line in keeping_hashes([f"{name} = {out.inject(self.kind)}(({members}))"], order, out):
            out.line(line)
        return name

    def replay(self, out: Rebuilder) -> list[str]:
        """Repeat the changes on the original."""
        name, lines = out.value(self), list[str]()
        for method, given in (call for change in self.log for call in change.calls()):
            arguments = ", ".join([name, *map(out.value, given)])
            lines.append(f"{out.inject(getattr(set, method))}({arguments})")
        return keeping_hashes(lines, self.members, out)


def _as_they_are(owner: SetValue, values: list[Value]) -> tuple[Value, ...] | None:
    """Return arguments of a change as they are now, whatever the program does to them; None if they are not known."""
    found = list[Value]()
    for value in values:
        contents = value.contents or value
        if isinstance(contents, SetValue) and contents.source is None and contents.exact:
            order = _order_of_adding(contents)
            if order is None:
                return None
            copy = copy_of_set(contents, contents.kind)
            with settled(order):
                copy.tokens = contents.kind(order)  # a copy of a real set has another table, so another order
            found.append(copy)
        elif isinstance(value, SetValue) and value.source is not None and value is not owner and not value.log:
            found.append(value)
        elif isinstance(value, SequenceValue):
            found.append(TupleValue(list(value.items)))
        elif isinstance(value, Constant):
            found.append(value)
        else:
            return None
    return tuple(found)


def _is_among(token: Hashable, tokens: Container[Hashable], numbers: set[int]) -> bool:
    """Return whether a token is among others; what has a hash of its own is not compared, which calls the program."""
    return id(token) in numbers if isinstance(token, HashToken) else token in tokens


def _add(tokens: Any, token: Hashable) -> None:
    tokens.add(token)


def as_frozen(ctx: CaptureContext, value: Value) -> Value:
    """Return the frozen set that a set is looked for as: one that has no hash of its own."""
    contents = value.contents or value
    if not isinstance(contents, SetValue) or contents.kind is not set:
        return value
    try:
        value.hash_token(ctx)
    except Raised as raised:
        if issubclass(raised.value.python_type(), TypeError):
            return copy_of_set(contents, frozenset)
        raise
    return value


def _clear(tokens: Any) -> None:
    """Empty a set; unlike discarding its members, that makes its table anew."""
    tokens.clear()


def _hashes_are_real(members: Mapping[Hashable, Value]) -> bool:
    """Return whether the tokens hash as the program's objects do."""
    return all(value.is_constant() or isinstance(token, HashToken) for token, value in members.items())


def _insertion_order(value: SetValue) -> list[Hashable]:
    """Return an order of adding the members that gives a set the order of iteration that this one has."""
    order = _order_of_adding(value)
    if order is None:
        value.unsupported("rebuilding a set whose order comes from its history", UNSUPPORTED_OBJECT)
    return order


def _order_of_adding(value: SetValue) -> list[Hashable] | None:
    """Return such an order, as a rule that of their history; None where none of those tried is."""
    tokens = list(value.tokens)
    if not _hashes_are_real(value.members) or not value.exact:
        return tokens
    tried = itertools.chain([list(value.members)], itertools.islice(itertools.permutations(tokens), _TRIES))
    with settled(tokens):
        return next((list(order) for order in tried if list(value.kind(order)) == tokens), None)


class SetIterator(TableIterator):
    """An iterator over a set; the tokens say how it goes on where the set changes."""

    def __init__(self, owner: SetValue, elements: list[Value]) -> None:
        super().__init__(iter, owner, iter(owner.tokens))
        self.owner = owner
        self.elements = elements
        self.changes = owner.changes

    def changed(self) -> bool:
        """Return whether the set may be laid out otherwise."""
        return self.owner.changes != self.changes

    def demand_order(self) -> None:
        """Raise Break where members were exchanged, unless it is known where."""
        if len(self.owner.tokens) == len(self.elements) and not self.owner.layout_is_known():
            self.unsupported("going on over a set whose members were exchanged", UNSUPPORTED_OBJECT)

    def element(self, ctx: CaptureContext, found: Any) -> Value:
        """Return the member; the tokens of a set that is as it was may lie in another order."""
        if not self.changed():
            return self.elements[self.steps]
        with settled([found]):
            return self.owner.members[found]

    def rebuild(self, out: Rebuilder) -> str:
        """Make an iterator at the same position over a set that does not change after this."""
        if self.owner.log and not self.ended:
            self.unsupported("handing over an iterator over a set that has changed", CANNOT_REBUILD)
        return super().rebuild(out)


class TokenPool:
    """The values that stand behind tokens while a real operation runs on them."""

    def __init__(self, ctx: CaptureContext, *sets: SetValue) -> None:
        self.ctx = ctx
        self.exact = True
        self.keeps_hashes = False  # a view of keys is made a set at once; else its keys are asked one by one
        self.values: dict[int, tuple[Hashable, Value]] = {}
        self.asked: dict[int, Value] = {}  # what was looked for as another value
        self.outside = next((one for one in sets if one.source is not None), None)
        self.pairs: dict[Hashable, Value] = {}  # by their tokens, for items of dictionaries
        for one in sets:
            self.add(one)

    def add(self, one: SetValue) -> None:
        """Take the members of a set."""
        self.exact = self.exact and one.exact and one.source is None
        for token, value in one.members.items():
            self.values[id(token)] = (token, value)

    def token(self, value: Value, *, looked_for: bool = False) -> Hashable:
        """Return the token of a value; a set is looked for as the frozen set that is equal to it."""
        asked, value = value, as_frozen(self.ctx, value) if looked_for else value
        token = value.hash_token(self.ctx) if self.outside is None else token_among(self.ctx, self.outside, value)
        self.values[id(token)] = (token, value)
        if asked is not value:
            self.asked[id(token)] = asked
        return token

    def value(self, token: Any) -> Value:
        """Return the value behind a token."""
        row = self.values.get(id(token))
        return row[1] if row is not None else self.ctx.known(token)

    def real(self, value: Value, *, operand: bool = False) -> Any:
        """Return a real container of tokens; operand: only what operators of sets take is looked into."""
        if isinstance(value.contents, SetValue):  # C looks past the methods of a subclass
            value = value.contents
        if isinstance(value, SetOperand) and (value.has_set_operators() or not operand):
            return value.real_tokens(self)
        if isinstance(value, Constant) and isinstance(value.value, str | bytes) and not operand:
            return (self.token(element) for element in map(self.ctx.known, value.value))
        if isinstance(value, Constant):
            return value.constant()
        if operand or not any(defines(value.python_type(), name) for name in ("__iter__", "__getitem__")):
            return value.stand_in()
        elements = value.each(self.ctx)
        return (self.token(element) for element in elements)  # one by one, as the operation takes them

    def run(self, act: Callable[[], object]) -> object:
        """Run a real operation; its exception is raised in the program."""
        try:
            return act()
        except Exception as error:
            if isinstance(error, KeyError):
                raise Raised(
                    self.ctx.call(self.ctx.known(KeyError), list(map(self._asked_for, error.args)), {})
                ) from None
            self.ctx.throw(type(error), *error.args)

    def _asked_for(self, token: Any) -> Value:
        """Return what the program has asked for by a token: a set, where the frozen one was looked for."""
        return self.asked.get(id(token)) or self.value(token)

    def result(self, act: Callable[[], object]) -> Value:
        """Return the value of what a real operation gives: a set of tokens, or a verdict."""
        answer = self.run(act)
        if not isinstance(answer, set | frozenset):
            return Constant(answer)
        result = SetValue(type(answer))
        result.tokens = answer
        result.exact = self.exact
        result.members = self.members(answer)
        return result

    def members(self, tokens: Iterable[Hashable]) -> dict[Hashable, Value]:
        """Return the members of a set by their tokens, in the order in which the operation was given them."""
        places = {key: place for place, key in enumerate(self.values)}
        given = sorted(tokens, key=lambda token: places.get(id(token), len(places)))
        with settled(given):
            return {token: self._member(token) for token in given}

    def _member(self, token: Any) -> Value:
        return self.pairs[token] if token in self.pairs else self.value(token)


def on_tokens(ctx: CaptureContext, function: Callable[[Any, Any], object], left: Value, right: Value) -> Value:
    """Evaluate an operator on sets or views that changes nothing."""
    pool = TokenPool(ctx)
    pool.keeps_hashes = function in (operator.or_, operator.sub, operator.xor)
    looked_into = any(has_set_operators(value) and not isinstance(value, SetValue) for value in (left, right))
    first, second = (pool.real(value, operand=not looked_into) for value in (left, right))
    return pool.result(lambda: function(first, second))


def steps(ctx: CaptureContext, value: Value) -> Iterator[Value]:
    """Give the elements of a set whose order does not matter to the caller."""
    return iter(value.members.values() if isinstance(value, SetValue) else ctx.unpack(value))


def copy_of_set(value: SetValue, kind: type) -> SetValue:
    """Evaluate `kind(value)`; a frozen set of a frozen set is itself."""
    if kind is frozenset is value.kind:
        return value
    copy = SetValue(kind)
    copy.tokens, copy.members = kind(value.tokens), dict(value.members)
    copy.exact = value.exact
    return copy
