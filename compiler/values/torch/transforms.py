"""`torch.func` transforms: one node of the graph, over a graph of the function's own.

The transform really runs on fake tensors, around an evaluation of the function on what it passes in, so shapes inside
are those of the transformed level. Tensors that the function closes over become inputs of its graph.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType
from typing import Any

import torch
from torch import fx

from ...base.nested import leaves
from ..reasons import ARGUMENT_NOT_KNOWN, FUNCTION_TRANSFORM, Break
from ..rule_tables import CallRule, calls
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value

Transform = Callable[..., Callable[..., Any]]


def tensors_in(structure: object) -> list[Any]:
    """Return the tensors (or nodes) of nested tuples, lists and dicts, in order."""
    return [leaf for leaf in leaves(structure) if isinstance(leaf, torch.Tensor | fx.Node)]


def plain(structure: Any) -> Any:
    """Return nested containers as lists and dicts: those that graphs keep are of classes of their own."""
    if isinstance(structure, tuple):
        return tuple(map(plain, structure))
    if isinstance(structure, list):
        return list(map(plain, structure))
    return {key: plain(item) for key, item in structure.items()} if isinstance(structure, dict) else structure


def jvp(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return what takes primals and tangents: `torch.func.jvp` in the form of the other transforms."""
    return partial(torch.func.jvp, function, **settings)


