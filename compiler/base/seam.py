"""Where a test harness steps between a user and what `compile` returns; nobody is there in ordinary use."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Wrap = Callable[[Any, Any, bool, bool | None], Any]


class Seam:
    """One for the process, as `compile` is.

    wrap: given (original, compiled form, fullgraph, dynamic), returns what the user gets; None: the compiled form.
    plants: how often a fault was planted or taken away; calls of `compile` share forms only between two of these.
    planted: how many are planted now; nothing that is compiled meanwhile is kept on disk, or found there.
    """

    wrap: Wrap | None = None
    plants: int = 0
    planted: int = 0


@contextmanager
def planting() -> Iterator[None]:
    """Say that another implementation is in force inside the block; every way to plant one is within this."""
    Seam.plants += 1
    Seam.planted += 1
    try:
        yield
    finally:
        Seam.plants += 1
        Seam.planted -= 1
