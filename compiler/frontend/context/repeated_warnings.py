"""Warnings that functions of torch give in Python: noted while they run on fake tensors, given again at each call.

A graph that is traced to ATen has nothing left of `torch.nn.functional.mse_loss` that could warn of broadcast sizes.
"""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from ..skip_rules import is_torch_file
from .frame_stack import FrameStack

_SHAPE_RULES = ("_meta_registrations", "_refs", "_prims", "_decomp", "_subclasses", "_higher_order_ops", "fx")


@dataclass(frozen=True, slots=True, eq=False)
class OperationWarning:
    """A warning, and the line that it is about; registry: where Python keeps what that module has warned of."""

    message: Warning | str
    category: type[Warning]
    file: str
    line: int
    namespace: dict[str, object]

    def names_symbols(self) -> bool:
        """Return whether the text has names of symbolic sizes in the place of numbers."""
        return re.search(r"\b[su]\d+\b", str(self.message)) is not None

    def give(self) -> None:
        """Warn, as often as the filters let a line warn."""
        registry: Any = self.namespace.setdefault("__warningregistry__", {})
        module: Any = self.namespace.get("__name__")
        warnings.warn_explicit(self.message, self.category, self.file, self.line, module, registry)


@contextmanager
def operation_warnings(noted: list[OperationWarning], frames: FrameStack) -> Iterator[None]:
    """Add the warnings that torch's Python code gives in the block to `noted`; shape rules of torch warn as always."""
    thread, real = get_ident(), warnings.warn

    def note(message: Warning | str, category: Any = None, stacklevel: int = 1, *rest: Any, **named: Any) -> None:
        caller = sys._getframe(1)
        file, line, namespace = caller.f_code.co_filename, caller.f_lineno, caller.f_globals
        of_shape_rule = any(f"/torch/{part}" in file for part in _SHAPE_RULES)
        if get_ident() != thread or of_shape_rule or not is_torch_file(file):
            real(message, category, stacklevel + 1, *rest, **named)
            return
        if isinstance(message, Warning):
            category = type(message)
        here = frames.here()
        if stacklevel > 1 and here is not None and frames.stack:
            file, line, namespace = here.file, here.line, frames.stack[-1].namespace
        noted.append(OperationWarning(message, category or UserWarning, file, line, namespace))

    warnings.warn = note  # for the block: `catch_warnings` would reset the filters' memory
    try:
        yield
    finally:
        warnings.warn = real
