"""`allow_in_graph(f)` in captured code, ours and torch's: f is marked, as outside, and comes back as it is.

What a transform of torch.func has made becomes a node in any case, and a function defined in the captured code is
evaluated: what its calls do is known, so both need no mark.
"""

import types

import torch

from ...base.function_marks import own_mark
from ..constant import Known
from ..python.objects.functions import FunctionValue
from ..reasons import UNKNOWN_CALLEE, Break
from ..rule_tables import CallRule
from ..value import Arguments, CaptureContext, Keywords, Value
from .torch_calls import allow
from .transforms import TransformValue

_STOCK = ("torch._dynamo.decorators", "allow_in_graph")  # by name: importing it would load torch's own compiler


def allowing_rule(function: object) -> CallRule | None:
    """Return the rule of `allow_in_graph`, ours or one of torch's two."""
    if not isinstance(function, types.FunctionType):
        return None
    by_name = (function.__module__, function.__qualname__) == _STOCK
    if not by_name and function is not torch.compiler.allow_in_graph and not own_mark(function, "_plumbline_allows"):
        return None
    return _allow_here


def _allow_here(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Mark the function and give it back."""
    target = ctx.realize(args[0]) if len(args) == 1 and not kwargs else None
    if isinstance(target, TransformValue):
        return target
    real = target.identity() if isinstance(target, FunctionValue | Known) else None
    if target is None or not (callable(real) or isinstance(target, FunctionValue)):
        raise Break(UNKNOWN_CALLEE, "allow_in_graph of something that is not one function")
    if isinstance(real, types.FunctionType | types.BuiltinFunctionType):
        allow(real)
    return target
