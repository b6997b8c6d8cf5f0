"""Calls into torch: which become nodes of the graph, which are constants, which change state, which break."""

import contextlib
import sys
import types
from collections import OrderedDict
from collections.abc import Callable

import torch
import torch.masked

from ...base.function_marks import own_mark
from ...base.torch_facts import (
    compiling_questions,
    expect_true,
    foreach_add_quotients,
    fx_questions,
    group_tensors,
    has_free_unbacked_symbols,
    name_decorated_frame,
    native_functions,
    operator_kinds,
    override_questions,
    set_grad_mode,
    state_questions,
    stock_mark,
    torch_assertion,
    tracing_flag,
    tracing_question,
    variable_functions,
)
from ...graph.exact_operators import ONE_HOT
from ..constant import Constant, fold
from ..guard import Answer, GuardKind
from ..python.containers.lists import ListValue
from ..python.containers.mappings import DictValue
from ..python.containers.sequences import SequenceValue
from ..python.containers.tuples import TupleValue
from ..python.objects.attributes import NativeMethod
from ..python.objects.classes import constructs
from ..python.objects.exceptions import ExceptionValue
from ..reasons import (
    ARGUMENT_NOT_KNOWN,
    BUILTIN_METHOD,
    DISABLED,
    EXPLICIT_BREAK,
    TORCH_CALL_FORM,
    UNKNOWN_CALLEE,
    Break,
)
from ..refused_arguments import demand_method_arguments, refuse_arguments
from ..rule_tables import CallRule, calls
from ..scalar import SizeValue
from ..source import Injected
from ..value import Arguments, CaptureContext, Keywords, Value
from .overrides.function_overrides import overridden
from .overrides.override_calls import is_asked_about
from .overrides.subclass_values import SubclassValue
from .tensor import TensorValue
from .whole_functions import places_of, what_is_found

_NOT_GRAPH_FUNCTIONS = frozenset(
    {
        "manual_seed",
        "seed",
        "save",
        "load",
        "compile",
        "set_default_dtype",
        "set_default_device",
        "set_rng_state",
        "get_rng_state",
        "initial_seed",
        "set_num_threads",
        "from_numpy",
        "frombuffer",
        "from_file",
        "asarray",
        "set_printoptions",
        "is_storage",
        "typename",
        "set_warn_always",
        "import_ir_module",
        "from_dlpack",
        "to_dlpack",
        "set_grad_enabled",
        "inference_mode",
        "no_grad",
        "enable_grad",
        "vmap",
        "unravel_index",
        "handle_torch_function",
        "has_torch_function",
        "is_vulkan_available",
        "set_flush_denormal",
        "resize_as_",
        "use_deterministic_algorithms",
        "set_float32_matmul_precision",
        "init_num_threads",
        "boolean_dispatch",
        "assert_int_or_pair",
        "sym_int",
        "sym_float",
        "sym_max",
        "sym_min",
        "sym_not",
        "_assert",
        "_check",
        "is_tensor",
        "is_grad_enabled",
        "is_inference_mode_enabled",
        "get_default_dtype",
        "equal",
        "is_nonzero",
        "triplet_margin_with_distance_loss",  # it calls a function of the program's
    }
)
_NO_OPERATIONS = (torch.cond, torch.lu)  # whose namesakes in torch.linalg are


def _functions_of(namespace: types.ModuleType, names: list[str]) -> list[object]:
    functions = []
    for name in names:
        value = getattr(namespace, name, None)
        usable = callable(value) and not isinstance(value, type) and name not in _NOT_GRAPH_FUNCTIONS
        if usable and not any(value is other for other in _NO_OPERATIONS):
            functions.append(value)
    return functions


def _collect() -> dict[int, object]:
    listed: list[object] = []
    listed += _functions_of(torch, [n for n in dir(variable_functions) if not n.startswith("__")])
    listed += _functions_of(torch, list(torch.functional.__all__))
    listed += _functions_of(torch.functional, list(torch.functional.__all__))
    functional = torch.nn.functional
    listed += _functions_of(functional, [n for n in dir(functional) if not n.startswith("_")])
    listed += _functions_of(native_functions, [n for n in dir(native_functions) if not n.startswith("__")])
    for namespace in (torch.special, torch.fft, torch.linalg, torch.masked):
        listed += _functions_of(namespace, [n for n in dir(namespace) if not n.startswith("_")])
    kinds = (types.FunctionType, types.BuiltinFunctionType)
    torch_only = [
        value
        for value in listed
        if isinstance(value, kinds) and str(getattr(value, "__module__", None) or "torch").startswith("torch")
    ]
    listed = [*torch_only, torch.tensor, torch.as_tensor, torch.scalar_tensor]
    return {id(value): value for value in listed if not _is_dispatched(value)}


