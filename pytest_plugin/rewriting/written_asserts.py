"""Boundaries are judged as their author wrote them: without the code that pytest puts behind every assert.

Inside a compiled function a rewritten assert is a graph break that pytest caused, and hides faults of the real code.
"""

import ast
import functools
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from plumbline.oracle.state.walk import walk

_REWRITTEN = "@pytest_ar"  # the name that pytest's rewriting puts into a module


def as_written(target: Callable[..., Any]) -> None:
    """Give every function of a rewritten test file that `target` reaches its own asserts back, in place."""
    for function in _functions(target):
        if _REWRITTEN not in function.__globals__:
            continue
        old = function.__code__
        new = _codes(old.co_filename).get((old.co_qualname, old.co_firstlineno))
        # The same variables mean the same function: a file edited since it was imported has others.
        if new is not None and new.co_freevars == old.co_freevars and new.co_argcount == old.co_argcount:
            function.__code__ = new


def _functions(target: Callable[..., Any]) -> Iterator[types.FunctionType]:
    for visit in walk({"target": target}).visits:
        if visit.kind == "function":
            yield visit.value


@functools.lru_cache(maxsize=256)
def _codes(path: str) -> dict[tuple[str, int], types.CodeType | None]:
    """Return the code of each function of a file as written; None where two share name and line (lambdas)."""
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
    except (OSError, SyntaxError, ValueError):
        return {}  # no source to read: it stays as it is
    codes: dict[tuple[str, int], types.CodeType | None] = {}
    for code in _nested(compile(tree, path, "exec", dont_inherit=True)):
        key = (code.co_qualname, code.co_firstlineno)
        codes[key] = None if key in codes else code
    return codes


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _nested(constant)
