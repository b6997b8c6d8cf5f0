"""What an object is and what it holds, asked past its class: `isinstance` and `vars` ask `__getattribute__` of it."""

import types
from typing import Any, TypeGuard, TypeVar

T = TypeVar("T")


def is_really(value: object, kind: type[T]) -> TypeGuard[T]:
    """Return whether an object's own class derives from another, whatever it gives as `__class__`."""
    return issubclass(type(value), kind)


def place_of_namespace(kind: type) -> types.GetSetDescriptorType | types.MemberDescriptorType | None:
    """Return what reads the `__dict__` in instances of a class; None where none of its classes has that."""
    for base in kind.__mro__:
        place = base.__dict__.get("__dict__")
        if isinstance(place, types.GetSetDescriptorType | types.MemberDescriptorType):
            return place
    return None


def own_namespace(value: object) -> dict[Any, Any] | None:
    """Return the `__dict__` in an object, whatever its class says of it; None if there is none to be read."""
    place = place_of_namespace(type(value))
    return None if place is None else place.__get__(value)
