"""Two results side by side: the tensors and other objects at the same places, and where forms differ."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy
from torch import Tensor


class LeafPair(NamedTuple):
    """Two objects at one place; `reference` is None without one.

    path: as the user would write it behind the name of the result, `[0]['loss']`, empty for the result itself.
    """

    path: str
    actual: Any
    expected: Any
    reference: Any


class Misfit(NamedTuple):
    """A place where two results have different forms, in words."""

    path: str
    sentence: str


_MISSING = object()


def paired_leaves(actual: Any, expected: Any, reference: Any = None, path: str = "") -> Iterator[LeafPair | Misfit]:
    """Yield what two results have at each place, in the order of `expected`, or in which way their forms differ.

    Containers are mappings, sequences, and dataclasses; anything else is a leaf.  A reference of another form than
    `expected` counts as none at that place.
    """
    parts = _children(expected)
    if parts is None:
        if _children(actual) is None:
            yield LeafPair(path, actual, expected, reference)
        else:
            yield Misfit(path, f"is a {type(actual).__name__}, expected is a {type(expected).__name__}")
        return
    others = _children(actual)
    if others is None or _kind(actual) != _kind(expected):
        yield Misfit(path, f"is a {type(actual).__name__}, expected is a {type(expected).__name__}")
        return
    if parts.keys() != others.keys():
        yield Misfit(path, _different_keys(list(others), list(parts)))
    known = _children(reference) or {}
    for name, child in parts.items():
        if name in others:
            yield from paired_leaves(others[name], child, known.get(name), path + name)


def _different_keys(actual: list[str], expected: list[str]) -> str:
    missing = [name for name in expected if name not in actual]
    more = [name for name in actual if name not in expected]
    words = []
    if missing:
        words.append(f"lacks {', '.join(missing[:3])}{' and others' if len(missing) > 3 else ''}")
    if more:
        words.append(f"has {', '.join(more[:3])}{' and others' if len(more) > 3 else ''}, which expected has not")
    return "; ".join(words)


def _children(value: Any) -> dict[str, Any] | None:
    """Return what a container holds, by how it is reached; None for a leaf."""
    if isinstance(value, Tensor | numpy.ndarray | str | bytes | bytearray | range):
        return None
    if isinstance(value, Mapping):
        return {f"[{key!r}]": item for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {f".{name}": item for name, item in zip(value._fields, value, strict=True)}
    if isinstance(value, Sequence):
        return {f"[{index}]": item for index, item in enumerate(value)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f".{field.name}": getattr(value, field.name, _MISSING) for field in dataclasses.fields(value)}
    return None


def _kind(value: Any) -> str:
    """Return which containers are alike: any mapping is like another, a list is not like a tuple."""
    if isinstance(value, Mapping):
        return "mapping"
    if isinstance(value, tuple | list):
        return "tuple" if isinstance(value, tuple) else "list"
    return type(value).__qualname__
