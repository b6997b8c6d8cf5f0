"""The name `torch.compile`: who stands behind it, and how stock is put back; imports nothing heavy.

vars(torch) is passed in as `names`, so that this works while torch itself is still being imported.
"""

import functools
from collections.abc import Callable
from typing import Any

STOCK = "_plumbline_stock"
"""Attribute of a function in place of torch.compile that holds the stock one."""

NAME = "compile"


def stock_compile(names: dict[str, Any]) -> Callable[..., Any]:
    """Return stock torch.compile, whatever stands in its place."""
    stock: Callable[..., Any] = getattr(names[NAME], STOCK, names[NAME])
    return stock


def restore_stock(names: dict[str, Any]) -> None:
    """Put stock torch.compile back."""
    names[NAME] = stock_compile(names)


def load_at_first_call(names: dict[str, Any], load: Callable[[], None]) -> None:
    """Put a function in place of torch.compile that loads what is to stand there when it is first called.

    load: puts it there itself.  Does nothing where stock is replaced already.
    """
    stock = names[NAME]
    if hasattr(stock, STOCK):
        return

    @functools.wraps(stock)
    def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001  the name that it replaces
        if names[NAME] is compile:
            load()
        return names[NAME](*args, **kwargs)

    setattr(compile, STOCK, stock)
    names[NAME] = compile
