"""`torch.cond`, `while_loop`, `map` and `scan`: one node over graphs of their functions.

The data decides when the graph runs. A `map` or `scan` of few turns is written out instead.
"""

import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from ...base.nested import map_nested
from ...base.torch_facts import has_history, while_loop
from ...base.torch_versions import precedes
from ...graph.node_values import output_node, outputs
from ...graph.subgraphs.subgraph_operator import HERE, SubgraphCall, memory_key
from ...graph.subgraphs.subgraph_program import ChosenBody, FoldedBody, RepeatedBody, Subgraph, SubgraphProgram
from ..constant import Constant
from ..python.containers.lists import ListValue
from ..python.containers.tuples import TupleValue
from ..reasons import DATA_DEPENDENT_BRANCH, Break
from ..rule_tables import CallRule, calls
from ..value import Arguments, CaptureContext, Keywords, Value
from .tensor import TensorValue
from .transforms import plain, tensors_in


class Body:
    """A captured function that a call with subgraphs runs; lifted: the nodes of the surrounding graph that it reads."""

    def __init__(
        self, ctx: CaptureContext, function: Value, operands: list[object], *, may_give_inputs: bool = False
    ) -> None:
        drawn = len(ctx.graph.draws())
        self.result: Any
        self.result, self.graph, self.lifted = ctx.graph.evaluate_apart(
            function, tuple(operands), {}, takes_numbers=True
        )
        self.draws = len(ctx.graph.draws()) > drawn
        if any(map(writes, self.graph.graph.nodes)):
            raise Break(DATA_DEPENDENT_BRANCH, f"{function.describe()} changes a tensor, in a branch")
        self.leaves: list[torch.Tensor] = tensors_in(self.result)
        inputs = tensors_in(operands) + tensors_in([node.meta.get("example_value") for node in self.lifted])
        places = {memory_key(tensor) for tensor in inputs}
        if not may_give_inputs and any(memory_key(leaf) in places for leaf in self.leaves):
            raise Break(DATA_DEPENDENT_BRANCH, f"{function.describe()} gives what it was given, in a branch")

    def flat(self) -> fx.GraphModule:
        """Return the graph with its tensors in a flat tuple."""
        nodes = tensors_in(outputs(self.graph.graph))
        if len(nodes) != len(self.leaves):
            raise Break(DATA_DEPENDENT_BRANCH, "a branch that gives numbers")
        end = output_node(self.graph.graph)
        end.args = (tuple(nodes),)
        self.graph.recompile()
        return self.graph


@dataclass(slots=True)
class CallInputs:
    """The inputs of a call with subgraphs, with their nodes; what a loop hands on has places of its own.

    places: where nodes stand that are only read.
    """

    tensors: list[fx.Node] = field(default_factory=list)
    numbers: list[fx.Node] = field(default_factory=list)
    places: dict[fx.Node, int] = field(default_factory=dict)

    def place(self, node: fx.Node) -> int:
        """Return the place of a node among the tensors, or `~place` among the numbers."""
        value = node.meta.get("example_value", node.meta.get("val"))
        if node in self.places:
            return self.places[node]
        if isinstance(value, torch.Tensor):
            self.places[node] = self.own(node)
            return self.places[node]
        if not isinstance(value, int | float | torch.SymInt | torch.SymFloat):
            raise Break(DATA_DEPENDENT_BRANCH, f"a branch that reads {value!r}, neither a tensor nor a number")
        self.numbers.append(node)
        self.places[node] = ~(len(self.numbers) - 1)
        return self.places[node]

    def examples(self) -> list[Any]:
        """Return fake tensors and symbols like them."""
        of_tensors = [node.meta["example_value"] for node in self.tensors]
        return [*of_tensors, *(node.meta.get("val", node.meta.get("example_value")) for node in self.numbers)]

    def own(self, node: fx.Node) -> int:
        """Return a new place among the tensors: what a loop hands on is written there."""
        self.tensors.append(node)
        return len(self.tensors) - 1

    def subgraph(self, body: Body, operands: Sequence[int]) -> Subgraph:
        """Return a body with the places of what it reads; operands: of what it is given as arguments."""
        return Subgraph(body.flat(), (*operands, *map(self.place, body.lifted)))


