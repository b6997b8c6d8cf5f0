"""The world of symbolic sizes as torch has it, without what only torch's own compiler needs of it.

torch's environment remembers for every size, and for every question about one, which line of its compiler asked, tells
each of them to a trace, and asks a checker of that compiler's guards whether it is on. The first imports torch.export
and what it stands on, the second torch._inductor, the third torch._dynamo: together they take as long as all the rest
of a first compilation with an open size.
"""

import logging
from types import MethodType
from typing import Any

from torch._guards import SLoc  # where a size was asked about, for torch's logs
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..fake_mode_start import without_compiler

_NOWHERE = SLoc(None, None)


class SizeEnvironment(ShapeEnv):
    """An environment for symbolic sizes that imports none of torch's compilers and walks no stacks."""

    def __init__(self, **settings: Any) -> None:
        end_idle_trace()
        try:
            vars(self)["_init"] = MethodType(without_compiler(ShapeEnv._init), self)
            without_compiler(ShapeEnv.__init__)(self, **settings)
            del vars(self)["_init"]
        except Exception:  # torch wants more of its compiler than is known here
            vars(self).clear()
            super().__init__(**settings)

    def _get_stack_summary(self, is_debug: bool = False, framework_loc: str | None = None) -> tuple[SLoc, str]:
        del is_debug, framework_loc
        return _NOWHERE, ""


def end_idle_trace() -> None:
    """Let torch's trace find out that nobody asked for it: at its first event it goes, whatever that is.

    The first event would else be a size, for which it writes down the stack; and where a program has disabled logging,
    no event would ever reach it, and the stack be written down for every size and guard.
    """
    handlers = logging.getLogger("torch.__trace").handlers
    if handlers and all(getattr(handler, "root_dir", handler) is None for handler in handlers):
        record = logging.makeLogRecord(
            {"metadata": {"artifact": {"name": "sizes", "encoding": "string"}}, "payload": None}
        )
        for handler in tuple(handlers):
            handler.emit(record)
