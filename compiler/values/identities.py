"""Numbers that are new in every call, `id()` and the thread's: compared and looked up, never calculated with."""

import _thread
from collections.abc import Hashable

from .constant import Constant
from .reasons import UNSUPPORTED_OPERATION, Break
from .rule_tables import calls
from .value import Arguments, CaptureContext, Keywords, Rebuilder, Value


class _Token(tuple[object, ...]):
    """What stands for the number as a dict key."""


def token_among(ctx: CaptureContext, container: Value, key: Value) -> Hashable:
    """Return the key's token in a container; among keys from outside may be the number itself, which is not known."""
    token = key.hash_token(ctx)
    if container.source is not None and _is_new(token) and _may_hold_numbers(ctx, container):
        raise Break(UNSUPPORTED_OPERATION, "id(), looked up among keys from outside")
    return token


def _may_hold_numbers(ctx: CaptureContext, container: Value) -> bool:
    """Return whether a container from outside has a key that may be the number; an empty set of names has none."""
    members = getattr(container, "members", None)
    keys = members if members is not None else container.read_all(ctx)  # type: ignore[attr-defined]  # a dictionary
    return any(not _is_new(key) and not isinstance(key, str) for key in keys)


def _is_new(token: object) -> bool:
    return isinstance(token, _Token) or (isinstance(token, tuple) and any(map(_is_new, token)))


class IdentityValue(Value):
    """What `id(owner)` gives; owner None: the number of the thread."""

    def __init__(self, owner: Value | None) -> None:
        self.owner = owner

    def python_type(self) -> type:
        """Return int."""
        return int

    def truth(self, ctx: CaptureContext) -> bool:
        """No object, and no thread, has the number 0."""
        return True

    def same(self, ctx: CaptureContext, other: "IdentityValue") -> bool:
        """Evaluate `self == other`."""
        if self.owner is None or other.owner is None:
            return self.owner is other.owner
        ctx.told_apart(self.owner)
        ctx.told_apart(other.owner)
        return self.owner.identity() is other.owner.identity()

    def hash_token(self, ctx: CaptureContext) -> Hashable:
        """Identities are equal for one object."""
        if self.owner is None:
            return _Token(("thread",))
        ctx.told_apart(self.owner)
        found = self.owner.identity()
        if isinstance(self.owner, Constant):
            return _Token((type(found), found))
        return _Token((id(found),))

    def rebuild(self, out: Rebuilder) -> str:
        """Ask again at run time."""
        if self.owner is None:
            return f"{out.inject(_thread.get_ident)}()"
        return f"{out.inject(id)}({out.value(self.owner)})"


@calls(id)
def _id(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return IdentityValue(ctx.real(args[0]))


@calls(_thread.get_ident)
def _thread_number(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return IdentityValue(None)
