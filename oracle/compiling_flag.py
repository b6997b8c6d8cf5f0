"""Programs that ask whether they are being compiled and go another way then: by design, not by a fault of a compiler.

`torch.compiler.is_compiling()` gives a module's flag; while a reference runs here, the flag says yes and notes where it
was asked.
"""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from plumbline.compiler.base.torch_facts import compiling_flag


@dataclass(slots=True, eq=False)
class AskedFlag:
    """A flag that is set, and knows who asked.  places: `file:line`, each once, in order."""

    places: dict[str, None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Say yes, and note the line; torch's own code is told the truth: its ways are not the program's choice.

        But for its optimizers, which programs have compiled like code of their own: they take other formulas then.
        """
        frame = sys._getframe(1)
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == "torch" and not module.startswith("torch.optim."):
            return False
        self.places[f"{frame.f_code.co_filename}:{frame.f_lineno}"] = None
        return True


def as_if_compiled(program: Callable[..., Any], flag: AskedFlag) -> Callable[..., Any]:
    """Return a program that runs as it is, and is told that it is compiled."""

    @functools.wraps(program, updated=())
    def told(*args: Any, **kwargs: Any) -> Any:
        with compiling_flag(flag):
            return program(*args, **kwargs)

    return told
