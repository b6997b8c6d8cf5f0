"""Functions written in C that the standard library has in Python too: the Python text is evaluated in their place.

heapq, bisect, operator and functools end by replacing their functions with those of a C module. A private copy of
each, loaded while the C module cannot be found, keeps the Python ones.
"""

import bisect
import collections
import functools
import heapq
import importlib.util
import operator
import sys
import types

from ...base.locks import ForkedLock
from ..constant import Constant, fold
from ..python.containers.lists import ListValue
from ..python.objects.instances import ObjectValue
from ..reasons import UNSUPPORTED_OPERATION, Break
from ..refused_arguments import refuse_arguments
from ..rule_tables import CallRule
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Value, defines

_LOCK = ForkedLock()
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


# In C they refuse a first operand that has items and is not a sequence, such as a tensor, and do not ask the second
# one, such as a torch.Size; in Python they add.
_CONCATENATING = frozenset({"concat", "iconcat"})
_SEQUENCES = (list, tuple, str, bytes, bytearray, collections.deque)


def _rule(module: str, name: str) -> CallRule:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        if name in _CONCATENATING and not (args and issubclass(args[0].python_type(), _SEQUENCES)):
            raise Break(UNSUPPORTED_OPERATION, f"operator.{name} of what is not a builtin sequence")
        given = [ctx.realize(arg) for arg in args]
        if module == "heapq":
            _demand_heap(ctx, name, given)
        default = given[1] if len(given) == 2 else Constant(0)
        plain = isinstance(default, Constant) and type(default.value) is int
        if name == "length_hint" and plain and given and isinstance(given[0], ObjectValue):
            return given[0].length_hint(ctx) or default  # in Python it words its refusals otherwise
        if name in _CONCATENATING and any(defines(arg.python_type(), "__radd__") for arg in args[1:]):
            raise Break(UNSUPPORTED_OPERATION, f"operator.{name} with what answers `+` from the right")
        function = getattr(_twin(module), name)
        return ctx.call(ctx.wrap(function, Injected(function)), args, kwargs)

    return rule


def _demand_heap(ctx: CaptureContext, name: str, args: Arguments) -> None:
    """Raise what the function in C raises for what is no list, or for an empty one: it words that otherwise."""
    function = getattr(heapq, name)
    heap = args[0].contents or args[0] if args else None
    if not isinstance(heap, ListValue) or heap.kind is not list:
        refuse_arguments(ctx, function, args, {})
    elif not heap.items and ("pop" in name or "replace" in name):
        fold(ctx, function, *([] if arg is args[0] else None for arg in args))


_NAMES = {
    heapq: "heapify heappush heappop heapreplace heappushpop _heapify_max _heappop_max _heapreplace_max",
    bisect: "bisect_left bisect_right insort_left insort_right",
    operator: "length_hint countOf indexOf concat truth inv invert abs setitem delitem call iconcat ifloordiv imod "
    "ipow ilshift irshift iand ior ixor imatmul",
    functools: "cmp_to_key",
}
_TWIN_OF: dict[int, tuple[str, str]] = {  # id of the function in C -> module and name of the one in Python
    id(getattr(module, name)): (module.__name__, name)
    for module, names in _NAMES.items()
    for name in names.split()
    if isinstance(getattr(module, name), types.BuiltinFunctionType)
}


def python_twin_rule(function: object) -> CallRule | None:
    """Give the rule of a function in C that the standard library has in Python too."""
    twin = _TWIN_OF.get(id(function))
    return None if twin is None else _rule(*twin)
