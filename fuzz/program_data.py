"""Programs and scenarios as JSON and back: the plain-data half of a saved failure."""

import types
import typing
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from plumbline.compiler.base.errors import UserError

_Data = TypeVar("_Data")


def to_plain(value: object) -> Any:
    """Return a frozen dataclass as dicts, lists and atoms."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: type[_Data], plain: object) -> _Data:
    """Return the dataclass that `to_plain` wrote; raises UserError that names what does not fit."""
    try:
        read: _Data = _read(kind, plain)
    except (TypeError, KeyError, ValueError) as error:
        why = f"{type(error).__name__}: {error}"
        hint = "give a .json file that plumbline fuzz saved"
        raise UserError(f"not a saved {kind.__name__}", why=why[:120], hint=hint) from None
    return read


def _read(kind: Any, plain: Any) -> Any:
    if is_dataclass(kind):
        return _read_dataclass(kind, plain)
    origin = typing.get_origin(kind)
    if origin is tuple:
        return _read_tuple(typing.get_args(kind), plain)
    if origin in (types.UnionType, typing.Union):
        return _read_attribute(kind, plain)
    if not isinstance(plain, kind) or (isinstance(plain, bool) and kind is not bool):
        raise ValueError(f"{plain!r:.30} is not of type {kind.__name__}")
    return plain


def _read_tuple(inner: tuple[Any, ...], plain: Any) -> tuple[Any, ...]:
    if not isinstance(plain, list):
        raise ValueError(f"{plain!r:.30} is not a list")
    if len(inner) == 2 and inner[1] is ...:
        return tuple(_read(inner[0], item) for item in plain)
    return tuple(_read(one, item) for one, item in zip(inner, plain, strict=True))


def _read_attribute(kind: Any, plain: Any) -> Any:
    """Read an attribute: a list stands for a tuple of whole numbers, everything else is itself."""
    if isinstance(plain, list):
        return tuple(_read(int, item) for item in plain)
    if not any(isinstance(plain, one) for one in typing.get_args(kind) if isinstance(one, type)):
        raise ValueError(f"{plain!r:.30} is not one of {kind}")
    return plain


def _read_dataclass(kind: Any, plain: Any) -> Any:
    if not isinstance(plain, dict):
        raise ValueError(f"{plain!r:.30} is not of type {kind.__name__}")
    hints = typing.get_type_hints(kind)
    unknown = plain.keys() - hints.keys()
    if unknown:
        raise ValueError(f"unknown field {sorted(unknown)[0]!r}")
    return kind(**{name: _read(hints[name], item) for name, item in plain.items()})
