"""`torch.autograd.Function` and checkpoints: one node of the graph, whose Python is evaluated for its guards only."""

import enum
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import BuiltinMethodType, ClassMethodDescriptorType, FunctionType
from typing import Any

import torch
import torch.utils.checkpoint

from ..backward_state import LATER_READS, BackwardReads, reads_of_backward
from ..constant import Constant, Known
from ..guard import GuardKind, look_up
from ..python.containers.lists import ListValue
from ..python.containers.mappings import DictValue
from ..python.containers.sequences import SequenceValue
from ..python.containers.tuples import TupleValue
from ..python.objects.attributes import bind_raw, class_lookup
from ..python.objects.classes import ClassValue, constructs
from ..python.objects.functions import FunctionValue
from ..python.objects.instances import ObjectValue
from ..python.objects.partials import PartialValue
from ..reasons import AUTOGRAD_CALL, BACKWARD_STATE, TORCH_CALL_FORM, Break
from ..rule_tables import CallRule, calls
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Raised, Value
from .modules import ModuleValue
from .tensor import TensorValue
from .torch_calls import NamedApart, operator_target

_TARGETS: dict[type, NamedApart] = {}


class DryContext:
    """What `forward` and `backward` get as `ctx` when they are evaluated for their guards."""

    def save_for_backward(self, *tensors: object) -> None:
        """Keep the tensors."""
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: object) -> None:
        """Do nothing: `jvp` is not evaluated."""

    def mark_dirty(self, *tensors: object) -> None:
        """Do nothing: the node itself says what it changed."""

    def mark_non_differentiable(self, *tensors: object) -> None:
        """Do nothing: the node itself says what needs a gradient."""

    def set_materialize_grads(self, value: bool) -> None:
        """Do nothing: the gradients evaluated with are always tensors."""


for _method in vars(DryContext).values():
    if isinstance(_method, FunctionType):
        vars(_method)["_plumbline_inline"] = True


def function_of(method: object) -> object:
    """Return the function of a class method as its class holds it; one written in C (torch 2.15) holds none."""
    return getattr(method, "__func__", method)


