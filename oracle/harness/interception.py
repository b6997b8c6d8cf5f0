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
    backward_is_running,
    fake_mode_is_active,
    functorch_is_active,
    jit_is_tracing,
)
from plumbline.compiler.frontend.units.compiled_module import CompiledModule

from . import stock_torch
from .compilers import CompileRequest


class CallTaker(Protocol):
    """An open session, as interception sees it.

    boundary: which calls count, one of BOUNDARIES.  thread: the only thread whose calls it takes.
    inside: it is judging a call at this moment.
    """

    boundary: str
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
    stock_torch.set_module_call(_module_call if on else stock_torch.STOCK_MODULE_CALL)


def takes_calls(taker: CallTaker) -> bool:
    """Return whether a call at this moment, on this thread, is one for this session to judge."""
    return (
        not taker.inside
        and threading.get_ident() == taker.thread
        and taker in _open
        and not backward_is_running()
        and not functorch_is_active()
        and not jit_is_tracing()
        and not fake_mode_is_active()
        and not stock_torch.is_compiling()
    )


def start_intercepting() -> None:
    """Make every later torch.compile and plumbline.compile visible to sessions."""
    stock_torch.install(_compiled_call)
    Seam.wrap = _wrap_own


def stop_intercepting() -> None:
    """Restore torch.compile and plumbline.compile."""
    stock_torch.uninstall()
    Seam.wrap = None


def _wrap_own(original: Any, compiled: Any, fullgraph: bool, dynamic: bool | None) -> Any:
    """Return what plumbline.compile returns while calls are intercepted."""
    request = CompileRequest(fullgraph=fullgraph, dynamic=dynamic)
    boundary = stock_torch.boundary_function(original, request, compiled)
    if isinstance(compiled, CompiledModule):
        return CompiledModule(original, lambda _module: boundary)
    return boundary


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
        return stock_torch.STOCK_MODULE_CALL(module, *args, **kwargs)
    compiled = stock_torch.compiled_module(module)
    if compiled is not None:
        return session.call(compiled[0], compiled[1], args, kwargs)
    if session.boundary != "module" or _compiled_inside(module):
        return stock_torch.STOCK_MODULE_CALL(module, *args, **kwargs)
    return session.call(module, CompileRequest(), args, kwargs)


def _compiled_inside(module: torch.nn.Module) -> bool:
    """Return whether the user compiled this module's own call or forward: that is the boundary, with its options."""
    implementation = vars(module).get("_compiled_call_impl")
    return any(hasattr(function, "_plumbline_target") for function in (implementation, vars(module).get("forward")))
