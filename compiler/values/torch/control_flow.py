"""`torch.cond` and `while_loop`: one node over graphs of the branches, decided by the data when the graph runs.

torch's `map` and `scan` have as many turns as a tensor is long: they are written out in the graph.
"""

import types
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from ...base.nested import map_nested
from ...base.torch_facts import storage_key, while_loop
from ...base.torch_versions import precedes
from ..constant import Constant
from ..python.containers.lists import ListValue
from ..python.containers.tuples import TupleValue
from ..reasons import DATA_DEPENDENT_BRANCH, Break
from ..rule_tables import CallRule, calls
from ..value import Arguments, CaptureContext, Keywords, Value
from .tensor import TensorValue
from .transforms import tensors_in

Nodes = tuple[fx.Node, ...]


class Body:
    """A captured branch; lifted: the nodes of the surrounding graph that it reads."""

    def __init__(
        self, ctx: CaptureContext, function: Value, operands: list[object], *, may_give_inputs: bool = False
    ) -> None:
        self.result, self.graph, self.lifted = ctx.graph.evaluate_apart(function, tuple(operands), {})
        if any(map(writes, self.graph.graph.nodes)):
            raise Break(DATA_DEPENDENT_BRANCH, f"{function.describe()} changes a tensor, in a branch")
        self.leaves: list[torch.Tensor] = tensors_in(self.result)
        inputs = tensors_in(operands) + tensors_in([node.meta.get("example_value") for node in self.lifted])
        places = {storage_key(tensor) for tensor in inputs}
        if not may_give_inputs and any(storage_key(leaf) in places for leaf in self.leaves):
            raise Break(DATA_DEPENDENT_BRANCH, f"{function.describe()} gives what it was given, in a branch")


def writes(node: fx.Node) -> bool:
    """Return whether an operation, by its name, writes to a tensor that it is given."""
    name = str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))
    in_place = name.endswith("_") and not name.endswith("__")
    assigns = node.op == "call_function" and name in ("setitem", "iadd", "isub", "imul", "itruediv", "batch_norm")
    return in_place or assigns or "out" in node.kwargs or bool(node.kwargs.get("inplace"))


def _looks(tensor: torch.Tensor) -> tuple[object, ...]:
    return (tensor.shape, tensor.dtype, tensor.device, tensor.stride(), tensor.requires_grad)


class ConditionalCall:
    """What runs at the node: one of two branches."""

    def __init__(self, chosen: fx.GraphModule, other: fx.GraphModule) -> None:
        self.branches = (chosen, other)
        self.__name__ = "cond"
        self.__module__ = __name__

    def __call__(self, predicate: Any, operands: Any, lifted: tuple[Any, Any]) -> Any:
        """Run the branch that the predicate chooses."""
        branch = 0 if predicate else 1
        return self.branches[branch](*tensors_in(operands), *lifted[branch])


class LoopCall:
    """What runs at the node: a loop over tensors while a condition holds."""

    def __init__(self, condition: fx.GraphModule, body: fx.GraphModule) -> None:
        self.condition = condition
        self.body = body
        self.__name__ = "while_loop"
        self.__module__ = __name__

    def __call__(self, carried: Any, lifted: tuple[Any, Any]) -> Any:
        """Run the loop; without a turn the results are copies."""
        if not self.condition(*carried, *lifted[0]):
            return tuple(tensor.clone() for tensor in carried)
        while True:
            carried = self.body(*carried, *lifted[1])
            if not self.condition(*carried, *lifted[0]):
                return tuple(carried)


