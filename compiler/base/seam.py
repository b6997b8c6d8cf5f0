"""Where a test harness steps between a user and what `compile` returns; nobody is there in ordinary use."""

from collections.abc import Callable
from typing import Any

Wrap = Callable[[Any, Any, bool, bool | None], Any]


class Seam:
    """One for the process, as `compile` is.

    wrap: given (original, compiled form, fullgraph, dynamic), returns what the user gets; None: the compiled form.
    """

    wrap: Wrap | None = None
