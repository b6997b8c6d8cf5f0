"""Functions under `assume_constant_result`: called once, while their caller is captured, with the real arguments.

A tensor that the graph has computed by then is computed from the real inputs for this: nothing is guarded, because
the program says that the result is the same for all of them.
"""

import types
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ...base.function_marks import own_mark
from ..constant import LITERAL_TYPES
from ..guard import GuardKind
from ..python.containers.sequences import SequenceValue
from ..reasons import ARGUMENT_NOT_KNOWN, Break
from ..rule_tables import CallRule
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Value
from .control_flow import writes
from .tensor import TensorValue


def constant_result_rule(function: object) -> CallRule | None:
    """Return the rule of a function under `assume_constant_result`, known by the attribute that torch's leaves too."""
    if not isinstance(function, types.FunctionType) or not own_mark(function, "_dynamo_marked_constant"):
        return None

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        arguments = [_known_object(ctx, arg) for arg in args]
        named = {name: _known_object(ctx, value) for name, value in kwargs.items()}
        result = function(*arguments, **named)
        return ctx.known(result) if type(result) in LITERAL_TYPES else ctx.wrap(result, Injected(result))

    return rule


def _known_object(ctx: CaptureContext, value: Value) -> object:
    """Return the real object of a value; raises Break for one that cannot be had while capturing."""
    value = ctx.realize(value)
    if value.is_constant():
        return value.constant()
    if isinstance(value, TensorValue):
        return _real_tensor(ctx, value)
    if isinstance(value, SequenceValue) and value.source is None:
        items = [_known_object(ctx, item) for item in ctx.unpack(value)]
        return value.python_type()(items)
    real = value.identity()
    if value.source is None or isinstance(real, Value):
        value.unsupported("a result assumed constant: an argument", ARGUMENT_NOT_KNOWN)
    ctx.guards.add(value.source, GuardKind.IDENTITY, real)
    return real


def _real_tensor(ctx: CaptureContext, value: TensorValue) -> torch.Tensor:
    """Return the tensor that a value of the graph is at this call; raises Break where that takes more than reading."""
    inputs = {tensor.node: tensor.real for tensor in ctx.graph.inputs() if isinstance(tensor, TensorValue)}
    if ctx.graph.mutates_inputs or ctx.graph.draws() or ctx.graph.is_apart():
        value.unsupported("a result assumed constant: an argument behind a write or a draw", ARGUMENT_NOT_KNOWN)
    known: dict[fx.Node, Any] = dict(inputs)
    with torch.no_grad():
        for node in value.node.graph.nodes:
            if node not in known and node in _needed(value.node):
                known[node] = _computed(node, known)
    result = known[value.node]
    assert isinstance(result, torch.Tensor)
    return result


def _needed(node: fx.Node) -> set[fx.Node]:
    needed: set[fx.Node] = set()
    pending = [node]
    while pending:
        here = pending.pop()
        if here not in needed:
            needed.add(here)
            pending.extend(here.all_input_nodes)
    return needed


def _computed(node: fx.Node, known: dict[fx.Node, Any]) -> Any:
    """Run one operation on real tensors."""
    written = any(writes(user) for source in node.all_input_nodes for user in source.users)
    if node.op not in ("call_function", "call_method") or written or writes(node):
        raise Break(ARGUMENT_NOT_KNOWN, f"a result assumed constant: an argument made by {node.target}")
    args, kwargs = fx.map_arg((node.args, node.kwargs), lambda source: known[source])
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    target: Callable[..., Any] = node.target  # type: ignore[assignment]  # of a call_function
    return target(*args, **kwargs)
