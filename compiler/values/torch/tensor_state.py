"""What changes a tensor itself and not its elements: data, requires_grad, the history; and questions about it."""

import operator
from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

import torch

from ...base.errors import Unsupported
from ...base.torch_facts import outside_transforms, storage_key, unwrapped
from ...graph.effects.undo import STEPS_WANTED
from ..constant import Constant
from ..guard import GuardKind
from ..known_object import KnownObject
from ..python.containers.sequences import SequenceValue
from ..python.containers.tuples import TupleValue
from ..python.objects.classes import constructs
from ..reasons import CONSTRUCTION, TENSOR_STATE, Break
from ..source import Attribute
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value
from .spent_history import WALKED, is_gradient_leaf
from .tensor import MethodRule, TensorValue, tensor_attribute, tensor_method, tensor_setter


def _in_graph(value: Value) -> TensorValue:
    assert isinstance(value, TensorValue)
    return value


@tensor_method("detach_")
def _detach_in_place(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    """Let the object stand for the detached tensor; what was computed from it before keeps its history.

    That history is of no use where an operation has saved the tensor: `refusal_of` asks the fakes, one of which is
    detached as the tensor is.
    """
    if tensor.source is not None and not tensor.has_new_data and _answer_of(ctx, tensor, "{0}._is_view()"):
        raise Break(TENSOR_STATE, "detach_() of a view, which torch refuses")
    if tensor.source is not None and is_gradient_leaf(tensor.fake):
        raise Break(TENSOR_STATE, "detach_() of a leaf from outside, which no longer requires grad then")
    if tensor.source is not None or tensor.fake._is_view():
        return None
    before = tensor.fake
    tensor.become(ctx, _in_graph(ctx.graph.call("call_method", "detach", [tensor], {})))
    if before.requires_grad:
        before.detach_()
        WALKED[tensor.node.graph] = WeakMethod(ctx.graph.leaves)
    return tensor


@tensor_attribute("grad")
def _gradient(ctx: CaptureContext, tensor: TensorValue) -> Value | None:
    if tensor.real is not None and tensor.source is not None:
        if not tensor.real.is_leaf:
            raise Break(TENSOR_STATE, "grad of a tensor that is not a leaf")
        tensor.attributes["grad"] = ctx.wrap(tensor.real.grad, Attribute(tensor.source, "grad"))
        return tensor.attributes["grad"]
    if tensor.fake.requires_grad and not tensor.fake.is_leaf:
        raise Break(TENSOR_STATE, "grad of a tensor made in the function")
    return Constant(None)  # of a leaf made here: `backward` keeps what it adds among the attributes


@tensor_setter("grad")
def _set_gradient(ctx: CaptureContext, tensor: TensorValue, value: Value) -> bool:
    """Keep None, or a tensor of the graph that may become the gradient of this leaf; both are replayed."""
    if not (isinstance(value, Constant) and value.value is None):
        if not isinstance(value, TensorValue) or value is tensor or not tensor.fake.is_leaf:
            return False
        own, other = tensor.fake, value.fake
        if (own.shape, own.dtype, own.device) != (other.shape, other.dtype, other.device):
            return False
    tensor.attributes["grad"] = value
    ctx.effects.mutated(tensor)
    return True


def _add_scaled(operation: Callable[..., object]) -> MethodRule:
    """Return the rule of addcdiv_ or addcmul_ with a tensor as `value`, which eager reads as a number."""

    def rule(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
        scale = kwargs.get("value")
        if scale is None or not isinstance(ctx.realize(scale), TensorValue):
            return None
        part = ctx.graph.call("call_function", operation, list(args), {})
        part = ctx.graph.call("call_function", operator.mul, [part, scale], {})
        return ctx.graph.call("call_method", "add_", [tensor, part], {})

    return rule


tensor_method("addcdiv_")(_add_scaled(operator.truediv))
tensor_method("addcmul_")(_add_scaled(operator.mul))


@tensor_method("add_")
def _add_times(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    """Take a tensor as `alpha`, which eager reads as a number: optimizers keep theirs in tensors where compiled."""
    scale = ctx.realize(kwargs["alpha"]) if len(args) == 1 and set(kwargs) == {"alpha"} else None
    other = ctx.realize(args[0]) if args else None
    if not isinstance(scale, TensorValue) or not isinstance(other, TensorValue):
        return None
    if scale.fake.dim() or not (scale.fake.is_floating_point() and other.fake.is_floating_point()):
        return None
    return ctx.graph.call("call_method", "add_", [tensor, scaled(ctx, other, scale)], {})


def scaled(ctx: CaptureContext, other: Value, scale: Value) -> Value:
    """Return a product in the graph."""
    return ctx.graph.call("call_function", operator.mul, [other, scale], {})


class InputChange:
    """A node that changes what an input is; run eagerly, because traced operators cannot say it."""

    mutates_inputs = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.__name__ = f"set_{name}"
        self.__module__ = __name__

    def __call__(self, tensor: torch.Tensor, value: Any) -> None:
        """Set the attribute; raises Unsupported while operators are traced."""
        if not outside_transforms():
            raise Unsupported(f"the {self.name} of an input is set", hint="expected: the graph runs eagerly")
        setattr(tensor, self.name, value)


_SET_DATA, _SET_REQUIRES_GRAD = InputChange("data"), InputChange("requires_grad")


def _change_leaf(ctx: CaptureContext, tensor: TensorValue, change: InputChange, value: object, fake: Any) -> bool:
    """Add a node that changes a leaf from outside, and let its value be what it is then."""
    if tensor.source is None or not tensor.fake.is_leaf or tensor.hooks or tensor.has_new_data or ctx.graph.is_apart():
        return False
    ctx.graph.add(change, (tensor.node, value), None)
    tensor.fake = fake
    ctx.graph.rebound(tensor)
    return True


@tensor_setter("data")
def _set_data(ctx: CaptureContext, tensor: TensorValue, value: Value) -> bool:
    """Let the object stand for the new data, and give it to the original afterwards.

    A tensor that requires grad must stay the same leaf for autograd: the graph itself sets its data.
    """
    if not isinstance(value, TensorValue) or value is tensor or tensor.hooks:
        return False
    old, new = tensor.fake, value.fake
    if old.device != new.device or old.is_inference() or new.is_inference():
        return False
    if any(fake.is_conj() or fake.is_neg() for fake in (old, new)):
        return False
    if tensor.fake.requires_grad:
        if not new.is_floating_point():
            return False
        leaf = ctx.graph.fake_run(lambda data: data.detach().requires_grad_(), [value.fake], {}, "data")
        return _change_leaf(ctx, tensor, _SET_DATA, value.node, leaf)
    tensor.become(ctx, _in_graph(ctx.graph.call("call_method", "detach", [value], {})))
    tensor.has_new_data = True
    ctx.effects.mutated(tensor)
    return True


@tensor_method("requires_grad_")
def _requires_grad(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    """Make a leaf of the graph require grad; of an input only if nothing changes."""
    requires_grad = ctx.realize(args[0] if args else kwargs.get("requires_grad", Constant(True)))
    if not requires_grad.is_constant():
        return None
    fake = tensor.fake
    if bool(requires_grad.constant()) == fake.requires_grad:
        return tensor
    floating = fake.is_floating_point() or fake.is_complex()
    if not fake.is_leaf or not floating or fake.is_inference():
        return None
    if tensor.source is not None:
        flag = bool(requires_grad.constant())
        leaf = ctx.graph.fake_run(lambda data: data.detach().requires_grad_(flag), [fake], {}, "requires_grad_")
        return tensor if _change_leaf(ctx, tensor, _SET_REQUIRES_GRAD, flag, leaf) else None
    return ctx.graph.call("call_method", "requires_grad_", [tensor, requires_grad], {})


@tensor_setter("requires_grad")
def _set_requires_grad(ctx: CaptureContext, tensor: TensorValue, value: Value) -> bool:
    if ctx.realize(value).python_type() is not bool:
        return False  # torch refuses it, where the method takes numbers
    return _requires_grad(ctx, tensor, [value], {}) is not None


@tensor_method("storage_offset")
def _storage_offset(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value:
    """Give the offset, which is known once the offsets of the inputs that share the storage are."""
    moved: Any = 0
    memory = _in_memory(tensor)
    for value in _inputs_in_storage(ctx, memory):
        assert value.real is not None
        assert value.source is not None
        offset = value.real.storage_offset()
        ctx.guards.add(value.source, GuardKind.EXPRESSION, f"{{0}}.storage_offset() == {offset}")
        moved = offset - value.entry_offset  # fakes of inputs with dynamic sizes start at 0
    return ctx.known(memory.storage_offset() + moved)


def _in_memory(tensor: TensorValue) -> torch.Tensor:
    """Return the fake tensor that has a storage to ask: the one inside a transform's wrappers."""
    inner = unwrapped(tensor.fake)
    return tensor.fake if inner is None else inner


def _inputs_in_storage(ctx: CaptureContext, memory: torch.Tensor) -> list[TensorValue]:
    """Return the inputs that came in the storage of a fake tensor."""
    place = storage_key(memory)
    inputs = [_in_graph(value) for value in ctx.graph.inputs()]
    return [value for value in inputs if value.entry_storage is not None and value.entry_storage._cdata == place]


def _answer_of(ctx: CaptureContext, tensor: TensorValue, question: str) -> object:
    """Return what a tensor from outside answers, which its metadata do not tell, and guard that it does."""
    if tensor.source is None or tensor.real is None or tensor.has_new_data:
        raise Break(TENSOR_STATE, f"{question} of {tensor.describe()}")
    answer = eval(question.format("tensor"), {"tensor": tensor.real})
    ctx.guards.add(tensor.source, GuardKind.EXPRESSION, f"{question} is {answer}")
    return answer


def _object_question(question: str) -> Callable[[CaptureContext, TensorValue], Value]:
    """Return the rule of a question about the object: of one made here the fake tensor knows the answer."""

    def ask(ctx: CaptureContext, tensor: TensorValue) -> Value:
        if tensor.source is not None:
            return ctx.known(_answer_of(ctx, tensor, question))
        return ctx.known(eval(question.format("tensor"), {"tensor": tensor.fake}))

    return ask


def _storage_question(question: str) -> Callable[[CaptureContext, TensorValue], Value]:
    """Return the rule of a question about the storage: it may be that of a tensor from outside."""

    def ask(ctx: CaptureContext, tensor: TensorValue) -> Value:
        owners = _inputs_in_storage(ctx, tensor.fake)
        if owners:
            return ctx.known(_answer_of(ctx, owners[0], question))
        return ctx.known(eval(question.format("tensor"), {"tensor": tensor.fake}))

    return ask


def _without_arguments(ask: Callable[[CaptureContext, TensorValue], Value]) -> MethodRule:
    def call(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
        return None if args or kwargs else ask(ctx, tensor)

    return call


tensor_method("_is_view")(_without_arguments(_object_question("{0}._is_view()")))
tensor_method("_is_zerotensor")(_without_arguments(_object_question("{0}._is_zerotensor()")))
tensor_attribute("retains_grad")(_object_question("{0}.retains_grad"))
tensor_method("is_shared")(_without_arguments(_storage_question("{0}.is_shared()")))
tensor_method("is_pinned")(_without_arguments(_storage_question("{0}.is_pinned()")))


_LEGACY: dict[type, torch.dtype] = {
    torch.FloatTensor: torch.float32,
    torch.DoubleTensor: torch.float64,
    torch.HalfTensor: torch.float16,
    torch.BFloat16Tensor: torch.bfloat16,
    torch.LongTensor: torch.int64,
    torch.IntTensor: torch.int32,
    torch.ShortTensor: torch.int16,
    torch.CharTensor: torch.int8,
    torch.ByteTensor: torch.uint8,
    torch.BoolTensor: torch.bool,
}


@constructs(torch.Tensor, *_LEGACY)
def _legacy_tensor(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    """Evaluate `torch.Tensor(...)` of sizes, or of nested lists of numbers; it knows no default device."""
    values = [ctx.realize(arg) for arg in args]
    settings = {"dtype": ctx.known(_LEGACY.get(kind, torch.get_default_dtype())), "device": ctx.known("cpu")}
    shape = values[0] if len(values) == 1 else None
    is_shape = isinstance(shape, SequenceValue) and shape.kind is torch.Size
    sizes = shape.elements(ctx) if isinstance(shape, SequenceValue) and is_shape else values
    if not kwargs and all(isinstance(value, Constant) and type(value.value) is int for value in sizes):
        return ctx.graph.call("call_function", torch.empty, [TupleValue(list(sizes))], settings)
    rows = values[0] if len(values) == 1 else None
    if kwargs or not isinstance(rows, SequenceValue) or rows.kind not in (list, tuple) or not rows.is_constant():
        raise Break(CONSTRUCTION, f"construction of {kind.__name__}")
    if not all(type(number) in (int, float) for number in _numbers(rows.constant())):
        raise Break(CONSTRUCTION, f"construction of {kind.__name__} from other things than numbers")
    return ctx.graph.call("call_function", torch.tensor, [rows], settings)


@tensor_method("type")
def _type(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    """Name the class in `x.type(torch.FloatTensor)`: a graph has no other way to write it."""
    kind = ctx.realize(args[0]) if args else None
    if not isinstance(kind, KnownObject) or not isinstance(kind.constant(), type(torch.FloatTensor)):
        return None
    name = Constant(torch.typename(kind.constant()))
    return ctx.graph.call("call_method", "type", [tensor, name, *args[1:]], kwargs)


@tensor_method("new")
def _new(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    """Make a tensor of a shape where the argument is a `torch.Size`; a plain tuple holds its elements."""
    shape = ctx.realize(args[0]) if len(args) == 1 else None
    if not isinstance(shape, SequenceValue) or shape.kind is not torch.Size:
        return None
    return ctx.graph.call("call_method", "new_empty", [tensor, shape], kwargs)


def _numbers(rows: object) -> list[object]:
    return [number for row in rows for number in _numbers(row)] if isinstance(rows, list | tuple) else [rows]


class HistoryValue(Value):
    """The `grad_fn` of a tensor made here: it is there, and nothing else is known of it."""

    always_true = True

    def __init__(self, tensor: TensorValue) -> None:
        self.tensor = tensor

    def python_type(self) -> type:
        """Return the class of the fake tensor's."""
        return type(self.tensor.fake.grad_fn)

    def rebuild(self, out: Rebuilder) -> str:
        """Ask the tensor, whose graph has to run as eager's does: a compiled one is a single step."""
        self.tensor.node.meta[STEPS_WANTED] = True
        return f"{out.value(self.tensor)}.grad_fn"


@tensor_attribute("grad_fn")
def _grad_fn(ctx: CaptureContext, tensor: TensorValue) -> Value | None:
    if not tensor.fake.requires_grad or (tensor.fake.is_leaf and (tensor.real is None or tensor.real.is_leaf)):
        return Constant(None)
    return HistoryValue(tensor) if tensor.real is None else None


@constructs(torch.nn.Parameter)
def _parameter(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    """Make a parameter over the memory of a tensor: a new leaf."""
    arguments = dict(zip(("data", "requires_grad"), args, strict=False)) | kwargs
    data, flags = (
        ctx.realize(arguments.get(name, Constant(default)))
        for name, default in (("data", None), ("requires_grad", True))
    )
    plain = isinstance(data, TensorValue) and not data.fake.is_inference() and len(arguments) == len(args) + len(kwargs)
    if not plain or not isinstance(flags, Constant):
        raise Break(CONSTRUCTION, "construction of Parameter")
    if flags.value:
        return ctx.graph.call("call_function", torch.nn.Parameter, [data], {})
    parameter = _in_graph(ctx.graph.call("call_method", "detach", [data], {}))
    parameter.kind = torch.nn.Parameter
    return parameter
