"""Boundaries are judged as their author wrote them: without what pytest, and the plugin, put into test files.

Inside a compiled function a rewritten assert or call is a graph break that the author did not write, and hides faults
of the real code.  What a program is handed counts too: a callback that the test defines, an object of a class of its.
"""

import ast
import functools
import types
from collections.abc import Iterable, Iterator
from pathlib import Path

from .call_rewriting import HELPER, CodeKey, code_key

_REWRITTEN = ("@pytest_ar", HELPER)  # names that pytest's rewriting and ours put into a module


class WrittenCode:
    """Gives functions of rewritten test files their own code while one session judges.

    Called with the functions that a call reaches.  `undo` takes all of it back, so that another test, which calls such
    a function directly, finds the boundaries in it.
    """

    def __init__(self) -> None:
        self._swapped: list[tuple[types.FunctionType, types.CodeType]] = []

    def __call__(self, functions: Iterable[types.FunctionType]) -> bool:
        """Give every function its own code; return whether one had other code."""
        before = len(self._swapped)
        for function in functions:
            if any(name in function.__globals__ for name in _REWRITTEN):
                self._give(function)
        return len(self._swapped) > before

    def undo(self) -> None:
        """Give every function back the code that it had."""
        for function, code in reversed(self._swapped):
            function.__code__ = code
        self._swapped.clear()

    def _give(self, function: types.FunctionType) -> None:
        old = function.__code__
        new = _codes(old.co_filename).get(code_key(old))
        # The same variables mean the same function: a file edited since it was imported has others.
        if new is None or new is old or new.co_freevars != old.co_freevars or new.co_argcount != old.co_argcount:
            return
        self._swapped.append((function, old))
        function.__code__ = new


@functools.lru_cache(maxsize=256)
def _codes(path: str) -> dict[CodeKey, types.CodeType | None]:
    """Return the code of each function of a file as written; None where two cannot be told apart."""
    try:
        tree = ast.parse(Path(path).read_bytes(), path)
    except (OSError, SyntaxError, ValueError):
        return {}  # no source to read: it stays as it is
    codes: dict[CodeKey, types.CodeType | None] = {}
    for code in _nested(compile(tree, path, "exec", dont_inherit=True)):
        key = code_key(code)
        codes[key] = None if key in codes else code
    return codes


def _nested(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _nested(constant)
