"""Rebuilding a container of keys with hashes of their own without asking them again.

The program's `__hash__` and `__eq__` were called when its keys were added. Asked once more they may count the
question, give another number by now, or refuse. So while the container is filled its new keys belong to a class that
gives the numbers they gave then, and tells them apart by identity.
"""

import ctypes
from collections.abc import Iterable, Iterator
from typing import Any

from ...identities import HashToken
from ...value import Rebuilder


class KeptHashes:
    """A block in which objects have known hashes; those whose class cannot be exchanged are asked for theirs."""

    def __init__(self, *pairs: tuple[Any, int]) -> None:
        numbers = {id(owner): number for owner, number in pairs}
        stand_ins: dict[type, type | None] = {}
        self.exchanged: list[tuple[Any, type]] = []
        for owner, _ in pairs:
            kind = type(owner)
            if kind not in stand_ins:
                stand_ins[kind] = _stand_in(kind, numbers)
            stand_in = stand_ins[kind]
            try:
                if stand_in is not None:
                    _CLASS.__set__(owner, stand_in)
                    self.exchanged.append((owner, kind))
            except TypeError:  # it is laid out otherwise
                stand_ins[kind] = None

    def __enter__(self) -> None:
        """Do nothing more."""

    def __exit__(self, *error: object) -> None:
        """Give the objects their classes back."""
        for owner, kind in self.exchanged:
            _CLASS.__set__(owner, kind)


_CLASS = vars(object)["__class__"]  # also where a class of the user's says something else


def _stand_in(kind: type, numbers: dict[int, int]) -> type | None:
    """Return a class whose instances are laid out as those of a plain class, None for one that has slots."""
    if any("__slots__" in vars(base) for base in kind.__mro__ if base.__flags__ & _MADE_IN_PYTHON):
        return None
    native = next(base for base in kind.__mro__ if not base.__flags__ & _MADE_IN_PYTHON)
    members: dict[str, object] = {
        "__hash__": lambda self: numbers[id(self)],
        "__eq__": lambda self, other: self is other,
    }
    return type(kind.__name__, (native,), members)


_MADE_IN_PYTHON = 1 << 9  # the flag of classes that are objects of the heap


def keeping_hashes(statements: list[str], tokens: Iterable[object], out: Rebuilder) -> list[str]:
    """Return simple statements that fill a container, run while the new ones of its keys keep their hashes."""
    new = {id(token.value): token for token in _asked(tokens) if token.value.source is None}
    if not new or not statements:
        return statements
    pairs = ", ".join(f"({out.value(token.value)}, {token.number})" for token in new.values())
    return [f"with {out.inject(KeptHashes)}({pairs}): {'; '.join(statements)}"]


_set_with_hash = getattr(ctypes.pythonapi, "_PyDict_SetItem_KnownHash", None)
if _set_with_hash is not None:
    _set_with_hash.argtypes = (ctypes.py_object, ctypes.py_object, ctypes.py_object, ctypes.c_ssize_t)


def setting_item(target: str, key: str, value: str, token: object, out: Rebuilder) -> str:
    """Return the statement that sets an item of a plain dictionary; a key from outside is given the hash it gave then.

    Its class is left alone: other threads may look at it.
    """
    if type(token) is not HashToken or token.value.source is None or _set_with_hash is None:
        return f"{target}[{key}] = {value}"
    return f"{out.inject(_set_with_hash)}({target}, {key}, {value}, {hash(token)})"


def _asked(tokens: Iterable[object]) -> Iterator[HashToken]:
    for token in tokens:
        if type(token) is HashToken:
            yield token
        elif isinstance(token, tuple):
            yield from _asked(token)
