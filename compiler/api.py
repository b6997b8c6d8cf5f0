"""The public functions of the compiler: compile, explain, run, reset, disable and others, with argument checks."""

import functools
import inspect
import threading
import types
from collections.abc import Callable, Mapping
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, ref

import numpy
import torch

from .backends import list_backends, register_backend
from .base.config import CONFIG
from .base.errors import UserError
from .base.events import Event, Recompiled, forget_stage_times, listen, stage_times
from .base.options import Options, Settings
from .base.seam import Seam
from .explanation import Explanation, explanation_of
from .frontend.compiled_module import CompiledModule
from .frontend.size_marks import DYNAMIC, RANGES, STATIC
from .frontend.unit import FROZEN, Family
from .pipeline import compile_callable, make_family
from .values.torch.torch_calls import allow, disallow

_MODES = frozenset({None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"})
_FAMILIES: WeakSet[Family] = WeakSet()
_COMPILED: WeakKeyDictionary[Any, ReferenceType[Any]] = WeakKeyDictionary()  # the newest compiled form, for run()


def compile(  # noqa: A001 - the name users know
    model: Any = None,
    *,
    backend: str | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | Options | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    nopython: bool | None = None,
) -> Any:
    """Compile a function, method or module; called without one, return a decorator.

    backend: a name from `list_backends()`, or a callable (graph module, example inputs) -> callable. fullgraph (alias
    nopython): raise Unsupported, with the user's line, instead of breaking the graph. dynamic: True makes every size
    symbolic, False none, None a size that has changed. options: fields of `Options`. disable: return the model
    unchanged. recompile_limit: specialisations of one function; further guard failures run eagerly.
    Raises UserError for an unknown backend, mode or option.
    """
    if model is None:
        return functools.partial(
            compile,
            backend=backend,
            fullgraph=fullgraph,
            dynamic=dynamic,
            mode=mode,
            options=options,
            disable=disable,
            recompile_limit=recompile_limit,
            nopython=nopython,
        )
    if mode not in _MODES:
        known = ", ".join(sorted(name for name in _MODES if name))
        raise UserError(f"no mode is named {mode!r}", hint=f"one of: {known}")
    family = make_family(
        backend, _settings(options, recompile_limit), fullgraph=fullgraph or bool(nopython), dynamic=dynamic
    )
    if disable:
        return model
    _FAMILIES.add(family)
    original = _original(model)
    compiled = compile_callable(original, family)
    _remember(original, compiled)
    if Seam.wrap is None or not isinstance(backend, str):
        return compiled
    return Seam.wrap(original, compiled, family.fullgraph, dynamic)


def _settings(options: Mapping[str, Any] | Options | None, recompile_limit: int | None) -> Settings:
    last = {} if recompile_limit is None else {"recompile_limit": recompile_limit}
    if isinstance(options, Options):
        return options.replace(**last)
    return CONFIG.over_environment({**(options or {}), **last})


def _original(model: Any) -> Any:
    """Return the original of a compiled or disabled function: the outermost mark wins."""
    if isinstance(model, CompiledModule):
        return model._orig_mod
    if isinstance(model, types.MethodType):
        return types.MethodType(_original(model.__func__), model.__self__)
    if not isinstance(model, types.FunctionType):
        return model
    for mark in ("_plumbline_original", "_plumbline_disabled", "_torchdynamo_orig_callable"):
        found = model.__dict__.get(mark)
        if found is not None:
            return _original(found)
    return model


def _remember(original: Any, compiled: Any) -> None:
    if isinstance(original, types.FunctionType | torch.nn.Module) and compiled is not original:
        _COMPILED[original] = ref(compiled)


def explain(model: Any, *args: Any, **kwargs: Any) -> Any:
    """Run the function once under capture and return an Explanation of the result.

    `explain(f)(*args)` and `explain(f, *args)` are equivalent. The result prints as in the FAQ, and unpacks as
    (explanation, guards, graphs, operations per graph).
    """

    def run(*run_args: Any, **run_kwargs: Any) -> Explanation:
        def family(backend: Callable[..., Any]) -> Any:
            return compile_callable(
                _original(model), make_family(backend, _settings(None, None), fullgraph=False, dynamic=None)
            )

        return explanation_of(family, run_args, run_kwargs)

    return run(*args, **kwargs) if args or kwargs else run


def run(function: Any) -> Any:
    """Return a frozen function or module: it uses existing specialisations, and runs eagerly where none fits.

    If the function is not itself compiled, the most recent result of `compile` for it is used.
    """
    if isinstance(function, torch.nn.Module):
        original = _original(function)
        return CompiledModule(original, lambda _: _frozen(_newest(function)))
    return functools.update_wrapper(
        _frozen(lambda *args, **kwargs: _newest(function)(*args, **kwargs)), function, updated=()
    )


def _newest(function: Any) -> Any:
    known = _COMPILED.get(function) if isinstance(function, types.FunctionType | torch.nn.Module) else None
    found = known() if known is not None else None
    return function if found is None else found


def _frozen(function: Callable[..., Any]) -> Callable[..., Any]:
    def frozen(*args: Any, **kwargs: Any) -> Any:
        before = FROZEN.on
        FROZEN.on = True
        try:
            return function(*args, **kwargs)
        finally:
            FROZEN.on = before

    return frozen


def reset() -> None:
    """Discard every specialisation of every compiled function, and the times of `compile_times()`."""
    for family in list(_FAMILIES):
        family.reset()
    forget_stage_times()


def disable(function: Any = None, recursive: bool = True) -> Any:
    """Leave a function uncompiled where compiled code calls it; a decorator, with or without arguments.

    recursive: True also leaves everything it calls uncompiled; False compiles what it calls. For a function, method,
    descriptor or callable object, a marked copy is returned. A class or module is marked in place; for a class this
    covers `__init__`, `__call__` and, for a module class, `forward`.  Raises UserError for an object that is not
    callable.
    """
    if function is None:
        return functools.partial(disable, recursive=recursive)
    target = _original(function)
    if isinstance(target, type):
        return _disable_class(target, recursive)
    if isinstance(target, torch.nn.Module):
        target.forward = disable(target.forward, recursive)
        return target
    if isinstance(target, types.MethodType):
        return types.MethodType(disable(target.__func__, recursive), target.__self__)
    if isinstance(target, staticmethod | classmethod):
        return type(target)(disable(target.__func__, recursive))
    if isinstance(target, property) and target.fget is not None:
        return property(disable(target.fget, recursive), target.fset, target.fdel, target.__doc__)
    if not callable(target):
        raise UserError(
            f"disable() cannot be applied to {type(target).__name__}", hint="pass a function, method, class or module"
        )
    return _disabled(target, recursive)


def _disabled(target: Callable[..., Any], recursive: bool) -> Callable[..., Any]:
    @functools.wraps(target)
    def uncompiled(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    uncompiled.__dict__.update(_plumbline_disable="all" if recursive else "frame", _plumbline_disabled=target)
    return uncompiled


def _disable_class(target: type, recursive: bool) -> type:
    names = ("__init__", "__call__", "forward") if issubclass(target, torch.nn.Module) else ("__init__", "__call__")
    for name in names:
        found = inspect.getattr_static(target, name, None)
        if isinstance(found, types.FunctionType) and found is not vars(torch.nn.Module).get(name):
            setattr(target, name, disable(found, recursive))
    return target


def assume_constant_result(function: Any) -> Any:
    """Call the function once, during capture of its caller, and treat the result as a constant from then on.

    The arguments must be known during capture: literals, and objects from outside the captured code.
    """
    if not callable(function):
        raise UserError(
            f"assume_constant_result() cannot be applied to {type(function).__name__}", hint="pass a function"
        )
    function._dynamo_marked_constant = True
    return function


def skip(function: Any = None) -> Any:
    """Raise UserError: the name is deprecated."""
    del function
    raise UserError("skip is deprecated", hint="use disable(recursive=False)")


def graph_break(message: str = "") -> None:
    """Break the graph here; does nothing in uncompiled code. message: a reason for readers of the program."""


graph_break._plumbline_graph_break = True  # type: ignore[attr-defined]  # functions take attributes


def is_compiling() -> bool:
    """Return True in code that is being captured, False elsewhere."""
    return False


def is_dynamo_compiling() -> bool:
    """Return what `is_compiling` returns; the FAQ uses this name."""
    return False


for _function in (is_compiling, is_dynamo_compiling):
    _function._plumbline_constant = True  # type: ignore[attr-defined]  # read by frontend/skip_rules


def allow_in_graph(function: Any) -> Any:
    """Capture calls of a callable (or each of a list) as one node, without looking into its body.

    The function must depend only on its arguments, and must not change anything.
    """
    for item in function if isinstance(function, list | tuple) else [function]:
        if not callable(item):
            raise UserError(f"allow_in_graph() cannot be applied to {type(item).__name__}", hint="pass a callable")
        allow(item)
    return function


def disallow_in_graph(function: Any) -> Any:
    """Break the graph at every call of an operator (or each of a list); `allow_in_graph` undoes this."""
    for item in function if isinstance(function, list | tuple) else [function]:
        if not callable(item):
            raise UserError(f"disallow_in_graph() cannot be applied to {type(item).__name__}", hint="pass a callable")
        disallow(item)
    return function


def wrap_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a function of NumPy arrays into a function of tensors; results are on the device of the inputs.

    The function runs in NumPy on the CPU, even when compiled code calls it. Gradients do not pass through it.
    Tensors and arrays inside tuples, lists and dicts are converted.
    """

    @functools.wraps(function)
    def of_tensors(*args: Any, **kwargs: Any) -> Any:
        devices: list[torch.device] = []
        result = function(*_arrays(args, devices), **_arrays(kwargs, devices))
        return _tensors(result, devices[0] if devices else None)

    of_tensors.__dict__.pop("_plumbline_original", None)
    of_tensors.__dict__["_plumbline_inline"] = True
    return of_tensors


def _arrays(value: Any, devices: list[torch.device]) -> Any:
    """Return the value with tensors replaced by arrays; devices: a list to which the tensors' devices are added."""
    if isinstance(value, torch.Tensor):
        devices.append(value.device)
        return value.cpu().numpy()
    if type(value) in (tuple, list):
        return type(value)([_arrays(part, devices) for part in value])
    if type(value) is dict:
        return {key: _arrays(part, devices) for key, part in value.items()}
    return value


def _tensors(value: Any, device: torch.device | None) -> Any:
    """Return the value with arrays replaced by tensors."""
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return torch.as_tensor(value, device=device)
    if type(value) in (tuple, list):
        return type(value)([_tensors(part, device) for part in value])
    if type(value) is dict:
        return {key: _tensors(part, device) for key, part in value.items()}
    return value


for _conversion in (_arrays, _tensors):
    vars(_conversion)["_plumbline_inline"] = True  # capture looks inside


def mark_dynamic(
    tensor: torch.Tensor,
    index: int | list[int] | tuple[int, ...],
    *,
    min: int | None = None,  # noqa: A002  the name in torch
    max: int | None = None,  # noqa: A002  as above
) -> None:
    """Make dimensions of a tensor symbolic from the first capture on (dynamic shapes).

    min, max: bounds of the sizes; a call outside them is captured again.  Raises UserError for a dimension that the
    tensor does not have, or whose size is not within the bounds.
    """
    for dimension in _mark(tensor, index, DYNAMIC):
        if (min is not None and tensor.shape[dimension] < min) or (max is not None and tensor.shape[dimension] > max):
            size = tensor.shape[dimension]
            raise UserError(f"dimension {dimension} has size {size}, not in {min} to {max}", hint="widen the range")
        tensor.__dict__.setdefault(RANGES, {})[dimension] = (min, max)


def maybe_mark_dynamic(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...]) -> None:
    """Do the same as `mark_dynamic`; a size that the program needs as a number is specialised, with an event."""
    _mark(tensor, index, DYNAMIC)


def mark_unbacked(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...]) -> None:
    """Do the same as `mark_dynamic`: sizes 0 and 1 are specialised, and no other size is assumed."""
    _mark(tensor, index, DYNAMIC)


def mark_static(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...] | None = None) -> None:
    """Specialise on dimensions of a tensor (None: all), whatever `dynamic` says."""
    _mark(tensor, list(range(tensor.dim())) if index is None else index, STATIC)


