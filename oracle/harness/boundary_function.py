"""What stands for a compiled function or module, so that a judge can take its calls; knows no compiler."""

import functools
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

import torch

from .compilers import CompileRequest

STOCK_MODULE_CALL: Callable[..., Any] = torch.nn.Module.__call__

TakeCall = Callable[[Callable[..., Any], CompileRequest, tuple[Any, ...], dict[str, Any]], Any]


class CallHook:
    """Who takes the calls of boundaries; one for the process, because torch.compile is."""

    call: TakeCall | None = None  # None: torch.compile behaves as stock
    inside = False  # in a reference or compiled run a boundary is the plain program


_compiled_modules: "weakref.WeakKeyDictionary[torch.nn.Module, tuple[torch.nn.Module, CompileRequest]]" = (
    weakref.WeakKeyDictionary()
)


def boundary_function(target: Callable[..., Any], request: CompileRequest, otherwise: Callable[..., Any]) -> Any:
    """Return a function like `target` whose calls a judge may take; without a judge it calls `otherwise`."""

    def boundary(*args: Any, **kwargs: Any) -> Any:
        if CallHook.inside:
            return target(*args, **kwargs)
        if CallHook.call is None:
            return otherwise(*args, **kwargs)
        return CallHook.call(boundary, request, args, kwargs)

    if not isinstance(target, torch.nn.Module):
        functools.update_wrapper(boundary, target)
    vars(boundary).update(
        _plumbline_target=target,
        _plumbline_otherwise=otherwise,
        _torchdynamo_inline=target,  # stock traces the target, not this wrapper
        _torchdynamo_orig_callable=target,  # stock unwraps to the target
        _plumbline_original=target,  # and so does ours
    )
    return boundary


def _code_of_boundaries() -> CodeType:
    def nothing() -> None: ...

    code: CodeType = boundary_function(nothing, CompileRequest(), nothing).__code__
    return code


CODE: CodeType = _code_of_boundaries()
"""The one code object that all boundary functions share; after a graph break a compiler must not trace it."""


def remember_compiled_module(compiled: torch.nn.Module, original: torch.nn.Module, request: CompileRequest) -> None:
    """Note that a module came out of torch.compile, and of which module it was made."""
    _compiled_modules[compiled] = (original, request)


def compiled_module(module: torch.nn.Module) -> tuple[torch.nn.Module, CompileRequest] | None:
    """Return what the user compiled if `module` came out of torch.compile, else None."""
    try:
        return _compiled_modules.get(module)
    except TypeError:  # a module that cannot be hashed or referenced weakly
        return None


def set_inside(inside: bool) -> None:
    """Set whether a reference or compiled run is in progress."""
    CallHook.inside = inside


def set_module_call(call: Callable[..., Any]) -> None:
    """Route every nn.Module call through `call`; pass `STOCK_MODULE_CALL` to undo."""
    torch.nn.Module.__call__ = call  # type: ignore[method-assign]  # the one place that all module calls pass
