"""What containers hold, read and refilled by the methods of Python's own classes.

A class of the program's may have overridden them: a tuple whose `__len__` raises is a sound program.
"""

import collections
from typing import Any

_KINDS = (list, tuple, dict, set, frozenset, collections.deque)


def plain_base(value: object) -> Any:
    """Return the class of Python's own whose methods reach the content of a container without code of the user's.

    An OrderedDict keeps links of its own, so that its base is not dict.  Raises TypeError for any other object.
    """
    for base in type(value).__mro__:
        if base.__module__ in ("builtins", "collections") and issubclass(base, _KINDS):
            return base
    raise TypeError(f"{type(value).__name__} is no container")


def items_of(value: object) -> list[Any]:
    """Return the items of a list, tuple, set or deque, or the keys of a dict, in order."""
    return list(plain_base(value).__iter__(value))


def entries_of(value: object) -> list[tuple[Any, Any]]:
    """Return the keys and values of a dict, in order."""
    return list(plain_base(value).items(value))
