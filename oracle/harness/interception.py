"""Interception: calls of everything the user compiled, and of modules, go to the open session.

Three places are replaced: `torch.compile` and `plumbline.compile` after `start_intercepting`, and
`torch.nn.Module.__call__` while a session is open.
"""

import threading
from collections.abc import Callable
from typing import Any, Protocol

import torch

from plumbline.compiler.base.seam import Seam
from plumbline.compiler.base.torch_facts import (
    fake_mode_is_active,
    functorch_is_active,
    jit_is_tracing,
    running_backward,
)
from plumbline.compiler.frontend.units.compiled_module import CompiledModule
from plumbline.compiler.frontend.units.distributed_module import Distributed, view_with_compiled_module

from .boundary_function import STOCK_MODULE_CALL, CallHook, boundary_function, compiled_module, set_module_call
from .compile_name import load_at_first_call, restore_stock
from .compilers import CompileRequest


class CallTaker(Protocol):
    """An open session, as interception sees it.

    takes_modules: whether calls of modules count that the user has not compiled.
    thread: the only thread whose calls it takes.
    inside: it is judging a call at this moment.
    """

    takes_modules: bool
    thread: int
    inside: bool

    def call(
        self, target: Callable[..., Any], request: CompileRequest, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run one call of a boundary and return, or raise, what the live run gives."""


_open: list[CallTaker] = []
"""Open sessions, innermost last; only the last one is offered calls."""


def open_to(taker: CallTaker) -> None:
    """Start offering the calls of boundaries to this session."""
    _open.append(taker)
    watch_modules(True)


def close_to(taker: CallTaker) -> None:
    """Stop offering calls to this session."""
    watch_modules(False)
    _open.remove(taker)


def is_open_to(taker: CallTaker) -> bool:
    """Return whether the session is open."""
    return taker in _open


def watch_modules(on: bool) -> None:
    """Start or stop offering calls of modules."""
    set_module_call(_module_call if on else STOCK_MODULE_CALL)


def takes_calls(taker: CallTaker) -> bool:
    """Return whether a call at this moment, on this thread, is one for this session to judge."""
    return (
        not taker.inside
        and threading.get_ident() == taker.thread
        and taker in _open
        and running_backward() == -1
        and not functorch_is_active()
        and not jit_is_tracing()
        and not fake_mode_is_active()
        and not torch.compiler.is_compiling()
    )


def start_intercepting() -> None:
    """Make every later torch.compile and plumbline.compile visible to sessions."""
    CallHook.call = _compiled_call
    load_at_first_call(vars(torch), _intercept_stock)
    Seam.wrap = _wrap_own


def stop_intercepting() -> None:
    """Restore torch.compile and plumbline.compile; existing wrappers behave as stock from now on."""
    CallHook.call = None
    restore_stock(vars(torch))
    Seam.wrap = None


def _intercept_stock() -> None:
    from .stock_torch import install  # torch's own compiler takes seconds to import; only those who call it pay

    install()


def _wrap_own(original: Any, compiled: Any, fullgraph: bool, dynamic: bool | None) -> Any:
    """Return what plumbline.compile returns while calls are intercepted."""
    request = CompileRequest(fullgraph=fullgraph, dynamic=dynamic)
    if isinstance(original, Distributed):
        return _wrap_distributed(original, compiled, request)
    boundary = boundary_function(original, request, compiled)
    if isinstance(compiled, CompiledModule):
        return CompiledModule(original, lambda _module: boundary)
    return boundary


def _wrap_distributed(original: Distributed, compiled: CompiledModule, request: CompileRequest) -> CompiledModule:
    """Return what stands for a compiled DistributedDataParallel: the module inside is the boundary.

    The wrapper's own calls talk to the other processes. Each of the judge's runs would be one more, which the others
    do not make; the gradients that it asks for pass by the wrapper's hooks.
    """
    view = view_with_compiled_module(
        original, lambda inner: boundary_function(inner, request, lambda *args: compiled._entry(inner)(*args))
    )
    return CompiledModule(original, lambda _module: view)


def _compiled_call(boundary: Any, request: CompileRequest, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Take the call of something the user gave to torch.compile (or of a target)."""
    session = _open[-1] if _open else None
    if session is None or threading.get_ident() != session.thread:
        return boundary._plumbline_otherwise(*args, **kwargs)
    if takes_calls(session):
        return session.call(boundary._plumbline_target, request, args, kwargs)
    return boundary._plumbline_target(*args, **kwargs)  # inside a reference or compiled run: the plain program


def _module_call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Take the call of an outermost module, or of one that came out of torch.compile."""
    session = _open[-1] if _open else None
    if session is None or not takes_calls(session):
        return STOCK_MODULE_CALL(module, *args, **kwargs)
    compiled = compiled_module(module)
    if compiled is not None:
        return session.call(compiled[0], compiled[1], args, kwargs)
    if not session.takes_modules or _compiled_inside(module) or isinstance(module, Distributed):
        return STOCK_MODULE_CALL(module, *args, **kwargs)
    return session.call(module, CompileRequest(), args, kwargs)


def _compiled_inside(module: torch.nn.Module) -> bool:
    """Return whether the user compiled this module's own call or forward: that is the boundary, with its options."""
    implementation = vars(module).get("_compiled_call_impl")
    return any(hasattr(function, "_plumbline_target") for function in (implementation, vars(module).get("forward")))
