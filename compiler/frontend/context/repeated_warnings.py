"""Warnings of torch's functions: noted while they run on fake tensors, given again at each call.

A graph that is traced to ATen has nothing left of `torch.nn.functional.mse_loss`, which warns of broadcast sizes, nor
of the Python binding of `torch.tensor`, which warns of copying a tensor.
"""

import re
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...base.locks import ForkedLock
from ...base.noted_warnings import NotedWarning, noted_warnings
from ..skip_rules import is_torch_file
from .frame import FrameState
from .frame_stack import FrameStack

_SHAPE_RULES = ("_meta_registrations", "_refs", "_prims", "_decomp", "_subclasses", "_higher_order_ops", "fx")


@dataclass(frozen=True, slots=True, eq=False)
class OperationWarning:
    """A warning, and the line that it is about; in_graph: an operation of the graph gives it, as it was captured.

    namespace: of the module, where Python keeps what that has warned of.
    """

    message: Warning | str
    category: type[Warning]
    file: str
    line: int
    namespace: dict[str, object]
    in_graph: bool = True

    def names_symbols(self) -> bool:
        """Return whether the text has names of symbolic sizes in the place of numbers."""
        return re.search(r"\b[su]\d+\b", str(self.message)) is not None

    def give(self) -> None:
        """Warn, as often as the filters let a line warn."""
        registry: Any = self.namespace.setdefault("__warningregistry__", {})
        module: Any = self.namespace.get("__name__")
        warnings.warn_explicit(self.message, self.category, self.file, self.line, module, registry)


def warnings_in_c(noted: list[NotedWarning], frame: FrameState, line: int, *, in_graph: bool) -> list[OperationWarning]:
    """Return those of the noted warnings that functions written in C give, once each, about a line of a frame.

    What is evaluated calls such a function, and our code stands for its line; a shape rule warns from other code.
    """
    first = {str(warning): warning for warning in reversed(noted) if warning.is_of_ours()}  # a rule may ask twice
    file, namespace = frame.decoded.code.co_filename, frame.namespace
    return [
        OperationWarning(warning.message, warning.category, file, line, namespace, in_graph)
        for warning in reversed(first.values())
    ]


@dataclass(slots=True)
class _NotingThread:
    """Where a thread notes warnings, and the frames that it evaluates."""

    noted: list[OperationWarning]
    frames: FrameStack

    def note(self, message: Warning | str, category: Any, stacklevel: int, caller: types.FrameType) -> None:
        """Note a warning with the line that it is about: the program's, or that of torch itself."""
        file, line, namespace = caller.f_code.co_filename, caller.f_lineno, caller.f_globals
        here = self.frames.here()
        if stacklevel > 1 and here is not None and self.frames.stack:
            file, line, namespace = here.file, here.line, self.frames.stack[-1].namespace
        category = type(message) if isinstance(message, Warning) else category or UserWarning
        self.noted.append(OperationWarning(message, category, file, line, namespace))


class _OfThread(threading.local):
    noting: _NotingThread | None = None


_OF_THREAD = _OfThread()
_LOCK = ForkedLock()
_users, _warn = 0, warnings.warn


def _noting_warn(message: Warning | str, category: Any = None, stacklevel: int = 1, *rest: Any, **named: Any) -> None:
    """Stand for `warnings.warn` while a thread notes: what torch's Python code gives there is noted."""
    caller, noting = sys._getframe(1), _OF_THREAD.noting
    file = caller.f_code.co_filename
    if noting is None or any(f"/torch/{part}" in file for part in _SHAPE_RULES) or not is_torch_file(file):
        _warn(message, category, stacklevel + 1, *rest, **named)
    else:
        noting.note(message, category, stacklevel, caller)


def warning_at_the_end(run: Callable[..., Any], warned: Sequence[OperationWarning]) -> Callable[..., Any]:
    """Return `run` such that it gives the warnings when it has succeeded, and that operations give none themselves.

    Where it fails, or a warning is made an error, the program's own code runs, and warns.
    """
    if not warned:
        return run
    texts = frozenset(str(one.message) for one in warned if one.in_graph)

    def warning_run(*inputs: object) -> Any:
        with noted_warnings([], texts):
            result = run(*inputs)
        for one in warned:
            one.give()
        return result

    return warning_run


@contextmanager
def operation_warnings(noted: list[OperationWarning], frames: FrameStack) -> Iterator[None]:
    """Add the warnings that torch's Python code gives in the block to `noted`; shape rules of torch warn as always.

    `catch_warnings` would reset the memory of the filters; `warnings.warn` is replaced while any thread is in a block.
    """
    global _users, _warn
    before, _OF_THREAD.noting = _OF_THREAD.noting, _NotingThread(noted, frames)
    with _LOCK:
        _users += 1
        if warnings.warn is not _noting_warn:
            _warn, warnings.warn = warnings.warn, _noting_warn
    try:
        yield
    finally:
        _OF_THREAD.noting = before
        with _LOCK:
            _users -= 1
            if not _users and warnings.warn is _noting_warn:
                warnings.warn = _warn