@calls(torch.cond)
def _cond(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    arguments = {**dict(zip(("pred", "true_fn", "false_fn", "operands"), args, strict=False)), **kwargs}
    predicate, operands = ctx.realize(arguments["pred"]), ctx.realize(arguments.get("operands", Constant(())))
    if predicate.is_constant():
        return ctx.call(arguments["true_fn" if predicate.truth(ctx) else "false_fn"], ctx.unpack(operands), {})
    if not isinstance(predicate, TensorValue) or predicate.fake.numel() != 1:
        raise Break(DATA_DEPENDENT_BRANCH, "torch.cond by something that is not a single number")
    pairs = [ctx.realize(value).graph_argument(ctx) for value in ctx.unpack(operands)]
    fakes = [fake for _, fake in pairs]
    chosen, other = (Body(ctx, ctx.realize(arguments[name]), fakes) for name in ("true_fn", "false_fn"))
    alike = [_looks(leaf) for leaf in chosen.leaves] == [_looks(leaf) for leaf in other.leaves]
    if not alike or not chosen.leaves or _shape(chosen.result) != _shape(other.result):
        raise Break(DATA_DEPENDENT_BRANCH, "torch.cond over branches that give unlike results")
    _refuse_gradients("torch.cond", [*tensors_in(fakes), *_fakes(chosen.lifted), *_fakes(other.lifted)])
    target = ConditionalCall(chosen.graph, other.graph)
    nodes = tuple(node for node, _ in pairs)
    return ctx.graph.add(target, (predicate.node, nodes, (chosen.lifted, other.lifted)), _fresh(ctx, chosen.result))


@calls(while_loop)
def _while_loop(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    arguments = {**dict(zip(("cond_fn", "body_fn", "carried_inputs"), args, strict=False)), **kwargs}
    carried = [ctx.realize(value) for value in ctx.unpack(arguments["carried_inputs"])]
    if not carried or not all(isinstance(value, TensorValue) for value in carried):
        raise Break(DATA_DEPENDENT_BRANCH, "while_loop over something that is not a tensor")
    pairs = [ctx.realize(value).graph_argument(ctx) for value in carried]
    fakes = [fake for _, fake in pairs]
    condition, body = (Body(ctx, ctx.realize(arguments[name]), fakes) for name in ("cond_fn", "body_fn"))
    decides = condition.leaves[0] if isinstance(condition.result, torch.Tensor) else None
    if decides is None or decides.dim() or decides.dtype is not torch.bool:
        raise Break(DATA_DEPENDENT_BRANCH, "while_loop with a condition that is not a truth value")
    same = [_looks(leaf) for leaf in body.leaves] == [_looks(fake) for fake in tensors_in(fakes)]
    if not isinstance(body.result, tuple) or len(body.result) != len(body.leaves) or not same:
        raise Break(DATA_DEPENDENT_BRANCH, "while_loop over results unlike its inputs")
    _refuse_gradients("while_loop", [*tensors_in(fakes), *_fakes(condition.lifted), *_fakes(body.lifted)])
    target = LoopCall(condition.graph, body.graph)
    nodes = tuple(node for node, _ in pairs)
    return ctx.graph.add(target, (nodes, (condition.lifted, body.lifted)), _fresh(ctx, body.result))


_MAP, _SCAN = ("torch._higher_order_ops.map", "map"), ("torch._higher_order_ops.scan", "scan")
_LOSES_GRADIENTS = precedes(torch.__version__, "2.13")  # 2.11 does, of what a scan carries
_MOST_TURNS = 64  # of a loop that is written out; longer ones run in Python


def loop_rule(function: object) -> CallRule | None:
    """Give the rules of torch's `map` and `scan`, found by name: they are written out, a turn for each element."""
    if not isinstance(function, types.FunctionType):
        return None
    return {_MAP: _map, _SCAN: _scan}.get((function.__module__, function.__qualname__))


def _map(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) < 2 or kwargs:
        raise Break(DATA_DEPENDENT_BRANCH, "map with arguments by name")
    function, rest = ctx.realize(args[0]), list(args[2:])
    turns = [
        ctx.realize(ctx.call(function, [element, *rest], {})) for element in _elements(ctx, function, args[1], rest)
    ]
    return _stacked(ctx, turns)


def _scan(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    arguments = {**dict(zip(("combine_fn", "init", "xs"), args, strict=False)), **kwargs}
    backwards = ctx.realize(arguments.pop("reverse", Constant(False)))
    first = ctx.realize(arguments.pop("dim", Constant(0)))
    known = backwards.is_constant() and first.is_constant() and first.constant() == 0
    if not known or len(arguments) != 3 or not {"combine_fn", "init", "xs"} <= set(arguments):
        raise Break(DATA_DEPENDENT_BRANCH, "scan along another dimension than the first")
    function, carried = ctx.realize(arguments["combine_fn"]), ctx.realize(arguments["init"])
    elements = _elements(ctx, function, arguments["xs"], [], before=[carried])
    outputs: list[Value] = []
    for element in reversed(elements) if backwards.constant() else elements:
        pair = ctx.unpack(ctx.realize(ctx.call(function, [carried, element], {})))
        if len(pair) != 2:
            raise Break(DATA_DEPENDENT_BRANCH, "scan over a function that does not give a pair")
        carried = ctx.realize(pair[0])
        outputs.append(ctx.realize(pair[1]))
        if _LOSES_GRADIENTS:
            _refuse_gradients("scan", tensors_in(carried.graph_argument(ctx)[1]))
    return TupleValue([carried, _stacked(ctx, outputs[::-1] if backwards.constant() else outputs)])


def _elements(
    ctx: CaptureContext, function: Value, over: Value, rest: list[Value], before: Sequence[Value] = ()
) -> list[Value]:
    """Return the elements of a tensor, or of a tuple or list of tensors, along their first dimensions.

    The function is evaluated apart first: torch refuses one that changes something outside, and so does that.
    """
    over = ctx.realize(over)
    tensors = [over] if isinstance(over, TensorValue) else [ctx.realize(part) for part in ctx.unpack(over)]
    lengths = {part.fake.shape[0] if isinstance(part, TensorValue) and part.fake.dim() else None for part in tensors}
    length = lengths.pop() if len(lengths) == 1 else None
    if type(length) is not int or not 0 < length <= _MOST_TURNS:
        raise Break(DATA_DEPENDENT_BRANCH, f"a loop over elements that are not from 1 to {_MOST_TURNS}")
    columns = [ctx.unpack(ctx.graph.call("call_method", "unbind", [part], {})) for part in tensors]
    elements: list[Value] = [
        column[0]
        if over is tensors[0]
        else TupleValue(list(column))
        if over.python_type() is tuple
        else ListValue(list(column))
        for column in zip(*columns, strict=True)
    ]
    given = [ctx.realize(value).graph_argument(ctx)[1] for value in (*before, elements[0], *rest)]
    body = Body(ctx, function, given, may_give_inputs=True)
    if any(leaf.dim() == 0 and leaf.device.type != "cpu" for leaf in body.leaves):
        raise Break(DATA_DEPENDENT_BRANCH, "a loop that gives numbers on another device")
    return elements


def _stacked(ctx: CaptureContext, turns: list[Value]) -> Value:
    """Return what the turns gave, one tensor for each of theirs."""
    first = turns[0]
    if isinstance(first, TensorValue):
        return ctx.graph.call("call_function", torch.stack, [ListValue(list(turns))], {})
    if first.python_type() not in (tuple, list):
        raise Break(DATA_DEPENDENT_BRANCH, "a loop whose function gives something else than tensors")
    columns = zip(*(map(ctx.realize, ctx.unpack(turn)) for turn in turns), strict=True)
    parts = [_stacked(ctx, list(column)) for column in columns]
    return TupleValue(parts) if first.python_type() is tuple else ListValue(parts)


def _fresh(ctx: CaptureContext, result: Any) -> Any:
    """Return fake tensors like those of a branch: what the node gives is a value of the surrounding graph."""

    def without_data(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype, device=leaf.device)

    return ctx.graph.fake_run(lambda: map_nested(result, without_data), [], {}, "results")


def _refuse_gradients(what: str, tensors: list[torch.Tensor]) -> None:
    """Break where torch would differentiate through the operator: it gives zeros for what a branch left out."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise Break(DATA_DEPENDENT_BRANCH, f"{what} through which gradients flow")


def _fakes(nodes: Nodes) -> list[torch.Tensor]:
    return [node.meta["example_value"] for node in nodes]


def _shape(result: Any) -> object:
    """Return the nesting of a result, without its tensors."""
    if isinstance(result, tuple | list):
        return type(result), [_shape(item) for item in result]
    if isinstance(result, dict):
        return {key: _shape(item) for key, item in result.items()}
    return torch.Tensor if isinstance(result, torch.Tensor) else result
