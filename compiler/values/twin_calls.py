"""Functions written in C that the standard library has in Python too: the Python text is evaluated in their place.

heapq, bisect, operator and functools end by replacing their functions with those of a C module. A private copy of
each, loaded while the C module cannot be found, keeps the Python ones.
"""

import bisect
import functools
import heapq
import importlib.util
import operator
import sys
import threading
import types
from collections.abc import Callable

from .constant import CALL_RULES, CallRule, calls
from .source import Injected
from .value import Arguments, CaptureContext, Keywords, Value

_LOCK = threading.Lock()
_TWINS: dict[str, types.ModuleType] = {}


def _twin(name: str) -> types.ModuleType:
    """Return the private copy of a module; name: of the module, whose C half is `_name`."""
    with _LOCK:
        if name not in _TWINS:
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.loader is not None
            copy = importlib.util.module_from_spec(spec)
            native = sys.modules.get(f"_{name}")
            sys.modules[f"_{name}"] = None  # type: ignore[assignment]  # importing it fails meanwhile
            try:
                spec.loader.exec_module(copy)
            finally:
                if native is None:
                    del sys.modules[f"_{name}"]
                else:
                    sys.modules[f"_{name}"] = native
            _TWINS[name] = copy
        return _TWINS[name]


def _rule(module: str, name: str) -> CallRule:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        function = getattr(_twin(module), name)
        return ctx.call(ctx.wrap(function, Injected(function)), args, kwargs)

    return rule


def _register(module: types.ModuleType, names: str) -> None:
    for name in names.split():
        function: Callable[..., object] = getattr(module, name)
        if isinstance(function, types.BuiltinFunctionType) and id(function) not in CALL_RULES:
            calls(function)(_rule(module.__name__, name))


_register(heapq, "heapify heappush heappop heapreplace heappushpop _heapify_max _heappop_max _heapreplace_max")
_register(bisect, "bisect_left bisect_right insort_left insort_right")
_register(
    operator,
    "length_hint countOf indexOf concat truth inv invert abs setitem delitem call iconcat ifloordiv imod ipow ilshift "
    "irshift iand ior ixor imatmul",
)
_register(functools, "cmp_to_key")
