"""What changes a tensor itself and not its elements: data, requires_grad, the history; and questions about it."""

import torch

from ..base.torch_facts import storage_key
from .classes import constructs
from .constant import Constant
from .guard import Kind
from .reasons import UNKNOWN_CALLEE, Break
from .tensor import TensorValue, tensor_method, tensor_setter
from .value import Arguments, CaptureContext, Keywords, Value


def _in_graph(value: Value) -> TensorValue:
    assert isinstance(value, TensorValue)
    return value


@tensor_method("detach_")
def _detach_in_place(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    """Let the object stand for the detached tensor; what was computed from it before keeps its history."""
    if tensor.source is not None or tensor.fake._is_view():
        return None
    tensor.become(ctx, _in_graph(ctx.call_torch("call_method", "detach", [tensor], {})))
    return tensor


@tensor_setter("data")
def _set_data(ctx: CaptureContext, tensor: TensorValue, value: Value) -> bool:
    """Let the object stand for the new data, and give it to the original afterwards.

    A tensor that requires grad must stay the same leaf for autograd, which a graph cannot say.
    """
    if not isinstance(value, TensorValue) or value is tensor or tensor.fake.requires_grad or tensor.hooks:
        return False
    old, new = tensor.fake, value.fake
    if old.dtype != new.dtype or old.device != new.device or old.is_inference() or new.is_inference():
        return False
    if any(fake.is_conj() or fake.is_neg() for fake in (old, new)):
        return False
    tensor.become(ctx, _in_graph(ctx.call_torch("call_method", "detach", [value], {})))
    tensor.has_new_data = True
    ctx.mutated(tensor)
    return True


@tensor_method("requires_grad_")
def _requires_grad(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value | None:
    """Make a leaf of the graph require grad; of an input only if nothing changes."""
    wanted = ctx.real(args[0] if args else kwargs.get("requires_grad", Constant(True)))
    if not wanted.is_constant():
        return None
    fake = tensor.fake
    if bool(wanted.constant()) == fake.requires_grad:
        return tensor
    floating = fake.is_floating_point() or fake.is_complex()
    if tensor.source is not None or not fake.is_leaf or not floating or fake.is_inference():
        return None
    return ctx.call_torch("call_method", "requires_grad_", [tensor, wanted], {})


@tensor_setter("requires_grad")
def _set_requires_grad(ctx: CaptureContext, tensor: TensorValue, value: Value) -> bool:
    return _requires_grad(ctx, tensor, [value], {}) is not None


@tensor_method("storage_offset")
def _storage_offset(ctx: CaptureContext, tensor: TensorValue, args: Arguments, kwargs: Keywords) -> Value:
    """Give the offset, which is known once the offsets of the inputs that share the storage are."""
    place = storage_key(tensor.fake)
    for value in ctx.graph_inputs():
        assert isinstance(value, TensorValue)
        if storage_key(value.fake) == place and value.source is not None and value.real is not None:
            offset = value.real.storage_offset()
            ctx.guard(value.source, Kind.EXPRESSION, f"{{0}}.storage_offset() == {offset}")
    return ctx.known(tensor.fake.storage_offset())


@constructs(torch.nn.Parameter)
def _parameter(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    """Make a parameter over the memory of a tensor: a new leaf."""
    given = dict(zip(("data", "requires_grad"), args, strict=False)) | kwargs
    data, wanted = (ctx.real(given.get(name, Constant(default))) for name, default in
                    (("data", None), ("requires_grad", True)))
    plain = isinstance(data, TensorValue) and not data.fake.is_inference() and len(given) == len(args) + len(kwargs)
    if not plain or not isinstance(wanted, Constant):
        raise Break(UNKNOWN_CALLEE, "construction of Parameter")
    if wanted.value:
        return ctx.call_torch("call_function", torch.nn.Parameter, [data], {})
    made = _in_graph(ctx.call_torch("call_method", "detach", [data], {}))
    made.kind = torch.nn.Parameter
    return made

