"""Nested tuples, lists and dictionaries: what is at their ends, changed and written."""

from collections.abc import Callable, Iterator
from typing import Any


def leaves(value: Any) -> Iterator[Any]:
    """Yield what nested tuples, lists and dictionaries hold, in order; of a dictionary the values."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from leaves(item)
    else:
        yield value


def map_nested(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return nested tuples, lists and dictionaries with what they hold changed; tuples and lists keep their class."""
    if isinstance(value, tuple | list):
        return type(value)([map_nested(item, change) for item in value])
    if isinstance(value, dict):
        return {key: map_nested(item, change) for key, item in value.items()}
    return change(value)


def nested_text(value: Any, leaf: Callable[[Any], str]) -> str:
    """Return nested tuples, lists, dictionaries and slices as Python text; leaf: the text of anything else."""
    if isinstance(value, tuple | list):
        inner = ", ".join(nested_text(item, leaf) for item in value)
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {nested_text(item, leaf)}" for key, item in value.items()) + "}"
    if type(value) is slice:
        parts = (value.start, value.stop, value.step)
        return f"slice({', '.join(nested_text(part, leaf) for part in parts)})"
    return leaf(value)