@calls(function_of(class_lookup(torch.autograd.Function, "apply")[1]))
def _apply(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Add `Function.apply` as one node.

    The node runs the user's forward and backward as they are. Evaluating both first, and dropping the operations,
    finds every guard they rely on, and refuses what has effects.
    """
    owner = ctx.realize(args[0])
    if kwargs or not isinstance(owner, ClassValue):
        raise Break(AUTOGRAD_CALL, "apply of an autograd function with keywords")
    kind: Any = owner.kind
    if class_lookup(kind, "vjp")[1] is not torch.autograd.Function.__dict__.get("vjp", class_lookup(kind, "vjp")[1]):
        raise Break(AUTOGRAD_CALL, f"{kind.__qualname__} with a vjp of its own")
    values = [ctx.realize(arg) for arg in args[1:]]
    ctx.graph.evaluate_dry(lambda: _evaluate(ctx, kind, values), kind.__qualname__, values)
    backward = torch.is_grad_enabled() and any(isinstance(v, TensorValue) and v.fake.requires_grad for v in values)
    reads = _stateless_reads(kind.backward, kind.__qualname__) if backward else BackwardReads(None, ())
    result = _added(ctx, kind, values)
    _note_reads(ctx, result, reads)
    return result


def _stateless_reads(backward: Callable[..., Any], name: str) -> BackwardReads:
    """Return what a backward reads, if that is nothing which the program may change in any way."""
    reads = reads_of_backward(backward)
    if reads.state is not None:
        what = f"the backward of {name} reads {reads.state!r}"
        raise Break(BACKWARD_STATE, f"{what}, which the program may change before it runs")
    return reads


def _note_reads(ctx: CaptureContext, result: Value, reads: BackwardReads) -> None:
    """Keep the constants that a backward reads for the graph in which its operation stands."""
    for value in ctx.unpack(result) if isinstance(result, SequenceValue) else [result]:
        if isinstance(value, TensorValue) and reads.constants:
            LATER_READS.setdefault(value.node.graph, {}).update(dict.fromkeys(reads.constants))


def _added(ctx: CaptureContext, kind: Any, values: list[Value]) -> Value:
    """Add the call as a node; functions, classes and modules among its arguments belong to its target."""
    fixed = {
        position: function for position, value in enumerate(values) if (function := _fixed(ctx, value)) is not None
    }
    if not fixed:
        target = _TARGETS.setdefault(kind, NamedApart(kind.apply))
        return ctx.graph.call("call_function", target, values, {})
    rest = [value for position, value in enumerate(values) if position not in fixed]
    return ctx.graph.call("call_function", NamedApart(_with_fixed(kind.apply, fixed)), rest, {})


def _fixed(ctx: CaptureContext, value: Value) -> object:
    """Return the function, class or module that an argument is, or the list of those: graphs cannot carry them."""
    if not isinstance(value, ListValue | TupleValue) or not value.items or value.python_type() not in (list, tuple):
        return _callable(ctx, value)
    parts = [_callable(ctx, ctx.realize(item)) for item in value.items]
    return None if None in parts else value.python_type()(parts)


def _callable(ctx: CaptureContext, value: Value) -> Callable[..., object] | None:
    """Return the function, class or module that an argument is."""
    if isinstance(value, Known | ClassValue):
        constant = value.constant()
        return constant if callable(constant) and not isinstance(constant, enum.Enum) else None
    if isinstance(value, FunctionValue) and value.real is not None and value.source is not None:
        ctx.guards.add(value.source, GuardKind.IDENTITY, value.real)
        return value.real
    if isinstance(value, ModuleValue) and value.source is not None and isinstance(value.real, torch.nn.Module):
        if not isinstance(value.source, Injected):
            ctx.guards.add(value.source, GuardKind.IDENTITY, value.real)
        return value.real
    return None


def _with_fixed(function: Callable[..., object], fixed: dict[int, object]) -> Callable[..., object]:
    """Return the function with some of its arguments given, by position."""

    def call(*rest: object) -> object:
        arguments = iter(rest)
        count = len(rest) + len(fixed)
        return function(*(fixed[position] if position in fixed else next(arguments) for position in range(count)))

    call.__name__ = getattr(function, "__name__", "apply")
    return call


def _evaluate(ctx: CaptureContext, kind: Any, values: list[Value]) -> None:
    state = ctx.realize(ctx.call(ctx.known(DryContext), [], {}))
    needs = [Constant(isinstance(value, TensorValue) and value.fake.requires_grad) for value in values]
    state.set_attr(ctx, "needs_input_grad", TupleValue(list[Value](needs)))
    forward = ctx.wrap(kind.forward, Injected(kind.forward))
    with torch.no_grad():  # as autograd calls it
        if kind.setup_context is torch.autograd.Function.setup_context:
            result = ctx.call(forward, [state, *values], {})
        else:
            result = ctx.call(forward, values, {})
            setup = ctx.wrap(kind.setup_context, Injected(kind.setup_context))
            ctx.call(setup, [state, TupleValue(values), result], {})
    if not any(isinstance(value, TensorValue) and value.fake.requires_grad for value in values):
        return
    outputs = list(result.items) if isinstance(result, SequenceValue) else [result]
    gradients = [_gradient_of(ctx, output) for output in outputs]
    _evaluate_backward(ctx, kind.backward, kind.__qualname__, state, gradients)


def _gradient_of(ctx: CaptureContext, output: Value) -> Value:
    """Return a gradient of the shape of an output, or the list of those."""
    value = ctx.realize(output)
    if isinstance(value, ListValue):
        return ListValue([_gradient_of(ctx, item) for item in value.items])
    if not isinstance(value, TensorValue):
        return Constant(None)
    return ctx.graph.call("call_function", torch.zeros_like, [value], {})


def _evaluate_backward(
    ctx: CaptureContext, function: Callable[..., Any], what: str, state: Value, gradients: list[Value]
) -> None:
    """Evaluate a backward with the `ctx` that forward has left; refuse what it changes and what may change."""
    given = [*gradients, *ctx.graph.inputs()]
    before, versions = _contents(state), _versions(given)
    try:
        ctx.call(ctx.wrap(function, Injected(function)), [state, *gradients], {})
    except Raised as raised:  # in eager it arrives where the program runs the backward
        kind = raised.value.python_type().__name__
        raise Break(BACKWARD_STATE, f"the backward of {what} raises {kind}") from raised
    if _contents(state) != before or _versions(given) != versions:
        raise Break(BACKWARD_STATE, f"the backward of {what} changes what it is given")
    named = reads_of_backward(function).attributes
    for name, value in _attributes(state).items():
        if name in named and value.source is not None and isinstance(value, ObjectValue | DictValue | ListValue):
            held = f"the backward of {what} reads {value.describe()}, which its ctx holds"
            raise Break(BACKWARD_STATE, f"{held} and the program may change before it runs")


def _attributes(state: Value) -> dict[str, Value]:
    """Return what the program has given a `ctx`, by name, as far as it has been looked at."""
    assert isinstance(state, ObjectValue)
    found = {str(entry.key.constant()): entry.value for entry in state.namespace.entries.values()}
    return {name: value for name, value in found.items() if isinstance(value, Value)}


def _contents(state: Value) -> list[object]:
    """Return what a `ctx` and the containers on it hold, as far as that can be compared."""
    found: list[object] = []
    for name, value in _attributes(state).items():
        inside: Iterable[object] = value.items if isinstance(value, ListValue) else ()
        inside = value.entries.values() if isinstance(value, DictValue) else inside
        found.append((name, id(value), [id(getattr(one, "value", one)) for one in inside]))
    return found


def _versions(values: list[Value]) -> list[int]:
    """Return how often tensors have been written to."""
    fakes = [one.fake for one in values if isinstance(one, TensorValue)]
    return [fake._version for fake in fakes if not fake.is_inference()]


def native_apply_rule(function: object) -> CallRule | None:
    """Give the `apply` of a class of functions where it is written in C: a new object at every look-up."""
    owner = getattr(function, "__self__", None)
    if not isinstance(function, BuiltinMethodType) or function.__name__ != "apply" or not isinstance(owner, type):
        return None
    if not issubclass(owner, torch.autograd.Function):
        return None
    return lambda ctx, args, kwargs: _apply(ctx, [ctx.known(owner), *args], kwargs)


def operator_rule(function: object) -> CallRule | None:
    """Give operators, and what is allowed in graphs, whose results have a backward written in Python.

    That of an operator is the formula that the program has registered (`register_autograd`).
    """
    target = operator_target(function)
    if target is None:
        return None

    def call(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        values, named = [ctx.realize(arg) for arg in args], {name: ctx.realize(one) for name, one in kwargs.items()}
        result = ctx.realize(ctx.graph.call("call_function", target, values, named))
        if not torch.is_grad_enabled():
            return result
        for kind in _python_steps([*values, *named.values()], result):
            formula = registered_formula(kind.backward)
            if formula is not None and formula.backward is not None:
                what = str(formula.operator)
                ctx.graph.evaluate_dry(partial(_evaluate_formula, ctx, formula, values, named, result), what, values)
                _note_reads(ctx, result, _stateless_reads(formula.backward, what))
            elif formula is None:
                _note_reads(ctx, result, _stateless_reads(kind.backward, kind.__qualname__))
        return result

    return call


@dataclass(frozen=True, slots=True)
class Formula:
    """What a program has registered as the derivative of an operator."""

    operator: Any
    setup: Callable[..., Any] | None
    backward: Callable[..., Any] | None


def registered_formula(step: object) -> Formula | None:
    """Return the formula that a backward of torch's calls; torch keeps it in that function's closure alone."""
    if not isinstance(step, FunctionType) or step.__module__.partition(".")[0] != "torch":
        return None
    cells = dict(zip(step.__code__.co_freevars, step.__closure__ or (), strict=True))
    if "info" in cells and "op" in cells:
        info: Any = cells["info"].cell_contents
        return Formula(cells["op"].cell_contents, info._setup_context_fn, info._backward_fn)
    return registered_formula(cells["orig_backward"].cell_contents) if "orig_backward" in cells else None


def _python_steps(given: list[Value], result: Value) -> list[Any]:
    """Return the autograd functions among the steps that lie between arguments and results."""
    seen: set[Any] = {one.fake.grad_fn for one in _tensors(given)} | {None}
    waiting = [one.fake.grad_fn for one in _tensors([result])]
    found: list[Any] = []
    while waiting:
        step: Any = waiting.pop()
        if step in seen:
            continue
        seen.add(step)
        waiting.extend(following for following, _ in step.next_functions)
        if isinstance(step, torch.autograd.function.BackwardCFunction):
            found.append(type(step)._forward_cls)  # type: ignore[attr-defined]  # set on the class of each function
    return found


def _tensors(values: Iterable[Value]) -> Iterator[TensorValue]:
    for value in values:
        if isinstance(value, TensorValue):
            yield value
        elif isinstance(value, SequenceValue):
            yield from _tensors(value.items)


def _evaluate_formula(
    ctx: CaptureContext, formula: Formula, args: list[Value], kwargs: dict[str, Value], result: Value
) -> None:
    """Evaluate what is registered as torch calls it: arguments by position, and those by keyword alone apart."""
    schema = formula.operator._schema.arguments
    inputs, apart = list(args), dict[str, Value]()
    for position, one in enumerate(schema):
        if position >= len(args):
            value = kwargs[one.name] if one.name in kwargs else ctx.known(one.default_value)
            if one.kwarg_only:
                apart[one.name] = value
            else:
                inputs.append(value)
    state = ctx.realize(ctx.call(ctx.known(DryContext), [], {}))
    state.set_attr(ctx, "needs_input_grad", TupleValue([_needs(value) for value in inputs]))
    if formula.setup is not None:
        given = {"ctx": state, "inputs": TupleValue(inputs), "output": result}
        if apart:
            given["keyword_only_inputs"] = DictValue.of(ctx, [(Constant(name), one) for name, one in apart.items()])
        with torch.no_grad():  # as autograd calls it
            ctx.call(ctx.wrap(formula.setup, Injected(formula.setup)), [], given)
    outputs = list(result.items) if isinstance(result, TupleValue) else [result]
    gradients = [_gradient_of(ctx, output) for output in outputs]
    assert formula.backward is not None
    _evaluate_backward(ctx, formula.backward, str(formula.operator), state, gradients)


def _needs(value: Value) -> Value:
    if isinstance(value, ListValue):
        return ListValue([_needs(item) for item in value.items])
    return Constant(_needs_gradient(value))


_CHECKPOINT_SETTINGS = frozenset(
    {"use_reentrant", "preserve_rng_state", "determinism_check", "early_stop", "context_fn"}
)


@calls(torch.utils.checkpoint.checkpoint)
def _checkpoint(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate the function itself: the values are the same, and partitioning decides what is computed again.

    Break where the function changes something: eager's backward runs it again, and changes it again.
    """
    known = {name: ctx.realize(kwargs[name]) for name in _CHECKPOINT_SETTINGS if name in kwargs}
    reentrant = known.get("use_reentrant")
    is_known = isinstance(reentrant, Constant) and isinstance(reentrant.value, bool)
    selects = "context_fn" not in kwargs or _chooses_what_is_kept(ctx.realize(kwargs["context_fn"]))
    if not is_known or "debug" in kwargs or not selects:
        raise Break(TORCH_CALL_FORM, "a checkpoint of no known kind, or one with contexts of its own")
    rest = {name: value for name, value in kwargs.items() if name not in _CHECKPOINT_SETTINGS}
    keeps = known.get("preserve_rng_state", Constant(True))
    if not isinstance(keeps, Constant):
        raise Break(TORCH_CALL_FORM, "a checkpoint that may draw other random numbers in its second run")
    keeps_states = bool(keeps.value)
    if reentrant is None or not reentrant.constant() or not torch.is_grad_enabled():
        return _call_without_changes(ctx, args[0], args[1:], rest, keeps_states)
    if rest or not any(map(_needs_gradient, map(ctx.realize, args[1:]))):
        raise Break(TORCH_CALL_FORM, "a reentrant checkpoint, which cuts the history of what is not an argument")
    result = ctx.realize(_call_without_changes(ctx, args[0], args[1:], {}, keeps_states))
    outputs = result.elements(ctx) if isinstance(result, SequenceValue) else [result]
    if not all(map(_needs_gradient, outputs)):  # as all of them do in eager
        raise Break(TORCH_CALL_FORM, "a reentrant checkpoint with results that need no gradient")
    return result


def _call_without_changes(
    ctx: CaptureContext, function: Value, args: Arguments, kwargs: Keywords, keeps_states: bool
) -> Value:
    effects, writes, draws = ctx.effects.count(), ctx.graph.mutates_inputs, len(ctx.graph.draws())
    ctx.graph.mutates_inputs = False
    result = ctx.call(function, args, kwargs)
    changed = ctx.graph.mutates_inputs or ctx.effects.count() != effects
    ctx.graph.mutates_inputs = writes or ctx.graph.mutates_inputs
    drawn = ctx.graph.draws()[draws:]  # generator objects are not put back for the second run, whatever is asked
    advances = any(isinstance(source, torch.Generator) or not keeps_states for source in drawn)
    if (changed or advances) and torch.is_grad_enabled():
        what = "changes something outside" if changed else "draws other random numbers in its second run"
        raise Break(TORCH_CALL_FORM, f"a checkpoint of {function.describe()}, which {what}")
    return result


def _chooses_what_is_kept(function: Value) -> bool:
    """Return whether the contexts of a checkpoint only say which results to keep, and change no value."""
    chosen = function.function if isinstance(function, PartialValue) else function
    real = chosen.real if isinstance(chosen, FunctionValue) else None
    return real is torch.utils.checkpoint.create_selective_checkpoint_contexts


def _needs_gradient(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.fake.requires_grad


class FunctionInstance(Value):
    """An instance of a class of autograd functions, which programs make only to say `.apply` of it."""

    always_true = True

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def python_type(self) -> type:
        """Return the class."""
        return self.kind

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give what belongs to the class, not to the instance."""
        owner, raw = class_lookup(self.kind, name)
        if isinstance(raw, ClassMethodDescriptorType):  # as `apply` is from torch 2.15 on
            return ctx.wrap(self.kind, Injected(self.kind)).get_attr(ctx, name)
        if owner is None or not isinstance(raw, staticmethod | classmethod):
            raise Break(AUTOGRAD_CALL, f"attribute {name!r} of an instance of {self.kind.__qualname__}")
        return bind_raw(ctx, raw, owner, name, None, self.kind)


@constructs(torch.autograd.Function)
def _instance(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `kind(...)`: torch's own `__init__` takes anything, and warns that instances are not meant."""
    base = torch.autograd.Function
    changed = any(class_lookup(kind, name)[1] is not look_up(base, name)[1] for name in ("__new__", "__init__"))
    if kind is base or changed or not _NOT_MEANT:
        raise Break(AUTOGRAD_CALL, f"construction of {kind.__qualname__}")
    ctx.graph.warn(_NOT_MEANT.format(kind), DeprecationWarning)
    return FunctionInstance(kind)


def _told_by_torch() -> str:
    """Return the text that torch warns with, with a place for the class."""
    with warnings.catch_warnings(record=True) as given, suppress(Exception):
        warnings.simplefilter("always")
        base: Any = torch.autograd.Function
        base()
    return str(given[0].message).replace(str(torch.autograd.Function), "{}") if given else ""


_NOT_MEANT = _told_by_torch()
