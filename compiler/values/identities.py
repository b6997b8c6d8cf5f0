"""Which object it is: `is`, what stands for an object as a dict key, and `id()`.

The numbers of `id()` and of the thread are new in every call: compared and looked up, never calculated with.
"""

import _thread
from collections.abc import Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager

import torch

from .constant import OF_ANY_IDENTITY, Constant
from .guard import GuardKind
from .operator_table import Binary, Comparison
from .reasons import IDENTITY_NUMBER, UNSUPPORTED_OBJECT, Break
from .rule_tables import calls
from .value import Arguments, CaptureContext, Keywords, Rebuilder, Value


def is_same(ctx: CaptureContext, left: Value, right: Value) -> bool:
    """Evaluate `left is right`, guarding what makes the answer hold."""
    left, right = ctx.realize(left), ctx.realize(right)
    left.guard_identity(ctx)
    right.guard_identity(ctx)
    same = left.identity_beside(right) is right.identity_beside(left)
    if isinstance(left, Constant) and isinstance(right, Constant):
        _guard_which_objects(ctx, left, right, same)
    elif not same and left.python_type() is right.python_type() and left.python_type() in (int, float):
        raise Break(IDENTITY_NUMBER, f"{left.describe()} is {right.describe()}, numbers of which one varies")
    if same or left.source is None or right.source is None or isinstance(left, Constant):
        return same
    if left.python_type() is right.python_type():
        ctx.guards.add(None, GuardKind.DISTINCT, "distinct", (left.source, right.source))
    return False


def _guard_which_objects(ctx: CaptureContext, left: Constant, right: Constant, same: bool) -> None:
    """Demand that two numbers or texts are one object, or two, where equal ones from outside may be either."""
    kind, value = type(left.value), left.value
    if kind not in OF_ANY_IDENTITY or kind is not type(right.value) or repr(value) != repr(right.value):
        return  # their values tell them apart
    sources = [side.read_from for side in (left, right) if side.read_from is not None]
    if same and len(sources) == 2:
        ctx.guards.add(sources[0], GuardKind.SAME_AS, None, (sources[1],))
    elif same:
        for source in sources:
            ctx.guards.add(source, GuardKind.IDENTITY, value)
    elif len(sources) == 2:
        ctx.guards.add(None, GuardKind.DISTINCT, "distinct", tuple(sources))


class HashToken:
    """A dict key with a hash and equality of its own: the real dict asks the program."""

    def __init__(self, ctx: CaptureContext, value: Value, number: int) -> None:
        self.ctx = ctx
        self.value = value
        self.number = number
        self.settled = False  # whether it has been asked what it is equal to

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if isinstance(other, HashToken):
            if self.settled or other.settled:
                return self is other
            return self.ctx.same_or_equal(self.value, other.value)
        if self.settled:
            return False
        plain = isinstance(other, Hashable) and not isinstance(other, tuple) and not isinstance(other, Value)
        return plain and self.ctx.same_or_equal(self.value, self.ctx.known(other))


@contextmanager
def settled(tokens: Iterable[object]) -> Iterator[None]:
    """Tell keys apart by identity: what they are equal to has been asked, and each time would call the program."""
    changed = [token for token in tokens if isinstance(token, HashToken) and not token.settled]
    for token in changed:
        token.settled = True
    try:
        yield
    finally:
        for token in changed:
            token.settled = False


def stored_token(ctx: CaptureContext, key: Value) -> Hashable:
    """Return the token of a key that is in a container from outside, which has asked for its hash before.

    Raises Break where asking changes something, as it did then.
    """
    before = ctx.effects.count()
    token = key.hash_token(ctx)
    if isinstance(token, HashToken) and ctx.effects.count() != before:
        raise Break(UNSUPPORTED_OBJECT, f"{key.describe()} as a key, whose `__hash__` changes something")
    return token


class _Token(tuple[object, ...]):
    """What stands for the number as a dict key."""


class _NumberToken(HashToken):
    """What stands for the id() of a number or text from outside, of which an equal one may be another object."""


