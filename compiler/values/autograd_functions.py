"""`torch.autograd.Function` and checkpoints: one node of the graph, whose Python is evaluated for its guards only."""

from typing import Any

import torch
import torch.utils.checkpoint

from .attributes import class_lookup
from .classes import ClassValue
from .constant import Constant, calls
from .reasons import AUTOGRAD_CALL, UNKNOWN_CALLEE, Break
from .sequences import SequenceValue, TupleValue
from .source import Injected
from .tensor import TensorValue
from .torch_calls import NamedApart
from .value import Arguments, CaptureContext, Keywords, Value

_TARGETS: dict[type, NamedApart] = {}


class DryContext:
    """What `forward` and `backward` get as `ctx` when they are evaluated for their guards."""

    def save_for_backward(self, *tensors: object) -> None:
        """Keep the tensors."""
        self.saved_tensors = tensors

    def mark_dirty(self, *tensors: object) -> None:
        """Do nothing: the node itself says what it changed."""

    def mark_non_differentiable(self, *tensors: object) -> None:
        """Do nothing: the node itself says what needs a gradient."""

    def set_materialize_grads(self, value: bool) -> None:
        """Do nothing: the gradients evaluated with are always tensors."""


for _name in ("save_for_backward", "mark_dirty", "mark_non_differentiable", "set_materialize_grads"):
    vars(DryContext)[_name]._plumbline_inline = True
_APPLY = vars(torch.autograd.Function)["apply"].__func__


@calls(_APPLY)
def _apply(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Add `Function.apply` as one node.

    The node runs the user's forward and backward as they are. Evaluating both first, and dropping the operations,
    finds every guard they rely on, and refuses what has effects.
    """
    owner = ctx.real(args[0])
    if kwargs or not isinstance(owner, ClassValue):
        raise Break(AUTOGRAD_CALL, "apply of an autograd function with keywords")
    kind: Any = owner.kind
    if class_lookup(kind, "vjp")[1] is not torch.autograd.Function.__dict__.get("vjp", class_lookup(kind, "vjp")[1]):
        raise Break(AUTOGRAD_CALL, f"{kind.__qualname__} with a vjp of its own")
    values = [ctx.real(arg) for arg in args[1:]]
    ctx.evaluate_dry(lambda: _evaluate(ctx, kind, values), kind.__qualname__)
    target = _TARGETS.setdefault(kind, NamedApart(kind.apply))
    return ctx.call_torch("call_function", target, values, {})


def _evaluate(ctx: CaptureContext, kind: Any, values: list[Value]) -> None:
    state = ctx.real(ctx.call(ctx.known(DryContext), [], {}))
    needs = [Constant(isinstance(value, TensorValue) and value.fake.requires_grad) for value in values]
    state.set_attr(ctx, "needs_input_grad", TupleValue(list[Value](needs)))
    forward = ctx.wrap(kind.forward, Injected(kind.forward))
    if kind.setup_context is torch.autograd.Function.setup_context:
        result = ctx.call(forward, [state, *values], {})
    else:
        result = ctx.call(forward, values, {})
        setup = ctx.wrap(kind.setup_context, Injected(kind.setup_context))
        ctx.call(setup, [state, TupleValue(values), result], {})
    if not any(isinstance(value, TensorValue) and value.fake.requires_grad for value in values):
        return
    outputs = list(result.items) if isinstance(result, SequenceValue) else [result]
    gradients: list[Value] = [
        ctx.call_torch("call_function", torch.zeros_like, [value], {})
        for value in map(ctx.real, outputs) if isinstance(value, TensorValue)
    ]
    backward = ctx.wrap(kind.backward, Injected(kind.backward))
    ctx.call(backward, [state, *gradients], {})


_CHECKPOINT_SETTINGS = frozenset({"use_reentrant", "preserve_rng_state", "determinism_check", "early_stop"})


@calls(torch.utils.checkpoint.checkpoint)
def _checkpoint(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate the function itself: the values are the same, and partitioning decides what is computed again."""
    known = {name: ctx.real(kwargs[name]) for name in _CHECKPOINT_SETTINGS if name in kwargs}
    reentrant = known.get("use_reentrant")
    if not (isinstance(reentrant, Constant) and reentrant.value is False) or kwargs.keys() & {"context_fn", "debug"}:
        raise Break(UNKNOWN_CALLEE, "a reentrant checkpoint, or one with contexts of its own")
    rest = {name: value for name, value in kwargs.items() if name not in _CHECKPOINT_SETTINGS}
    return ctx.call(args[0], args[1:], rest)
