"""What a program says about its own functions: leave them uncompiled, break here, take them as they are."""

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

import torch

from .base.errors import UserError
from .base.function_marks import own_mark
from .frontend.units.compiled_module import CompiledModule
from .values.torch.torch_calls import allow, disallow


@functools.singledispatch
def original_of(model: Any) -> Any:
    """Return the original of a compiled or disabled function: the outermost mark wins."""
    return model


@original_of.register
def _(model: CompiledModule) -> Any:
    return model._orig_mod


@original_of.register
def _(model: types.MethodType) -> Any:
    return types.MethodType(original_of(model.__func__), model.__self__)


@original_of.register
def _(model: types.FunctionType) -> Any:
    for mark in ("_plumbline_original", "_plumbline_disabled", "_torchdynamo_orig_callable"):
        original = own_mark(model, mark)
        if original is not None:
            return original_of(original)
    return model


def disable(function: Any = None, recursive: bool = True) -> Any:
    """Leave a function uncompiled where compiled code calls it; a decorator, with or without arguments.

    recursive: True also leaves everything it calls uncompiled; False compiles what it calls. For a function, method,
    descriptor or callable object, a marked copy is returned. A class or module is marked in place; for a class this
    covers `__init__`, `__call__` and, for a module class, `forward`.  Raises UserError for an object that is not
    callable.
    """
    if function is None:
        return functools.partial(disable, recursive=recursive)
    return _without_compiling(original_of(function), recursive)


@functools.singledispatch
def _without_compiling(target: Any, recursive: bool) -> Any:
    """Return what `disable` gives for an original, by its kind."""
    if not callable(target):
        raise UserError(
            f"disable() cannot be applied to {type(target).__name__}", hint="pass a function, method, class or module"
        )
    return _disabled(target, recursive)


@_without_compiling.register
def _(target: type, recursive: bool) -> Any:
    return _disable_class(target, recursive)


@_without_compiling.register
def _(target: torch.nn.Module, recursive: bool) -> Any:
    target.forward = disable(target.forward, recursive)
    return target


@_without_compiling.register
def _(target: types.MethodType, recursive: bool) -> Any:
    return types.MethodType(disable(target.__func__, recursive), target.__self__)


@_without_compiling.register(staticmethod)
@_without_compiling.register(classmethod)
def _(target: Any, recursive: bool) -> Any:
    return type(target)(disable(target.__func__, recursive))


@_without_compiling.register
def _(target: property, recursive: bool) -> Any:
    if target.fget is None:
        raise UserError("disable() cannot be applied to property", hint="pass a function, method, class or module")
    return property(disable(target.fget, recursive), target.fset, target.fdel, target.__doc__)


def _disabled(target: Callable[..., Any], recursive: bool) -> Callable[..., Any]:
    @functools.wraps(target)
    def uncompiled(*args: Any, **kwargs: Any) -> Any:
        return target(*args, **kwargs)

    uncompiled.__dict__.update(_plumbline_disable="all" if recursive else "frame", _plumbline_disabled=target)
    return uncompiled


def _disable_class(target: type, recursive: bool) -> type:
    names = ("__init__", "__call__", "forward") if issubclass(target, torch.nn.Module) else ("__init__", "__call__")
    for name in names:
        member = inspect.getattr_static(target, name, None)
        if isinstance(member, types.FunctionType) and member is not vars(torch.nn.Module).get(name):
            setattr(target, name, disable(member, recursive))
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


allow_in_graph._plumbline_allows = True  # type: ignore[attr-defined]  # read where captured code calls it


def disallow_in_graph(function: Any) -> Any:
    """Break the graph at every call of an operator (or each of a list); `allow_in_graph` undoes this."""
    for item in function if isinstance(function, list | tuple) else [function]:
        if not callable(item):
            raise UserError(f"disallow_in_graph() cannot be applied to {type(item).__name__}", hint="pass a callable")
        disallow(item)
    return function