def _mark(tensor: torch.Tensor, index: int | list[int] | tuple[int, ...], name: str) -> list[int]:
    dimensions = list(index) if isinstance(index, list | tuple) else [index]
    for dimension in dimensions:
        if not -tensor.dim() <= dimension < tensor.dim():
            raise UserError(
                f"a tensor of {tensor.dim()} dimensions has no dimension {dimension}", hint="name one it has"
            )
    found = [dimension % tensor.dim() for dimension in dimensions]
    marked: set[int] = tensor.__dict__.setdefault(name, set())
    marked.update(found)
    return found


def compile_times() -> str:
    """Return a table of the time spent in each stage of compilation: runs, total and longest, in seconds."""
    times = stage_times()
    width = max((len(name) for name in times), default=5)
    rows = [f"{'stage':<{width}}  runs  total s  longest s"]
    for name, seconds in sorted(times.items(), key=lambda item: -sum(item[1])):
        rows.append(f"{name:<{width}}  {len(seconds):>4}  {sum(seconds):>7.3f}  {max(seconds):>9.3f}")
    return "\n".join(rows)


class CompileProfiler:
    """A backend that runs graphs as captured, and reports graph breaks and recompilations.

    `with CompileProfiler() as prof: compile(f, backend=prof)(x); print(prof.report())`
    """

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0
        self.events: list[Event] = []
        self._stop: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def __call__(self, graph: torch.fx.GraphModule, example_inputs: list[object]) -> Callable[..., Any]:
        """Count the graph and return it unchanged."""
        del example_inputs
        with self._lock:
            self.frame_count += 1
            self.op_count += sum(node.op.startswith("call_") for node in graph.graph.nodes)
        forward: Callable[..., Any] = graph.forward
        return forward

    def __enter__(self) -> "CompileProfiler":
        """Start watching."""
        self._stop = listen(self.events.append)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        if self._stop is not None:
            self._stop()

    def report(self) -> str:
        """Return the graph breaks with their lines, and the recompilations with the guards that failed."""
        return explanation_of_events(self.events, self.frame_count, self.op_count)


def explanation_of_events(events: list[Event], graphs: int, operations: int) -> str:
    """Return the profiler's report."""
    parts = [Explanation.from_events(events, graphs, operations).text()]
    recompiled = [event for event in events if isinstance(event, Recompiled)]
    if not recompiled:
        parts.append("No recompilation detected.")
    for event in recompiled:
        where = f" ({event.origin.place()})" if event.origin else ""
        parts.append(
            f"{event.function} was recompiled: the guard `{event.guard}`{where} found {event.actual};"
            " pass a constant shape or value, or mark the dimension dynamic (docs/guards-and-recompiles.md)"
        )
    return "\n".join(parts)


__all__ = [
    "CompileProfiler",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "compile_times",
    "disable",
    "disallow_in_graph",
    "explain",
    "graph_break",
    "is_compiling",
    "is_dynamo_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "register_backend",
    "reset",
    "run",
    "skip",
    "wrap_numpy",
]
