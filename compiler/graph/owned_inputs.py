"""Compiled graphs that can be given their inputs for good: each is freed behind its last use, while the graph runs.

A tuple of arguments lives as long as the call that it is passed to; a list can be emptied by who is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

Spend = Callable[[list[object]], Any]
"""Runs a graph on the values of a list, which it may empty; where it raises MetadataDeparture, the list is whole."""

_SPENDING: WeakKeyDictionary[Callable[..., Any], Spend] = WeakKeyDictionary()


def let_spend(compiled: Callable[..., Any], spend: Spend) -> None:
    """Say what runs a compiled graph on inputs that nobody else needs."""
    _SPENDING[compiled] = spend


def spending(compiled: Callable[..., Any]) -> Spend | None:
    """Return what runs a compiled graph on inputs that nobody else needs; None where nothing was said of it."""
    try:
        return _SPENDING.get(compiled)
    except TypeError:  # a caller's own kind of callable, which takes no weak references
        return None