def _is_dispatched(value: object) -> bool:
    return getattr(value, "__module__", "") in ("torch.overrides", "torch._jit_internal", "torch.types", "typing")


_GRAPH_FUNCTIONS = _collect()
_PLACES = places_of(_GRAPH_FUNCTIONS.values())
_FOUND_BY = what_is_found(_GRAPH_FUNCTIONS.values())
_MARKS: dict[int, tuple[object, str, str]] = {}  # callable, "allowed" or "disallowed", and stock's mark at that time
_TARGETS: dict[int, tuple[object, object]] = {}  # an allowed callable, and what stands in the graph for it


class NamedApart:
    """A callable under a name of its own: generated code finds what claims to be from torch by torch's name."""

    def __init__(self, function: Callable[..., object]) -> None:
        self.function = function
        self.__name__ = f"allowed_{getattr(function, '__name__', 'callable')}"
        self.__module__ = __name__

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Call the function."""
        return self.function(*args, **kwargs)


def graph_target(function: object) -> object:
    """Return what stands in the graph for an allowed callable."""
    module, name = str(getattr(function, "__module__", None) or "torch"), getattr(function, "__name__", None)
    borrowed = module.partition(".")[0] == "torch" and isinstance(function, types.FunctionType)
    if callable(function) and (borrowed or not isinstance(name, str) or not name.isidentifier()):
        return NamedApart(function)
    return function


def allow(function: object) -> None:
    """Let a callable stand in graphs as one node."""
    _MARKS[id(function)] = (function, "allowed", stock_mark(function))


def disallow(function: object) -> None:
    """Make every call of the callable a break."""
    _MARKS[id(function)] = (function, "disallowed", stock_mark(function))


def _mark_of(function: object) -> str:
    """Return "allowed", "disallowed" or "": our mark, unless stock's was put on or changed since."""
    stock = stock_mark(function)
    _, ours, then = _MARKS.get(id(function), (None, "", ""))
    return ours if ours and then == stock else stock


def is_disallowed(function: object) -> bool:
    """Return whether `disallow_in_graph`, ours or stock's, was applied last."""
    return _mark_of(function) == "disallowed"


def is_allowed(function: object) -> bool:
    """Return whether `allow_in_graph`, ours or stock's, was applied last."""
    return _mark_of(function) == "allowed"


def is_graph_function(function: object) -> bool:
    """Return whether calls of it become graph nodes."""
    mark = _mark_of(function)
    if mark:
        return mark == "allowed"
    return isinstance(function, operator_kinds) or id(function) in _GRAPH_FUNCTIONS


def _target_of(function: object) -> object:
    known = _TARGETS.get(id(function))
    if known is None:
        known = _TARGETS[id(function)] = (function, graph_target(function))
    return known[1]


def operator_target(function: object) -> object:
    """Return what stands in the graph for an operator, or for what is allowed there; None for all else."""
    if is_graph_break_mark(function) or not is_graph_function(function):
        return None
    target = _target_of(function) if is_allowed(function) else function
    return target if target is not function or id(function) not in _GRAPH_FUNCTIONS else None


