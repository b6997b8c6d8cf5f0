"""Questions of a program to itself and to its environment: signatures, variables, frames."""

import builtins
import inspect
import os
import sys
import types

from .constant import Constant, calls, fold
from .conversion_calls import known_argument
from .environment import EnvironmentValue
from .exceptions import TracebackValue
from .functions import BoundMethod, FunctionValue
from .sequences import TupleValue
from .value import Arguments, CaptureContext, Keywords, Value


@calls(inspect.signature)
def _signature(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    target = ctx.real(args[0])
    if isinstance(target, BoundMethod) and isinstance(target.function, FunctionValue) and target.function.real:
        return fold(ctx, inspect.signature, types.MethodType(target.function.real, object()))
    if isinstance(target, FunctionValue) and target.real is not None:
        return fold(ctx, inspect.signature, target.real)
    return fold(ctx, inspect.signature, known_argument(ctx, target, "signature"))


@calls(os.getenv)
def _getenv(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return EnvironmentValue().call_method(ctx, "get", args, kwargs)


@calls(builtins.globals, builtins.locals, builtins.eval, builtins.exec, builtins.dir, sys._getframe)
def _reflection(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    ctx.needs_own_frame("globals(), locals(), eval() and the like look at the frame that calls them")




@calls(sys.exc_info)
def _exception_info(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    handled = ctx.handled_exception()
    if handled is None:
        return TupleValue([Constant(None), Constant(None), Constant(None)])
    return TupleValue([ctx.known(handled.python_type()), handled, TracebackValue(handled)])


@calls(sys.exception)
def _current_exception(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.handled_exception() or Constant(None)