def vjp(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return what takes the primals: `torch.func.vjp` in the form of the other transforms."""
    return partial(torch.func.vjp, function, **settings)


def linearize(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Return what takes the primals: the result, and the function that gives derivatives there along tangents.

    Both are as `torch.func.linearize` gives them; the derivatives are `torch.func.jvp`'s, which it records.
    """

    def at(*primals: Any) -> tuple[Any, Callable[..., Any]]:
        def push(*tangents: Any) -> Any:
            return torch.func.jvp(function, primals, tangents, **settings)[1]

        return function(*primals), push

    return at


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

        return self.transform(function, **self.settings)(*plain(args), **plain(kwargs))


@dataclass(frozen=True, slots=True, eq=False)
class ResultFunction:
    """A function among the results of a node, over fake tensors."""

    call: Callable[..., Any]


def pull_back(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call the function that `vjp` or `linearize` gave: a node whose first argument another node makes."""
    return function(*plain(args), **plain(kwargs))


class PullBack(Value):
    """The function that `vjp` or `linearize` gave; fake: the same over fake tensors."""

    always_true = True

    def __init__(self, node: fx.Node, fake: Callable[..., Any]) -> None:
        self.node = node
        self.fake = fake

    def python_type(self) -> type:
        """Return the function type."""
        return FunctionType

    def describe(self) -> str:
        """Return where it comes from."""
        return "the function that torch.func.vjp or linearize gave"

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Add the call."""
        pairs = [ctx.realize(arg).graph_argument(ctx) for arg in args]
        named = {name: ctx.realize(value).graph_argument(ctx) for name, value in kwargs.items()}

        def run(*fakes: object, **named_fakes: object) -> object:
            return self.fake(*fakes, **named_fakes)

        fake_named = {name: fake for name, (_, fake) in named.items()}
        result = ctx.graph.fake_run(run, [fake for _, fake in pairs], fake_named, "vjp")
        nodes = {name: node for name, (node, _) in named.items()}
        return ctx.graph.add(pull_back, (self.node, *(node for node, _ in pairs)), result, nodes)


class TransformValue(Value):
    """`grad(f)`, `vmap(f)` and their like, before they are called."""

    always_true = True

    def __init__(self, transform: Transform, function: Value, settings: dict[str, Any]) -> None:
        self.transform = transform
        self.function = function
        self.settings = settings

    def python_type(self) -> type:
        """Return the function type."""
        return FunctionType

    def describe(self) -> str:
        """Return the transform's name."""
        return f"torch.func.{getattr(self.transform, '__name__', 'transform')}"

    def rebuild(self, out: Rebuilder) -> str:
        """Apply the transform."""
        name = out.fresh()
        settings = "".join(f", {key}={out.inject(value)}" for key, value in self.settings.items())
        out.line(f"{name} = {out.inject(self.transform)}({out.value(self.function)}{settings})")
        return name

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the transformed function."""
        _demand_wanted(ctx)
        pairs = [ctx.realize(arg).graph_argument(ctx) for arg in args]
        named = {name: ctx.realize(value).graph_argument(ctx) for name, value in kwargs.items()}
        bodies: list[tuple[fx.GraphModule, tuple[fx.Node, ...]]] = []
        once = "chunk_size" not in self.settings and self.transform is not linearize

        def function(*inner: object, **inner_named: object) -> object:
            if bodies:
                raise Break(FUNCTION_TRANSFORM, f"{self.describe()} calls its function more than once")
            result, body, lifted = ctx.graph.evaluate_apart(self.function, inner, inner_named, once=once)
            bodies.append((body, lifted))
            return result

        whole = {name: value for name, value in self.settings.items() if name != "chunk_size"}

        def run(*fakes: object, **named_fakes: object) -> object:
            return self.transform(function, **whole)(*fakes, **named_fakes)

        fakes, fake_named = [fake for _, fake in pairs], {name: fake for name, (_, fake) in named.items()}
        if self.transform is linearize:
            _demand_no_history(fakes)
        result = ctx.graph.fake_run(run, fakes, fake_named, self.describe())
        body, lifted = bodies[0]
        target = TransformCall(self.transform, self.settings, body, f"{self.describe().replace('.', '_')}")
        if whole != self.settings or self.transform is linearize:
            # In chunks results may lie in memory in another way; what linearize gives is of this level, not the body's.

            def at_once(*_: object) -> object:
                return target(tuple(node.meta["example_value"] for node in lifted), tuple(fakes), fake_named)

            result = ctx.graph.fake_run(at_once, [], {}, self.describe())
        if self.transform in (vjp, linearize) and isinstance(result, tuple):
            result = tuple(ResultFunction(part) if isinstance(part, FunctionType) else part for part in result)
        nodes = tuple(node for node, _ in pairs)
        return ctx.graph.add(target, (lifted, nodes, {name: node for name, (node, _) in named.items()}), result)


def _demand_no_history(fakes: list[object]) -> None:
    """Break where autograd outside follows what `torch.func.linearize` has recorded."""
    if torch.is_grad_enabled() and any(isinstance(fake, torch.Tensor) and fake.requires_grad for fake in fakes):
        raise Break(FUNCTION_TRANSFORM, "torch.func.linearize at tensors that require a gradient")


def _demand_wanted(ctx: CaptureContext) -> None:
    if not ctx.options.capture_func_transforms:
        raise Break(FUNCTION_TRANSFORM, "a transform, and capture_func_transforms is off")


def _settings(ctx: CaptureContext, name: str, values: Keywords) -> dict[str, Any]:
    known = {key: ctx.realize(value) for key, value in values.items()}
    if not all(value.is_constant() for value in known.values()):
        raise Break(ARGUMENT_NOT_KNOWN, f"{name} with settings that are not known")
    return {key: value.constant() for key, value in known.items()}


_POSITIONAL: dict[Any, tuple[str, ...]] = {
    torch.func.vmap: ("in_dims", "out_dims", "randomness"),
    torch.func.grad: ("argnums", "has_aux"),
    torch.func.grad_and_value: ("argnums", "has_aux"),
    torch.func.jacrev: ("argnums",),
    torch.func.jacfwd: ("argnums", "has_aux"),
    torch.func.hessian: ("argnums",),
}


def _rule(transform: Transform, positional: tuple[str, ...]) -> None:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        if not args or len(args) > 1 + len(positional):
            raise Break(FUNCTION_TRANSFORM, f"{getattr(transform, '__name__', '')} without a function")
        arguments = {**dict(zip(positional, args[1:], strict=False)), **kwargs}
        settings = _settings(ctx, getattr(transform, "__name__", ""), arguments)
        return TransformValue(transform, ctx.realize(args[0]), settings)

    calls(transform)(rule)


for _transform, _names in _POSITIONAL.items():
    _rule(_transform, _names)


@calls(torch.func.linearize)
def _linearize(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if not args or kwargs:
        raise Break(FUNCTION_TRANSFORM, "linearize with arguments by name")
    return TransformValue(linearize, ctx.realize(args[0]), {}).call(ctx, args[1:], {})


@calls(torch.func.jvp)
def _jvp(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) != 3:
        raise Break(FUNCTION_TRANSFORM, "jvp with arguments by name")
    return TransformValue(jvp, ctx.realize(args[0]), _settings(ctx, "jvp", kwargs)).call(ctx, args[1:], {})


@calls(torch.func.vjp)
def _vjp(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return TransformValue(vjp, ctx.realize(args[0]), _settings(ctx, "vjp", kwargs)).call(ctx, args[1:], {})


# Functions that a transform has made before the call: their code tells which, their closure the settings.
_MADE: dict[CodeType, Transform] = {
    transform(torch.sin).__code__: transform
    for transform in (torch.func.vmap, torch.func.grad, torch.func.grad_and_value, torch.func.jacrev, torch.func.jacfwd)
}


def transformed_function_rule(function: object) -> CallRule | None:
    """Give the rule of what `vmap(f)`, `grad(f)` and the like gave outside the code that is captured."""
    transform = _MADE.get(function.__code__) if isinstance(function, FunctionType) else None
    if transform is None or not isinstance(function, FunctionType):
        return None
    names = function.__code__.co_freevars
    cells = dict(zip(names, (cell.cell_contents for cell in function.__closure__ or ()), strict=True))
    settings = {name: cells[name] for name in names if name not in ("func", "eager_transforms")}

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        inner = ctx.wrap(cells["func"], Injected(cells["func"]))
        return TransformValue(transform, inner, settings).call(ctx, args, kwargs)

    return rule
