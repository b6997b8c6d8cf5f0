"""What example values promise of a graph's calls, and what is done where a real result departs from it.

Example values come from shape rules, which are code of their own and may be wrong: ATen's rule for batch norm said
float32 of statistics that are bfloat16. Whatever was decided by a promise (a kernel's memory accesses, a cast that was
left out) is wrong where the result departs, so such a graph is given up: `MetadataDeparture` tells the caller, who
runs what the graph was made of. Strides are not part of the promise: kernels have them repaired, ATen takes any.
"""

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch
from torch import fx

from ..base.events import FellBack, record
from .dynamic_sizes import is_symbolic, number_text, symbol_of
from .facts import is_random
from .graph_interpreter import as_function, interpret
from .node_values import calls, has_value, placeholders, type_text, value_of
from .owned_inputs import let_spend, spending

Results = TypeVar("Results")


class MetadataDeparture(Exception):
    """A real result has another dtype, shape or device than its example value. The generator is as before the call."""

    def __init__(self, call: object, promised: str, actual: str) -> None:
        super().__init__(f"{call} gives {actual}, and its shape rule says {promised}")


def departs(promised: object, actual: object, sizes: Mapping[str, float]) -> bool:
    """Return whether a real result is another kind of value than its example value said.

    sizes: what the symbols are by name. What gives no tensor by its example value is not looked at: a shape rule may
    say None of what nobody asked for.
    """
    if not isinstance(promised, torch.Tensor):
        return False
    if not isinstance(actual, torch.Tensor):
        return True
    if (promised.dtype, promised.device, promised.layout) != (actual.dtype, actual.device, actual.layout):
        return True
    if promised.dim() != actual.dim():
        return True
    return any(_size(size, sizes) not in (None, real) for size, real in zip(promised.shape, actual.shape, strict=True))


def is_workspace(target: object, result: object) -> bool:
    """Return whether a call's result (its number) is memory that only the operator's own backward understands.

    How large it is depends on the library underneath, so no shape rule can say it.
    """
    return str(target).split(".")[1:2] in _WITH_WORKSPACE and result == _WORKSPACE


_WITH_WORKSPACE = (["mkldnn_rnn_layer"], ["with_grad_mkldnn_rnn_layer"])
_WORKSPACE = 3


def workspace_of(target: object, arguments: Sequence[object]) -> object:
    """Return the argument that is a workspace, which may be of another size than promised; None where there is none."""
    reads = str(target).split(".")[1:2] == ["mkldnn_rnn_layer_backward"]
    return arguments[_READ_WORKSPACE] if reads and len(arguments) > _READ_WORKSPACE else None


_READ_WORKSPACE = 22


def _size(size: object, sizes: Mapping[str, float]) -> object:
    """Return a promised size as a number, or None where it depends on a symbol that the graph was not given."""
    if not is_symbolic(size):
        return size
    text, names = number_text(size)
    return eval(text, {"math": math, **sizes}) if set(names) <= set(sizes) else None


def run_checked(gm: fx.GraphModule, inputs: Sequence[object]) -> tuple[object, ...]:
    """Run a graph node by node; raises MetadataDeparture at the first result that is not what was promised."""
    parameters = placeholders(gm.graph)
    sizes = {
        symbol_of(node): value
        for node, value in zip(parameters, inputs, strict=True)
        if is_symbolic(node.meta.get("val")) and isinstance(value, int | float)
    }

    def compare(node: fx.Node, value: object) -> object:
        # of several results those that are used are looked at, where they are taken out
        if node.op == "call_function" and has_value(node) and departs(value_of(node), value, sizes):
            call = node.args[0] if node.target is operator.getitem else node
            if isinstance(call, fx.Node) and call is not node and is_workspace(call.target, node.args[1]):
                return value
            target = call.target if isinstance(call, fx.Node) else node.target
            raise MetadataDeparture(target, type_text(value_of(node)), type_text(value))
        return value

    return interpret(gm, inputs, after=compare)


def draws(gm: fx.GraphModule) -> bool:
    """Return whether a graph draws random numbers."""
    return any(is_random(node.target) for node in calls(gm.graph))


def going_on(call: Callable[..., Results], op_by_op: Callable[..., Results]) -> Callable[..., Results]:
    """Return call; from its first departure on the graph runs op by op, each operator deciding by what it is given."""
    departed = False

    def run(*inputs: object) -> Results:
        nonlocal departed
        if not departed:
            try:
                return call(*inputs)
            except MetadataDeparture as departure:
                departed = True
                record(FellBack("graph", str(departure)))
        return op_by_op(*inputs)

    spend_all = spending(call)

    def spend(given: list[object]) -> Results:
        nonlocal departed
        if not departed and spend_all is not None:
            try:
                result: Results = spend_all(given)
            except MetadataDeparture as departure:
                departed = True
                record(FellBack("graph", str(departure)))
            else:
                return result
        return op_by_op(*given)

    if spend_all is not None:
        let_spend(run, spend)
    return run


def checked_at_first(gm: fx.GraphModule) -> Callable[..., tuple[object, ...]]:
    """Return the graph as a function whose first call is checked: metadata of results follows from that of inputs.

    Raises MetadataDeparture before anything that the graph did can be seen.
    """
    return _CheckedAtFirst(gm)


class _CheckedAtFirst:
    __slots__ = ("_forward", "_gm", "_is_checked")

    def __init__(self, gm: fx.GraphModule) -> None:
        self._gm = gm
        self._forward = as_function(gm)
        self._is_checked = False

    def __call__(self, *inputs: object) -> tuple[object, ...]:
        if self._is_checked:
            return self._forward(*inputs)
        state = torch.get_rng_state() if draws(self._gm) else None
        try:
            results = run_checked(self._gm, inputs)
        except MetadataDeparture:
            if state is not None:
                torch.set_rng_state(state)
            raise
        self._is_checked = True
        return results
