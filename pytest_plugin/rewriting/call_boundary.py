"""The `call` boundary at run time: which callee of a test file is judged, and with which arguments."""

import functools
import inspect
import sysconfig
import types
from collections.abc import Callable
from typing import Any

import torch

from ..current import current_session

# Their functions are parts of programs, not programs of the user.
BUILDING_BLOCKS = frozenset({"torch", "numpy", "pytest", "_pytest", "pluggy", "plumbline", "hypothesis", "xdist"})
DEPTH = 3  # how deep in lists, tuples and dicts a tensor argument is looked for
WIDTH = 32  # how many entries of each are looked at

_STANDARD_LIBRARY = tuple({sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
_SITES = tuple({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")})


class CallBoundary:
    """Stands in front of every call in the test files; set up once per run.

    test_files: paths of the files whose calls are looked at; what is defined in them is not a callee.
    """

    def __init__(self, test_files: frozenset[str]) -> None:
        self._test_files = test_files

    def __call__(self, callee: Any) -> Any:
        """Return what the test file shall call in place of `callee`: itself, unless it may be judged."""
        session = current_session()
        if session is None or not self.is_library_callee(callee):
            return callee
        return _judged_with_tensors(session, callee)

    def is_library_callee(self, callee: Any) -> bool:
        """Return whether a callee is a function, method or callable object from outside test files and libraries."""
        if isinstance(callee, (type, types.BuiltinFunctionType, types.MethodWrapperType)):
            return False
        function = underlying_function(callee)
        if function is None or not self._is_library(function):
            return False
        plain = inspect.unwrap(function)
        return not (
            inspect.isgeneratorfunction(plain)
            or inspect.iscoroutinefunction(plain)
            or inspect.isasyncgenfunction(plain)
        )

    def _is_library(self, function: types.FunctionType) -> bool:
        plain = inspect.unwrap(function)
        if not isinstance(plain, types.FunctionType):
            return False
        name = (getattr(plain, "__module__", None) or "").partition(".")[0]
        path = plain.__code__.co_filename
        if name in BUILDING_BLOCKS or path in self._test_files or path.startswith("<"):
            return False
        return path.startswith(_SITES) or not path.startswith(_STANDARD_LIBRARY)


def underlying_function(callee: Any) -> types.FunctionType | None:
    """Return the Python function that a call of `callee` runs, None for what is not made of one."""
    for _ in range(DEPTH):
        if isinstance(callee, types.FunctionType):
            return callee
        callee = next(inner(callee) for kind, inner in _WRAPPERS if isinstance(callee, kind))
    return None


_WRAPPERS: tuple[tuple[type, Callable[[Any], Any]], ...] = (  # what a callable of a kind calls; the first that fits
    (types.MethodType, lambda method: method.__func__),
    (functools.partial, lambda partial: partial.func),
    (torch.nn.Module, lambda module: type(module).forward),
    (object, lambda instance: getattr(type(instance), "__call__", None)),  # noqa: B004 - the function itself is wanted
)


def _judged_with_tensors(session: Any, callee: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        # A call without a tensor builds things (models, configurations) or reads them: nothing to compile.
        if _holds_tensor(getattr(callee, "__self__", callee)) or _holds_tensor(args) or _holds_tensor(kwargs):
            return session.compiled(callee)(*args, **kwargs)
        return callee(*args, **kwargs)

    return call


def _holds_tensor(value: Any, depth: int = DEPTH) -> bool:
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return True
    if depth == 0 or isinstance(value, (str, bytes, type, types.ModuleType, types.FunctionType)):
        return False
    if isinstance(value, dict):
        return any(_holds_tensor(each, depth - 1) for each in list(value.values())[:WIDTH])
    if isinstance(value, (list, tuple)):
        return any(_holds_tensor(each, depth - 1) for each in value[:WIDTH])
    fields = getattr(value, "__dict__", None)
    return isinstance(fields, dict) and _holds_tensor(fields, depth - 1)
