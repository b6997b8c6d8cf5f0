"""A function of a tensor, called twice in plain Python and twice compiled: each call must give the same."""

from collections.abc import Callable
from typing import Any

import torch

from plumbline.compiler.api import compile as compile_function


def difference(function: Callable[[torch.Tensor], Any]) -> str:
    """Return what the compiled function gives, or raises, and the plain one does not; at its first call and after."""
    compiled = compile_function(function, backend="eager")
    plain = [_end(function) for _ in range(2)]
    ours = [_end(compiled) for _ in range(2)]
    return "" if ours == plain else f"plain {plain}\nours  {ours}"


def told(function: Callable[[], object]) -> object:
    """Return what a function returns, or the class and the words of what it raises."""
    try:
        return function()
    except BaseException as error:
        return type(error).__name__, str(error)


def chain(error: BaseException | None) -> list[str]:
    """Return an exception and those it was raised in the context of, at most six."""
    found = list[str]()
    while error is not None and len(found) < 6:
        found.append(f"{type(error).__name__}{error}")
        error = error.__context__
    return found


def _end(function: Callable[[torch.Tensor], Any]) -> object:
    return told(lambda: repr(function(torch.ones(2))))
