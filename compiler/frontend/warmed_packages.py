"""Packages that fill a registry at their first call: it is made before anything is captured, with nothing at stake.

Captured cold, the search through the registry would be part of the first specialisation, and its result, which the
package keeps, would make a second one necessary. Stock `torch.compile` makes the same call for the same reason.
"""

import sys
from collections.abc import Callable
from typing import Any

import torch

_FIRST_CALLS: dict[str, Callable[[Any], object]] = {
    "einops._backends": lambda backends: backends.get_backend(torch.empty(0)),  # the kind of a tensor -> its framework
}
_MADE: set[str] = set()


def warm_packages() -> None:
    """Make the first call into each package of the table that the program has imported since the last time."""
    for name in _FIRST_CALLS.keys() & sys.modules.keys() - _MADE:
        _MADE.add(name)
        try:
            _FIRST_CALLS[name](sys.modules[name])
        except Exception:  # a version with other names: its first call is captured, as everybody's is
            continue
