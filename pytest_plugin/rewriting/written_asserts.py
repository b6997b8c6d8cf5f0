"""Boundaries are judged as their author wrote them: without what pytest, and the plugin, put into test files.

Inside a compiled function a rewritten assert or call is a graph break that the author did not write, and hides faults
of the real code.  What a program is handed counts too: a callback that the test defines, an object of a class of its.
"""

import ast
import functools
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from plumbline.oracle.state.kinds import home_of
from plumbline.oracle.state.walk import walk

from .call_rewriting import HELPER, CodeKey, code_key
from .held_tensors import parts_of

_REWRITTEN = ("@pytest_ar", HELPER)  # names that pytest's rewriting and ours put into a module
_DEPTH = 3  # levels of lists, tuples and dicts in which callbacks and objects are looked for
_BUILDING_BLOCKS = frozenset(("builtins", "numpy", "torch", "collections", "functools", "types"))
_FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)


class WrittenCode:
    """Gives functions of rewritten test files their own code while one session judges.

    Called with what a session is about to run; `arguments` with what it hands to that; `undo` takes all of it back, so
    that another test, which calls such a function directly, finds the boundaries in it.
    """

    def __init__(self) -> None:
        self._swapped: list[tuple[types.FunctionType, types.CodeType]] = []
        self._seen: set[type] = set()

    def __call__(self, target: Callable[..., object]) -> None:
        """Give every function that a target reaches its own code."""
        self._give(target)

    def arguments(self, given: object) -> None:
        """Give the functions among arguments, and those of their objects' classes, their own code."""
        for thing in _programs(given, _DEPTH):
            if not isinstance(thing, _FUNCTIONS):
                if type(thing) in self._seen:
                    continue
                self._seen.add(type(thing))
            self._give(thing)

    def undo(self) -> None:
        """Give every function back the code that it had."""
        for function, code in reversed(self._swapped):
            function.__code__ = code
        self._swapped.clear()
        self._seen.clear()

    def _give(self, target: object) -> None:
        for function in _functions(target):
            if not any(name in function.__globals__ for name in _REWRITTEN):
                continue
            old = function.__code__
            new = _codes(old.co_filename).get(code_key(old))
            # The same variables mean the same function: a file edited since it was imported has others.
            if (
                new is not None
                and new is not old
                and new.co_freevars == old.co_freevars
                and new.co_argcount == old.co_argcount
            ):
                self._swapped.append((function, old))
                function.__code__ = new


def _programs(value: object, depth: int) -> Iterator[object]:
    """Yield the functions among values, and the objects of classes that are no library's."""
    kind = type(value)
    if isinstance(value, (list, tuple, dict)) and kind.__module__ == "builtins":
        if depth:
            for part in parts_of(value):
                yield from _programs(part, depth - 1)
    elif (
        isinstance(value, _FUNCTIONS)
        or (not isinstance(value, type) and home_of(kind).partition(".")[0] not in _BUILDING_BLOCKS)
        or isinstance(value, torch.nn.Module)
    ):
        yield value


def _functions(target: object) -> Iterator[types.FunctionType]:
    for visit in walk({"target": target}).visits:
        if visit.kind == "function":
            yield visit.value


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
