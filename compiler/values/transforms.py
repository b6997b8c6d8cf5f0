"""`torch.func` transforms: one node of the graph, over a graph of the function's own.

The transform really runs on fake tensors, around an evaluation of the function on what it passes in, so shapes inside
are those of the transformed level. Tensors that the function closes over become inputs of its graph.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from .constant import calls
from .reasons import UNKNOWN_CALLEE, Break
from .torch_calls import to_graph
from .value import Arguments, CaptureContext, Keywords, Value

Transform = Callable[..., Callable[..., Any]]


def tensors_in(structure: object) -> list[Any]:
    """Return the tensors (or nodes) of nested tuples, lists and dicts, in order."""
    if isinstance(structure, torch.Tensor | fx.Node):
        return [structure]
    if isinstance(structure, tuple | list):
        return [found for item in structure for found in tensors_in(item)]
    if isinstance(structure, dict):
        return [found for item in structure.values() for found in tensors_in(item)]
    return []


class TransformCall:
    """What runs at the node: the transform over the captured function; lifted: the tensors it closes over."""

    def __init__(self, transform: Transform, settings: dict[str, Any], body: fx.GraphModule, name: str) -> None:
        self.transform = transform
        self.settings = settings
        self.body = body
        self.__name__ = name
        self.__module__ = __name__

    def __call__(self, lifted: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the transform."""

        def function(*inner: Any, **named: Any) -> Any:
            return self.body(*tensors_in((inner, named)), *lifted)

        return self.transform(function, **self.settings)(*args, **kwargs)


class TransformValue(Value):
    """`grad(f)`, `vmap(f)` and their like, before they are called."""

    def __init__(self, transform: Transform, function: Value, settings: dict[str, Any]) -> None:
        self.transform = transform
        self.function = function
        self.settings = settings

    def python_type(self) -> type:
        """Return the function type."""
        return type(tensors_in)

    def truth(self, ctx: CaptureContext) -> bool:
        """Functions are true."""
        return True

    def describe(self) -> str:
        """Return the transform's name."""
        return f"torch.func.{getattr(self.transform, '__name__', 'transform')}"

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the transformed function."""
        pairs = [to_graph(ctx, arg) for arg in args]
        named = {name: to_graph(ctx, value) for name, value in kwargs.items()}
        bodies: list[tuple[fx.GraphModule, tuple[fx.Node, ...]]] = []

        def function(*inner: object, **inner_named: object) -> object:
            if bodies:
                raise Break(UNKNOWN_CALLEE, f"{self.describe()} calls its function more than once")
            result, body, lifted = ctx.evaluate_apart(self.function, inner, inner_named)
            bodies.append((body, lifted))
            return result

        def run(*fakes: object, **named_fakes: object) -> object:
            return self.transform(function, **self.settings)(*fakes, **named_fakes)

        fake_named = {name: fake for name, (_, fake) in named.items()}
        result = ctx.fake_run(run, [fake for _, fake in pairs], fake_named, self.describe())
        body, lifted = bodies[0]
        target = TransformCall(self.transform, self.settings, body, f"{self.describe().replace('.', '_')}")
        nodes = tuple(node for node, _ in pairs)
        return ctx.add_call(target, (lifted, nodes, {name: node for name, (node, _) in named.items()}), result)


def _rule(transform: Transform) -> None:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        if len(args) != 1 or "chunk_size" in kwargs:
            raise Break(UNKNOWN_CALLEE, f"{getattr(transform, '__name__', '')} with settings that are not named")
        settings = {name: ctx.real(value).constant() for name, value in kwargs.items()}
        return TransformValue(transform, ctx.real(args[0]), settings)

    calls(transform)(rule)


for _transform in (torch.func.vmap, torch.func.grad, torch.func.grad_and_value, torch.func.jacrev, torch.func.jacfwd,
                   torch.func.hessian):
    _rule(_transform)