def key_among(ctx: CaptureContext, container: Value, key: Value) -> tuple[Value, Hashable]:
    """Return the key to look up in a container, and its token: among numbers from outside, that of a module is known.

    Such a module is guarded to be this very one. Raises Break for other objects: they may be others at the next call.
    """
    token = key.hash_token(ctx)
    if container.source is None or not _is_new(token):
        return key, token
    known = _known_keys(ctx, container)
    if token in known or all(_is_new(other) or isinstance(other, str) for other in known):
        return key, token  # an empty container, or one of names, cannot have the number
    owner = key.owner if isinstance(key, IdentityValue) else None
    module = owner.identity() if owner is not None else None
    if owner is None or owner.source is None or not isinstance(module, torch.nn.Module):
        raise Break(IDENTITY_NUMBER, "id(), looked up among keys from outside")
    ctx.guards.add(owner.source, GuardKind.IDENTITY, module)  # which keeps it alive, so the number stays its own
    return Constant(id(module)), id(module)


def token_among(ctx: CaptureContext, container: Value, key: Value) -> Hashable:
    """Return the token of a key that is looked up in a container; see `key_among`."""
    return key_among(ctx, container, key)[1]


def _known_keys(ctx: CaptureContext, container: Value) -> Collection[Hashable]:
    members = getattr(container, "members", None)
    keys = members if members is not None else container.read_all(ctx)  # type: ignore[attr-defined]  # a dictionary
    tokens: Collection[Hashable] = keys
    return tokens


def _is_new(token: object) -> bool:
    return isinstance(token, _Token | _NumberToken) or (isinstance(token, tuple) and any(map(_is_new, token)))


class IdentityValue(Value):
    """What `id(owner)` gives; owner None: the number of the thread."""

    always_true = True  # no object, and no thread, has the number 0

    def __init__(self, owner: Value | None) -> None:
        self.owner = owner

    def python_type(self) -> type:
        """Return int."""
        return int

    def binary(self, ctx: CaptureContext, record: Binary, other: Value, reflected: bool, inplace: bool) -> Value | None:
        """Break: the number is not known."""
        raise Break(IDENTITY_NUMBER, f"{record.symbol} with an id()")

    def compare(self, ctx: CaptureContext, record: Comparison, other: Value, reflected: bool) -> Value | None:
        """Compare with another identity; any number else is not known."""
        if isinstance(other, IdentityValue) and record.asks_equality:
            return Constant(self.same(ctx, other) == (record.symbol == "=="))
        left, right = (other, self) if reflected else (self, other)
        raise Break(IDENTITY_NUMBER, f"{left.describe()} {record.symbol} {right.describe()}, where one is an id()")

    def same(self, ctx: CaptureContext, other: "IdentityValue") -> bool:
        """Evaluate `self == other`."""
        if self.owner is None or other.owner is None:
            return self.owner is other.owner
        for owner in (self.owner, other.owner):
            ctx.guards.told_apart(owner)
        return is_same(ctx, self.owner, other.owner)

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Identities are equal for one object."""
        if self.owner is None:
            return _Token(("thread",))
        self.owner.guard_identity(ctx)
        ctx.guards.told_apart(self.owner)
        real = self.owner.identity()
        if isinstance(self.owner, Constant):
            token = _Token((type(real), real))
            return token if self.owner.read_from is None else _NumberToken(ctx, self, hash(token))
        if self.owner.python_type() in (int, float):
            raise Break(IDENTITY_NUMBER, f"id() of {self.owner.describe()}, a number that varies, as a key")
        return _Token((id(real),))

    def rebuild(self, out: Rebuilder) -> str:
        """Ask again at run time."""
        if self.owner is None:
            return f"{out.inject(_thread.get_ident)}()"
        return f"{out.inject(id)}({out.value(self.owner)})"


@calls(id)
def _id(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return IdentityValue(ctx.realize(args[0]))


@calls(_thread.get_ident)
def _thread_number(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return IdentityValue(None)