def add_call(ctx: CaptureContext, name: str, program: SubgraphProgram, inputs: CallInputs, structure: object) -> Value:
    """Add a call with subgraphs; structure: of its results, with tensors where tensors are given."""
    here = map_nested(structure, lambda leaf: HERE if isinstance(leaf, torch.Tensor) else leaf)
    call = SubgraphCall(name, program, here)
    count = len(inputs.tensors)

    def run(*given: Any) -> Any:
        return call(given[:count], given[count:])

    result = ctx.graph.fake_run(run, inputs.examples(), {}, name)
    return ctx.graph.add(call, (tuple(inputs.tensors), tuple(inputs.numbers)), result)


def writes(node: fx.Node) -> bool:
    """Return whether an operation, by its name, writes to a tensor that it is given."""
    name = str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))
    in_place = name.endswith("_") and not name.endswith("__")
    assigns = node.op == "call_function" and name in ("setitem", "iadd", "isub", "imul", "itruediv", "batch_norm")
    return in_place or assigns or "out" in node.kwargs or bool(node.kwargs.get("inplace"))


def _looks(tensor: torch.Tensor) -> tuple[object, ...]:
    return (tensor.shape, tensor.dtype, tensor.device, tensor.stride())


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
    inputs = CallInputs()
    inputs.place(predicate.node)
    places = [inputs.place(node) for node in tensors_in([node for node, _ in pairs])]
    bodies = tuple(inputs.subgraph(body, places) for body in (chosen, other))
    leaves = zip(chosen.leaves, other.leaves, strict=True)
    flows = tuple(has_history(first) or has_history(second) for first, second in leaves)
    program = ChosenBody(bodies, flows, _draw((chosen, other), flows))
    return add_call(ctx, "cond", program, inputs, chosen.result)


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
    inputs = CallInputs(tensors_in([node for node, _ in pairs]))
    places = list(range(len(pairs)))
    bodies = tuple(inputs.subgraph(one, places) for one in (condition, body))
    flows = tuple(map(has_history, body.leaves))
    program = RepeatedBody(bodies, flows, _draw((condition, body), flows), carried=len(pairs))
    return add_call(ctx, "while_loop", program, inputs, body.result)


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
    over = _Elements(ctx, args[1])
    body = over.body(function, [], rest)
    if not over.is_short:
        return over.fold(body, [], rest)
    turns = [ctx.realize(ctx.call(function, [element, *rest], {})) for element in over.elements()]
    return _stacked(ctx, turns)


