"""One piece of state of the whole process: how it is read, set back and compared."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Switch:
    """One piece of state.  name: as a sentence says it.  read: its present value.  write: sets it.

    differs: takes eager's value and that after compiled code, and returns whether the latter is
    not as good.  by_import: compilers change it once, by what they import: it counts where a later run shows it, too.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]
    differs: Callable[[Any, Any], bool] = operator.ne
    by_import: bool = False
