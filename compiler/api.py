"""compile, explain, run and reset: argument checks, and the compiled forms that are known."""

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, WeakSet, ref

import torch

from .backends import resolve_backend
from .base.bisecting.applications import count_anew
from .base.config import CONFIG
from .base.errors import UserError
from .base.events import FellBack, forget_stage_times, record
from .base.options import Options, Settings, compilation_is_switched_off, in_force, options_from_environment
from .base.seam import Seam
from .controls import original_of
from .explanation import Explanation, explanation_of
from .frontend.units.compiled_module import CompiledModule
from .frontend.units.shared_units import forget_units, keep_unit, shared_family
from .frontend.units.unit import FROZEN, Family
from .pipeline import compile_callable, make_family

_NOTHING_TO_TUNE = "it tries other kernels for matrix products and convolutions, which are ATen's here, on every mode"
_NO_EFFECT = {
    "reduce-overhead": "it sets cuda_graphs, which Triton's kernels on a GPU look at; on a CPU calls cost the same",
    "max-autotune": _NOTHING_TO_TUNE,
    "max-autotune-no-cudagraphs": _NOTHING_TO_TUNE,
}
_OF_MODES: Mapping[str | None, Mapping[str, object]] = {"reduce-overhead": {"cuda_graphs": True}}
_MODES = frozenset({None, "default", *_NO_EFFECT})

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
    symbolic, False none, None a size that has changed. options: fields of `Options`.
    disable: return the model unchanged; TORCHDYNAMO_DISABLE=1 and TORCH_COMPILE_DISABLE=1 in the environment do so too.
    recompile_limit: specialisations of one function; further guard failures run eagerly.
    mode: a name of torch's; `reduce-overhead` sets the option `cuda_graphs`, others change nothing, and an event
    (FellBack) says what has no effect and why.
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
    _look_at_mode(mode)
    settings, full = _settings(options, recompile_limit, _OF_MODES.get(mode, {})), fullgraph or bool(nopython)
    whose = backend if isinstance(backend, str) else id(backend)  # the family holds it: the number stays its own
    key = (
        whose,
        _key_of(options),
        mode in _OF_MODES,
        recompile_limit,
        options_from_environment(),
        full,
        dynamic,
        Seam.plants,
    )
    family = shared_family(key, lambda: make_family(backend, settings, fullgraph=full, dynamic=dynamic))
    if disable or compilation_is_switched_off():
        return model
    _FAMILIES.add(family)
    original = original_of(model)
    compiled = compile_callable(original, family)
    if compiled is not original:
        keep_unit(original, family)
    _remember(original, compiled)
    if Seam.wrap is None or not isinstance(backend, str):
        return compiled
    return Seam.wrap(original, compiled, family.fullgraph, dynamic)


def _look_at_mode(mode: str | None) -> None:
    """Put on record what a mode does not do; raises UserError for one that does not exist."""
    if mode not in _MODES:
        known = ", ".join(sorted(name for name in _MODES if name))
        raise UserError(f"no mode is named {mode!r}", hint=f"one of: {known}")
    if mode in _NO_EFFECT:
        record(FellBack(f"mode={mode!r}", f"no effect: {_NO_EFFECT[mode]}"))


def _key_of(options: Mapping[str, Any] | Options | None) -> object:
    """Return what equal options have in common."""
    return tuple(sorted(options.items())) if isinstance(options, Mapping) else options


def _settings(
    options: Mapping[str, Any] | Options | None, recompile_limit: int | None, of_mode: Mapping[str, object]
) -> Settings:
    """Return the settings of a call: what it names goes before what its mode stands for."""
    last = {} if recompile_limit is None else {"recompile_limit": recompile_limit}
    if isinstance(options, Options):
        return options.replace(**{**of_mode, **last})
    return CONFIG.over_environment({**of_mode, **(options or {}), **last})


def _remember(original: Any, compiled: Any) -> None:
    if isinstance(original, types.FunctionType | torch.nn.Module) and compiled is not original:
        _COMPILED[original] = ref(compiled)


def explain(model: Any, *args: Any, **kwargs: Any) -> Any:
    """Run the function once under capture and return an Explanation of the result.

    `explain(f)(*args)` and `explain(f, *args)` are equivalent. The result prints as in the FAQ, and unpacks as
    (explanation, guards, graphs, operations per graph). Under the option `kernel_language="triton"` the graphs are
    compiled too, and it says of each how many kernels it launches, and what is left to ATen for what reason.
    """
    settings = _settings(None, None, {})
    run_graph, _, _ = resolve_backend("triton" if in_force(settings).kernel_language == "triton" else "eager", settings)

    def run(*run_args: Any, **run_kwargs: Any) -> Explanation:
        def family(backend: Callable[..., Any]) -> Any:
            return compile_callable(original_of(model), make_family(backend, settings, fullgraph=False, dynamic=None))

        return explanation_of(family, run_args, run_kwargs, run_graph)

    return run(*args, **kwargs) if args or kwargs else run


def run(function: Any) -> Any:
    """Return a frozen function or module: it uses existing specialisations, and runs eagerly where none fits.

    If the function is not itself compiled, the most recent result of `compile` for it is used.
    """
    if isinstance(function, torch.nn.Module):
        original = original_of(function)
        return CompiledModule(
            original, lambda _: _frozen(_newest(function)), lambda _: _frozen(_newest(function).forward)
        )
    return functools.update_wrapper(
        _frozen(lambda *args, **kwargs: _newest(function)(*args, **kwargs)), function, updated=()
    )


def _newest(function: Any) -> Any:
    known = _COMPILED.get(function) if isinstance(function, types.FunctionType | torch.nn.Module) else None
    newest = known() if known is not None else None
    return function if newest is None else newest


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
    """Discard every specialisation of every compiled function, the times of `compile_times()` and `bisect`'s counts."""
    for family in list(_FAMILIES):
        family.reset()
    forget_units()
    forget_stage_times()
    count_anew()