def _scan(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    arguments = {**dict(zip(("combine_fn", "init", "xs"), args, strict=False)), **kwargs}
    backwards = ctx.realize(arguments.pop("reverse", Constant(False)))
    first = ctx.realize(arguments.pop("dim", Constant(0)))
    known = backwards.is_constant() and first.is_constant() and first.constant() == 0
    if not known or len(arguments) != 3 or not {"combine_fn", "init", "xs"} <= set(arguments):
        raise Break(DATA_DEPENDENT_BRANCH, "scan along another dimension than the first")
    function, carried = ctx.realize(arguments["combine_fn"]), ctx.realize(arguments["init"])
    over = _Elements(ctx, arguments["xs"], backwards=bool(backwards.constant()))
    body = over.body(function, [carried], [])
    if _LOSES_GRADIENTS:
        _refuse_gradients("scan", [*tensors_in(carried.graph_argument(ctx)[1]), *body.leaves])
    if not over.is_short:
        return over.fold(body, [carried], [])
    outputs: list[Value] = []
    for element in reversed(over.elements()) if backwards.constant() else over.elements():
        pair = ctx.unpack(ctx.realize(ctx.call(function, [carried, element], {})))
        if len(pair) != 2:
            raise Break(DATA_DEPENDENT_BRANCH, "scan over a function that does not give a pair")
        carried = ctx.realize(pair[0])
        outputs.append(ctx.realize(pair[1]))
    return TupleValue([carried, _stacked(ctx, outputs[::-1] if backwards.constant() else outputs)])


class _Elements:
    """The elements of a tensor, or of a tuple, list or dict of tensors, along their first dimensions."""

    def __init__(self, ctx: CaptureContext, over: Value, *, backwards: bool = False) -> None:
        self.ctx = ctx
        self.over = ctx.realize(over)
        self.backwards = backwards
        self.nodes, self.fakes = self.over.graph_argument(ctx)
        tensors = tensors_in(self.fakes)
        if not tensors or not all(tensor.dim() for tensor in tensors):
            raise Break(DATA_DEPENDENT_BRANCH, "a loop over elements of something that has none")
        self.length = tensors[0].shape[0]
        if self.length == 0 or any(tensor.shape[0] != self.length for tensor in tensors):
            raise Break(DATA_DEPENDENT_BRANCH, "a loop over elements whose number is 0, or not the same")
        plainly = isinstance(self.over, TensorValue) or self.over.python_type() in (tuple, list)
        few = type(self.length) is int and self.length <= _MOST_TURNS
        self.is_short = plainly and few and not ctx.graph.is_apart()  # stacked elsewhere, under vmap

    def elements(self) -> list[Value]:
        """Return the elements, where there are few."""
        ctx, over = self.ctx, self.over
        tensors = [over] if isinstance(over, TensorValue) else [ctx.realize(part) for part in ctx.unpack(over)]
        columns = [ctx.unpack(ctx.graph.call("call_method", "unbind", [part], {})) for part in tensors]
        return [
            column[0]
            if over is tensors[0]
            else TupleValue(list(column))
            if over.python_type() is tuple
            else ListValue(list(column))
            for column in zip(*columns, strict=True)
        ]

    def body(self, function: Value, before: list[Value], rest: list[Value]) -> Body:
        """Evaluate the function apart: torch refuses one that changes something outside, and so does that."""
        ctx = self.ctx

        def first(*_: object) -> Any:
            return map_nested(plain(self.fakes), lambda leaf: leaf.select(0, 0).clone())

        element = ctx.graph.fake_run(first, [], {}, "elements")
        given = [ctx.realize(value).graph_argument(ctx)[1] for value in before]
        others = [ctx.realize(value).graph_argument(ctx)[1] for value in rest]
        body = Body(ctx, function, [*given, element, *others], may_give_inputs=True)
        if any(leaf.dim() == 0 and leaf.device.type != "cpu" for leaf in body.leaves):
            raise Break(DATA_DEPENDENT_BRANCH, "a loop that gives numbers on another device")
        return body

    def fold(self, body: Body, before: list[Value], rest: list[Value]) -> Value:
        """Add one call that runs the body for each element."""
        ctx, inputs = self.ctx, CallInputs()
        if before and (not isinstance(body.result, tuple) or len(body.result) != 2):
            raise Break(DATA_DEPENDENT_BRANCH, "scan over a function that does not give a pair")
        pairs = [ctx.realize(value).graph_argument(ctx) for value in before]
        carried = tensors_in([fake for _, fake in pairs])
        given = body.leaves[: len(carried)]
        if before and [_looks(leaf) for leaf in tensors_in(body.result[0])] != [_looks(fake) for fake in carried]:
            raise Break(DATA_DEPENDENT_BRANCH, "scan over results unlike what it begins with")
        first = [inputs.own(node) for node in tensors_in([node for node, _ in pairs])]
        along = [inputs.own(node) for node in tensors_in(self.nodes)]
        others = [ctx.realize(value).graph_argument(ctx)[0] for value in rest]
        behind = [inputs.place(node) for node in tensors_in(others)]
        bodies = (inputs.subgraph(body, [*first, *along, *behind]),)
        flows = tuple(map(has_history, body.leaves))
        program = FoldedBody(bodies, flows, _draw((body,), flows), len(given), len(along), self.backwards)
        return add_call(ctx, "scan" if before else "map", program, inputs, body.result)


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


def _draw(bodies: Sequence[Body], flows: Sequence[bool]) -> bool:
    """Return whether a body draws random numbers; break where it has gradients: torch draws again for them."""
    draws = any(body.draws for body in bodies)
    if draws and any(flows):
        raise Break(DATA_DEPENDENT_BRANCH, "a branch that draws random numbers, and has gradients")
    return draws


def _refuse_gradients(what: str, tensors: list[torch.Tensor]) -> None:
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise Break(DATA_DEPENDENT_BRANCH, f"{what} through which gradients flow")


def _shape(result: Any) -> object:
    """Return the nesting of a result, without its tensors."""
    if isinstance(result, tuple | list):
        return type(result), [_shape(item) for item in result]
    if isinstance(result, dict):
        return {key: _shape(item) for key, item in result.items()}
    return torch.Tensor if isinstance(result, torch.Tensor) else result
