"""Calls of the autograd engine inside captured code: `torch.autograd.grad`, and hooks on tensors."""

import gc
import types
from typing import Any
from weakref import WeakMethod

import torch
from torch import fx

from ..constant import Constant, Known
from ..guard import GuardKind
from ..python.containers.sequences import SequenceValue
from ..python.containers.tuples import TupleValue
from ..python.objects.classes import ClassValue
from ..python.objects.functions import CellValue, FunctionValue
from ..reasons import AUTOGRAD_CALL, Break
from ..rule_tables import calls
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Value
from .spent_history import WALKED
from .tensor import TensorHook, TensorValue, tensor_method


@calls(torch.autograd.backward)
def _backward_of_several(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    raise Break(AUTOGRAD_CALL, "torch.autograd.backward")


def _demand_own_history(ctx: CaptureContext, what: str) -> None:
    """Break where the engine would meet code that the graph does not have: histories and hooks from outside."""
    for value in ctx.graph.inputs():
        assert isinstance(value, TensorValue)
        if not value.fake.requires_grad or value.real is None or value.source is None:
            continue
        if not value.real.is_leaf:
            raise Break(AUTOGRAD_CALL, f"{what} where an input has a history from outside")
        if value.real._backward_hooks or value.hooks:
            raise Break(AUTOGRAD_CALL, f"{what} where an input has hooks")
        ctx.guards.add(value.source, GuardKind.EXPRESSION, "not {0}._backward_hooks")


@calls(torch.autograd.grad)
def _grad(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Add the call as one node: the history it walks is that of the graph's own operations."""
    try:
        _demand_own_history(ctx, "torch.autograd.grad")
    except Break as signal:
        signal.walks_results = _is_by_results(ctx, args, kwargs)
        raise
    return _add_grad(ctx, args, kwargs)


def _is_by_results(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> bool:
    """Return whether gradients are asked for by what the graph has computed, not by its inputs or other leaves."""
    asked = ctx.realize(args[1] if len(args) > 1 else kwargs.get("inputs", Constant(None)))
    tensors = ctx.unpack(asked) if isinstance(asked, SequenceValue) else [asked]
    made = (value for value in map(ctx.realize, tensors) if isinstance(value, TensorValue) and value.source is None)
    return any(value.fake.requires_grad and not value.fake.is_leaf for value in made)


def _add_grad(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    pairs = [ctx.realize(arg).graph_argument(ctx) for arg in args]
    named = {name: ctx.realize(value).graph_argument(ctx) for name, value in kwargs.items()}

    def run(*given: Any, **settings: Any) -> Any:
        return torch.autograd.grad(*given, **settings)

    result = ctx.graph.fake_run(
        run, [fake for _, fake in pairs], {name: fake for name, (_, fake) in named.items()}, "grad"
    )
    nodes = tuple(node for node, _ in pairs)
    gradient_values = ctx.graph.add(
        torch.autograd.grad, nodes, result, {name: node for name, (node, _) in named.items()}
    )
    for value in ctx.unpack(gradient_values):
        if isinstance(value, TensorValue):
            WALKED[value.node.graph] = WeakMethod(ctx.graph.leaves)
    return gradient_values


@tensor_method("backward")
def _backward(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    """Compute the gradients of the leaves in the graph, and add them up as the engine does.

    The engine's own place for that (the accumulating node of a leaf) may have hooks that nobody can see from Python:
    data-parallel training puts some there, so it is left alone. Those of a program are asked for.
    """
    settings_values = dict(zip(("gradient", "retain_graph", "create_graph"), args, strict=False)) | kwargs
    known = {
        name: ctx.realize(settings_values[name]) for name in ("retain_graph", "create_graph") if name in settings_values
    }
    plain = settings_values.keys() <= {"gradient", "retain_graph", "create_graph"} and not ctx.graph.is_apart()
    creates, keeps = (known.get(name, Constant(None)) for name in ("create_graph", "retain_graph"))
    if not plain or not _is_false(creates) or not isinstance(keeps, Constant) or _is_distributed():
        return None
    _demand_own_history(ctx, "backward")
    ctx.guards.add(None, GuardKind.STATE, (_is_distributed, False))
    if ctx.frames.hold(is_leaf_step):
        raise Break(AUTOGRAD_CALL, "backward beside a node that adds up a gradient, and may have hooks")
    leaves = [leaf for leaf in ctx.graph.leaves() if isinstance(leaf, TensorValue)]
    if not leaves or not all(_accumulates_plainly(ctx, leaf) for leaf in leaves):
        return None
    gradient = ctx.realize(settings_values.get("gradient", Constant(None)))
    settings: Keywords = {"allow_unused": Constant(True), "retain_graph": keeps}
    gradients = _add_grad(ctx, [tensor, TupleValue(list(leaves)), gradient], settings)
    pairs = list(zip(leaves, ctx.unpack(gradients), strict=True))
    with torch.no_grad():
        for leaf, value in pairs:
            if isinstance(value, TensorValue):
                _accumulate(ctx, leaf, value)
    return Constant(None)


def _is_false(value: Value) -> bool:
    return isinstance(value, Constant) and not value.value


def _is_distributed() -> bool:
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def is_leaf_step(one: object) -> bool:
    """Return whether an object is the node that accumulates the gradient of a leaf."""
    return issubclass(type(one), torch.autograd.graph.Node) and hasattr(one, "variable")


def has_hooked_step(leaf: torch.Tensor) -> bool:
    """Return whether the node that accumulates a leaf's gradient has hooks, as far as Python's collector is told.

    It is told of them while nothing but the program's own reference keeps the node alive. A graph whose history goes
    to the leaf keeps it alive, too.
    """
    return any(gc.get_referents(torch.autograd.graph.get_gradient_edge(leaf).node))


def _accumulates_plainly(ctx: CaptureContext, leaf: TensorValue) -> bool:
    if leaf.source is not None:
        late: Any = leaf.real
        if late._post_accumulate_grad_hooks or has_hooked_step(late):
            return False
        ctx.guards.add(leaf.source, GuardKind.EXPRESSION, "not {0}._post_accumulate_grad_hooks")
        ctx.guards.add(leaf.source, GuardKind.EXPRESSION, "not {1}({0})", (Injected(has_hooked_step),))
    return not leaf.hooks and leaf.fake.layout is torch.strided


def _accumulate(ctx: CaptureContext, leaf: TensorValue, gradient: TensorValue) -> None:
    before = leaf.get_attr(ctx, "grad")
    if isinstance(before, TensorValue):
        if before.fake.requires_grad:
            raise Break(AUTOGRAD_CALL, "backward onto a gradient that has a history")
        ctx.graph.call("call_method", "add_", [before, gradient], {})
        return
    if gradient.fake.stride() != leaf.fake.stride():  # the engine gives a gradient the strides of its leaf
        buffer = ctx.graph.call("call_function", torch.empty_like, [leaf], {})
        if not isinstance(buffer, TensorValue) or buffer.fake.stride() != leaf.fake.stride():
            raise Break(AUTOGRAD_CALL, "backward to a leaf with gaps in its memory")
        ctx.graph.call("call_method", "copy_", [buffer, gradient], {})
        gradient = buffer
    leaf.set_attr(ctx, "grad", gradient)


class GradientHook:
    """What runs at the node: registers a hook whose operations are a graph of their own."""

    def __init__(self, body: fx.GraphModule) -> None:
        self.body = body
        self.__name__ = "register_hook"
        self.__module__ = __name__

    def __call__(self, tensor: Any, lifted: tuple[torch.Tensor, ...]) -> None:
        """Register the hook; lifted: the tensors it closes over."""

        def hook(gradient: torch.Tensor) -> Any:
            return self.body(gradient, *lifted)

        tensor.register_hook(hook)


@tensor_method("register_hook")
def _register_hook(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    if kwargs or len(args) != 1:
        return None
    function = ctx.realize(args[0])
    return (
        _on_intermediate(ctx, tensor, function)
        if tensor.source is None
        else _on_input(ctx, tensor, "register_hook", function)
    )


@tensor_method("register_post_accumulate_grad_hook")
def _register_late_hook(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    if kwargs or len(args) != 1 or tensor.source is None:
        return None
    return _on_input(ctx, tensor, "register_post_accumulate_grad_hook", ctx.realize(args[0]))


def _on_input(ctx: CaptureContext, tensor: TensorValue, name: str, function: Value) -> Value | None:
    """Keep a hook on a leaf from outside, to be registered when the graph has run: gradients come later still."""
    if not tensor.fake.is_leaf or not tensor.fake.requires_grad or tensor.has_new_data:
        return None
    hook = TensorHook(tensor, name, function)
    tensor.hooks.append(hook)
    ctx.effects.mutated(tensor)
    return hook


def _on_intermediate(ctx: CaptureContext, tensor: TensorValue, function: Value) -> Value | None:
    """Add a hook on a value of the graph, evaluated now; its handle must not be wanted."""
    if not tensor.fake.requires_grad or not ctx.frames.is_dropped() or not _is_closed(function):
        return None
    gradient = ctx.graph.fake_run(lambda value: torch.empty_like(value).detach(), [tensor.fake], {}, "gradient")
    _, body, lifted = ctx.graph.evaluate_apart(function, (gradient,), {})
    return ctx.graph.add(GradientHook(body), (tensor.node, lifted), None)


def _is_closed(function: Value) -> bool:
    """Return whether a hook reads nothing that may be another thing by the time it runs.

    What it reads from the cells of the function is frozen: a later assignment is a Break.
    """
    if not isinstance(function, FunctionValue):
        return False
    cells = [cell for cell in function.cells if isinstance(cell, CellValue)]
    contents = [cell.content for cell in cells]
    read = [*contents, *function.defaults, *function.keyword_defaults.values()]
    if any(cell.source is not None for cell in cells) or not all(map(_is_fixed, read)):
        return False
    if any(isinstance(constant, types.CodeType) for constant in function.code.co_consts):
        return False
    names = [name for name in function.code.co_names if name in function.namespace]
    if not all(_is_of_torch(function.namespace[name]) for name in names):
        return False
    for cell in cells:
        cell.read_later = True
    return True


def _is_of_torch(value: object) -> bool:
    """Return whether a global is a module, a function or the like of torch's; its tensors and layers have state."""
    named = isinstance(value, types.ModuleType | torch.dtype | torch.device) or callable(value)
    if not named or isinstance(value, torch.Tensor | torch.nn.Module):
        return False
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return str(name).partition(".")[0] in ("torch", "math", "operator")


def _is_fixed(value: Value | None) -> bool:
    if isinstance(value, SequenceValue) and value.kind is tuple:
        return all(map(_is_fixed, value.items))
    return isinstance(value, Constant | Known | ClassValue | TensorValue)