def graph_function_rule(function: object) -> CallRule | None:
    if is_graph_break_mark(function):
        return None  # a mark, though it is in stock's table of what is disallowed
    if is_disallowed(function):

        def refuse(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
            raise Break(DISABLED, f"{getattr(function, '__name__', function)} is disallowed in graphs")

        return refuse
    if not is_graph_function(function) or operator_target(function) is not None:
        return None

    target: object = function
    places, parts = _PLACES[id(function)], _FOUND_BY.get(id(function), ())
    if not all(part.is_original() for part in parts):
        return None  # it is evaluated like a function of the user's
    if callable(function) and not all(place.is_original() for place in places):
        target, places = NamedApart(function), ()  # its own name is another function's now

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        for found in (*places, *parts):
            found.guard(ctx)
        answer = overridden(ctx, function, args, kwargs)
        return answer if answer is not None else ctx.graph.call("call_function", target, args, kwargs)

    return rule


def tensor_descriptor_rule(function: object) -> CallRule | None:
    """Give `torch.Tensor.add(x, y)`, `list.append(l, x)`, `str.upper(s)`: the method of the first argument."""
    if not isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        return None
    name, kind = function.__name__, function.__objclass__

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        if not args or not issubclass(ctx.realize(args[0]).python_type(), kind):
            refuse_arguments(ctx, function, args, kwargs)
            raise Break(UNKNOWN_CALLEE, f"{kind.__qualname__}.{name} of another object")
        owner = ctx.realize(args[0])
        demand_method_arguments(ctx, owner, function, args[1:], kwargs, bound=False)
        if kind is object and name == "__setattr__" and hasattr(owner, "set_plain"):
            owner.set_plain(ctx, str(ctx.realize(args[1]).constant()), args[2])
            return Constant(None)
        if kind is object and name == "__init__":
            return Constant(None)
        if kind is dict and name in vars(OrderedDict) and issubclass(owner.python_type(), OrderedDict):
            owner.unsupported(f"method {name!r} of dict, which passes over the order", BUILTIN_METHOD)
        if owner.contents is not None and kind is not object:
            return owner.call_native(ctx, NativeMethod(owner, kind, name), args[1:], kwargs)
        if owner.contents is not None:
            return owner.contents.call_method(ctx, name, args[1:], kwargs)
        if kind is object:
            owner.unsupported(f"method {name!r}", BUILTIN_METHOD)
        return owner.call_method(ctx, name, args[1:], kwargs)

    return rule


def tensor_function_rule(function: object) -> CallRule | None:
    """Give the methods of `torch.Tensor` that torch has in Python, called by name: `torch.Tensor.__rsub__(x, 1)`."""
    name = _TENSOR_FUNCTIONS.get(function, "") if isinstance(function, types.FunctionType) else ""
    if not name:
        return None

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        owner = ctx.realize(args[0]) if args else None
        replaced = isinstance(owner, TensorValue) and owner.replaced(ctx, name) is not None
        if not isinstance(owner, TensorValue | SubclassValue) or replaced:
            raise Break(UNKNOWN_CALLEE, f"torch.Tensor.{name} of another object")
        return owner.call_method(ctx, name, args[1:], kwargs)

    return rule


_TENSOR_FUNCTIONS = {raw: name for name, raw in vars(torch.Tensor).items() if type(raw) is types.FunctionType}


def _asked_again(question: Callable[..., object]) -> CallRule:
    """Return the rule of a question whose answer is asked for again at every entry."""

    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        refuse_arguments(ctx, question, args, kwargs)
        answer = question()
        ctx.guards.add(Injected(question), GuardKind.ANSWER, Answer((), {}, answer))
        return ctx.known(answer)

    return rule


for _question in fx_questions:
    calls(_question)(_asked_again(_question))


def exporter_question_rule(function: object) -> CallRule | None:
    """Return the rule of what `torch.onnx` is asked; nobody who has not imported the exporter can ask."""
    question: Callable[..., object] | None = getattr(sys.modules.get("torch.onnx"), "is_in_onnx_export", None)
    return _asked_again(question) if question is not None and function is question else None


def _constant_rule(answer: object) -> CallRule:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        return Constant(answer)

    return rule


def _register_constants() -> None:
    compiler = torch.compiler
    for function in (compiler.is_compiling, compiler.is_dynamo_compiling, *compiling_questions):
        calls(function)(_constant_rule(True))
    false = [
        torch.jit.is_scripting,  # type: ignore[attr-defined]  # public, not in torch.jit's __all__
        torch.jit.is_tracing,  # type: ignore[attr-defined]  # as above
        compiler.is_exporting,
        tracing_flag,
        has_free_unbacked_symbols,
    ]
    for question in {id(f): f for f in false}.values():
        calls(question)(_constant_rule(False))
    calls(tracing_question)(_constant_rule(None))
    if name_decorated_frame is not None:
        calls(name_decorated_frame)(_constant_rule(None))


_register_constants()


def _has_override(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return Constant(is_asked_about(ctx, [*args, *kwargs.values()]))


calls(*override_questions)(_has_override)


def _query(function: Callable[..., object]) -> CallRule:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        known = [ctx.realize(arg).constant() for arg in args if ctx.realize(arg).is_constant()]
        if len(known) != len(args) or kwargs:
            raise Break(ARGUMENT_NOT_KNOWN, f"{function.__name__} with arguments that are not known")
        return fold(ctx, function, *known)

    return rule


# Answers that entry guards hold fixed (`GuardList.hold_global_state`), or that never change in a process.
for _function in (
    torch.is_grad_enabled,
    torch.is_inference_mode_enabled,
    torch.get_default_dtype,
    torch.is_autocast_enabled,
    torch.get_autocast_dtype,
    torch.is_autocast_cache_enabled,
    torch.are_deterministic_algorithms_enabled,
    torch.promote_types,
    torch.can_cast,
    torch.cuda.is_available,
    torch.amp.is_autocast_available,
    torch.is_autocast_cpu_enabled,
    torch.get_device_module,
    *state_questions,
):
    calls(_function)(_query(_function))


def _setter(name: str, function: Callable[..., object]) -> CallRule:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        known = tuple(ctx.realize(arg) for arg in args)
        if kwargs or not all(arg.is_constant() for arg in known):
            raise Break(ARGUMENT_NOT_KNOWN, f"{name} with a value that is not known")
        ctx.modes.set_state(name, function, tuple(arg.constant() for arg in known))
        return Constant(None)

    return rule


calls(set_grad_mode)(_setter("grad", set_grad_mode))
_AUTOCAST_SETTERS: tuple[Callable[..., object], ...] = (
    torch.set_autocast_enabled,
    torch.set_autocast_dtype,
    torch.set_autocast_cache_enabled,
    torch.clear_autocast_cache,
)
for _set in _AUTOCAST_SETTERS:
    calls(_set)(_setter("autocast", _set))


def _nesting(function: Callable[[], int]) -> CallRule:
    def rule(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        ctx.modes.set_state("autocast", function, ())
        torch.autocast_increment_nesting()
        return Constant(torch.autocast_decrement_nesting())

    return rule


for _step in (torch.autocast_increment_nesting, torch.autocast_decrement_nesting):
    calls(_step)(_nesting(_step))


@constructs(torch.autograd.profiler.record_function)
def _profiler_label(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.call(ctx.known(contextlib.nullcontext), [], {})  # labels of a profile do not reach into graphs


@calls(torch.is_tensor)
def _is_tensor(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return Constant(issubclass(ctx.realize(args[0]).python_type(), torch.Tensor))


@constructs(torch.device)
def _device(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    known = [ctx.realize(arg).constant() for arg in args]
    return fold(ctx, torch.device, *known, **{k: ctx.realize(v).constant() for k, v in kwargs.items()})


@constructs(torch.finfo, torch.iinfo)
def _limits(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    return fold(ctx, kind, *[ctx.realize(arg).constant() for arg in args])


@constructs(torch.Size)
def _size(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    sizes = [size.as_index(ctx) for size in ctx.unpack(args[0])] if args else []
    if any(not issubclass(size.python_type(), int) for size in sizes):
        raise Break(UNKNOWN_CALLEE, "torch.Size of what are no whole numbers")
    return TupleValue(sizes, kind=torch.Size)


@calls(torch.nn.functional.one_hot)
def _one_hot(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Keep the checks of the class values, which torch leaves out where one_hot is traced."""
    named = {**dict(zip(("input", "num_classes"), args, strict=False)), **kwargs}
    classes, count = (ctx.realize(named.get(name, Constant(-1))) for name in ("input", "num_classes"))
    known = len(named) == 2 and _is_a_count(count)
    look = (classes.fake.device.type, classes.fake.dtype) if isinstance(classes, TensorValue) else None
    if known and look == ("cpu", torch.int64):
        return ctx.graph.call("call_function", ONE_HOT, [classes, count], {})
    return ctx.graph.call("call_function", torch.nn.functional.one_hot, args, kwargs)


def _is_a_count(number: Value) -> bool:
    """Return whether it is a whole number above 0, as a number or as a size that may vary."""
    if isinstance(number, SizeValue):
        return number.kind is int and bool(number.symbol > 0)
    return isinstance(number, Constant) and type(number.value) is int and number.value > 0


@calls(expect_true)
def _expect_true(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return Constant(ctx.realize(args[0]).truth(ctx))


@calls(foreach_add_quotients)
def _foreach_add_quotients(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Take scalars that are tensors apart, tensor by tensor: fake kernels refuse them."""
    scalars = ctx.realize(args[3]) if len(args) == 4 else None
    several = ctx.unpack(scalars) if isinstance(scalars, SequenceValue) else []
    if not any(isinstance(ctx.realize(one), TensorValue) for one in (*several, scalars) if one is not None):
        return ctx.graph.call("call_function", foreach_add_quotients, args, kwargs)
    rows = [ctx.unpack(arg) for arg in args]
    for target, numerator, denominator, scale in zip(*rows, strict=True):
        ctx.realize(target).call_method(ctx, "addcdiv_", [numerator, denominator], {"value": scale})
    return Constant(None)


@calls(group_tensors)
def _group_tensors(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Sort lists of tensors by device and dtype of the first list's."""
    lists = [ctx.unpack(row) for row in ctx.unpack(args[0])]
    with_indices = ctx.realize(args[1] if len(args) > 1 else kwargs.get("with_indices", Constant(False)))
    groups: dict[tuple[object, object], list[int]] = {}
    for position, value in enumerate(lists[0]):
        tensor = ctx.realize(value)
        if not isinstance(tensor, TensorValue):
            raise Break(TORCH_CALL_FORM, f"grouping of {tensor.describe()}")
        groups.setdefault((tensor.fake.device, tensor.fake.dtype), []).append(position)
    pairs: list[tuple[Value, Value]] = []
    for key, positions in groups.items():
        chosen: list[Value] = [ListValue([row[p] for p in positions]) if row else ListValue([]) for row in lists]
        indices = list[Value](Constant(p) for p in positions) if with_indices.truth(ctx) else []
        pairs.append((ctx.known(key), TupleValue([ListValue(chosen), ListValue(indices)])))
    return DictValue.of(ctx, pairs)


@calls(torch_assertion)
def _assertion(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    condition = ctx.realize(args[0])
    if isinstance(condition, TensorValue) and ctx.graph.assume(condition, True):
        return Constant(None)
    if not condition.truth(ctx):
        ctx.throw(AssertionError, *[ctx.realize(arg).constant() for arg in args[1:]])
    return Constant(None)


@calls(torch.jit.annotate)
def _annotate(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    if len(args) != 2 or kwargs:
        raise Break(TORCH_CALL_FORM, "torch.jit.annotate by keywords")
    return ctx.realize(args[1])


def stock_settings_rule(function: object) -> CallRule | None:
    """Give the two ends of a block that changes settings of stock's compiler, which nothing here reads."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    return _constant_rule(None) if module == "torch._dynamo.decorators" and name in _SETTINGS_BLOCK else None


_SETTINGS_BLOCK = ("DynamoConfigPatchProxy.__enter__", "DynamoConfigPatchProxy.__exit__")


def mark_on_sizes_rule(function: object) -> CallRule | None:
    """Give stock's marks that sizes stay as they are, which tell a capture in progress nothing."""
    name = getattr(function, "__name__", "")
    if getattr(function, "__module__", "") != "torch._dynamo.decorators" or name not in _MARKS_ON_SIZES:
        return None
    return _constant_rule(None)


_MARKS_ON_SIZES = frozenset({"mark_static", "mark_static_address", "maybe_mark_dynamic"})


def is_graph_break_mark(function: object) -> bool:
    """Return whether the function is a `graph_break()` of ours or of torch's, known by its mark or name."""
    if own_mark(function, "_plumbline_graph_break"):
        return True
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    return name == "graph_break" and module == "torch._dynamo.decorators"


def explicit_break() -> Break:
    """Return the break that `graph_break()` asks for."""
    return Break(EXPLICIT_BREAK, "graph_break()")


__all__ = [
    "ExceptionValue",
    "allow",
    "disallow",
    "explicit_break",
    "is_allowed",
    "is_disallowed",
    "is_graph_break_mark",
    "is_graph_function",
]
