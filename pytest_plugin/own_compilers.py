"""Whether a test compiles something itself, with another compiler than those under test.

Counting a test's operations takes a torch function mode, which such a compiler would try to capture.
"""

import functools
import inspect
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_COMPILERS = frozenset("export onnx fx jit _dynamo _inductor _functorch".split())
_MOST_FUNCTIONS = 2000  # of a test; more cannot be looked through in reasonable time


def counts_outside(item: Any) -> bool:
    """Return whether operations outside of boundaries are counted: not where a test compiles something itself."""
    owner = getattr(item, "cls", None)
    test = _entry(owner, item.originalname) or item.obj
    fixtures = [definition.func for each in item._fixtureinfo.name2fixturedefs.values() for definition in each]
    reached = _reached([test, *fixtures], owner, Path(str(item.path)).parent)
    return not any(_names_compiler(function) for function in reached)


def _reached(starts: list[Any], owner: type | None, folder: Path) -> Iterator[types.FunctionType]:
    """Yield the functions below a test's folder that it names, and those that these name.

    owner: class of the test, whose other tests are not reached.
    """
    waiting, seen = list(starts), set[int]()
    while waiting and len(seen) < _MOST_FUNCTIONS:
        value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, type):
            waiting += vars(value).values() if value is not owner else ()
            continue
        function = _function(value)
        if function is None or folder not in Path(function.__code__.co_filename).parents:
            continue
        yield function
        for name in _names(function.__code__):
            waiting += [function.__globals__.get(name), _entry(owner, name)]


def _function(value: Any) -> types.FunctionType | None:
    """Return the function that a global or an entry of a class is made of, None for anything else."""
    if isinstance(value, (staticmethod, classmethod, types.MethodType)):
        value = value.__func__
    if isinstance(value, property):
        value = value.fget
    function = inspect.unwrap(value) if isinstance(value, types.FunctionType) else None
    return function if isinstance(function, types.FunctionType) else None


def _entry(owner: type | None, name: str) -> object:
    """Return what a class or one of its bases has under a name, without calling anything of theirs."""
    return next((vars(base)[name] for base in getattr(owner, "__mro__", ()) if name in vars(base)), None)


@functools.lru_cache(maxsize=4096)
def _names(code: types.CodeType) -> frozenset[str]:
    """Return every name that a function and those inside it use."""
    inner = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return frozenset(code.co_names).union(*map(_names, inner))


def _names_compiler(function: types.FunctionType) -> bool:
    names = _names(function.__code__)
    if "torch" in names and not names.isdisjoint(_COMPILERS):
        return True
    return any(_is_compilers(name) or _is_compilers(_home(function.__globals__.get(name))) for name in names)


def _home(value: object) -> str:
    """Return the dotted name of the module that a value is, or comes from."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    return str(getattr(value, "__module__", "")) if isinstance(value, (types.FunctionType, type)) else ""


def _is_compilers(dotted: str) -> bool:
    parts = dotted.split(".")
    return parts[0] == "torch" and len(parts) > 1 and parts[1] in _COMPILERS
