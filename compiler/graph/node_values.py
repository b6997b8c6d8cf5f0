"""Typed access to what stands beside a node: its example value, its user line and its phase.

`node.meta` is an open dictionary; this file is the only place that knows its keys.
  val     FakeTensor, int, float, bool, SymInt, None, or a tuple or list of those: the value's type
  origin  Origin: the user line that the node came from
  grad_enabled  False for a call that the program made with grad mode off; absent otherwise
  phase   "backward" for a call recorded while gradients were computed; absent otherwise
"""

from collections.abc import Iterator
from typing import cast

import torch
from torch import fx

from ..base.errors import InternalError
from ..base.origin import Origin

_SHORT = {
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "u8",
    torch.bool: "b8",
    torch.complex64: "c64",
    torch.complex128: "c128",
}


def has_value(node: fx.Node) -> bool:
    """Return whether the node's example value is known."""
    return "val" in node.meta


def value_of(node: fx.Node) -> object:
    """Return the example value of a node; raises InternalError when nobody wrote one."""
    if "val" not in node.meta:
        raise InternalError(f"node {node.name} has no example value", hint="set_value() belongs beside create_node()")
    return node.meta["val"]


def set_value(node: fx.Node, value: object) -> None:
    """Write the example value of a node."""
    node.meta["val"] = value


def set_entry_shape(node: fx.Node, value: torch.Tensor) -> None:
    """Write the shape with which an input comes: `unsqueeze_` changes the example value itself."""
    node.meta["entry_shape"] = tuple(value.shape)


def entry_shape(node: fx.Node, value: torch.Tensor) -> tuple[object, ...]:
    """Return the shape with which an input comes; value: its example value, where nobody wrote it."""
    shape: tuple[object, ...] = node.meta.get("entry_shape", tuple(value.shape))
    return shape


def is_tensor(node: fx.Node) -> bool:
    """Return whether the node gives one tensor."""
    return isinstance(node.meta.get("val"), torch.Tensor)


def tensor_of(node: fx.Node) -> torch.Tensor:
    """Return the fake tensor of a node; raises InternalError when it gives something else."""
    value = value_of(node)
    if not isinstance(value, torch.Tensor):
        what = f"node {node.name} gives {type(value).__name__}, not a tensor"
        raise InternalError(what, hint="ask is_tensor() first")
    return value


def origin_of(node: fx.Node) -> Origin | None:
    """Return the user line of a node, if it is known."""
    origin = node.meta.get("origin")
    return origin if isinstance(origin, Origin) else None


def copy_facts(source: fx.Node, target: fx.Node) -> None:
    """Give `target` everything that stands beside `source`."""
    target.meta.update(source.meta)


def in_backward(node: fx.Node) -> bool:
    """Return whether the call was recorded while gradients were computed."""
    return node.meta.get("phase") == "backward"


def mark_backward(node: fx.Node, step: int | None = None) -> None:
    """Say that the call was recorded while gradients were computed; step: the number of autograd's node, if known."""
    node.meta["phase"] = "backward"
    if step is not None:
        node.meta["step"] = step


def step_of(node: fx.Node) -> int | None:
    """Return the number of the autograd node whose backward made the call, or had ended when gradients were added."""
    step = node.meta.get("step")
    return step if isinstance(step, int) else None


def mark_without_grad(node: fx.Node) -> None:
    """Say that the program made the call with grad mode off."""
    node.meta["grad_enabled"] = False


def made_with_grad(node: fx.Node) -> bool:
    """Return whether grad mode was on when the program made the call."""
    return bool(node.meta.get("grad_enabled", True))


def mark_loose_view(node: fx.Node) -> None:
    """Say that a call gives views that autograd takes for tensors of their own, as `unsafe_split` does."""
    node.meta["loose_view"] = True


def is_loose_view(node: fx.Node) -> bool:
    """Return whether a call is marked so."""
    return bool(node.meta.get("loose_view", False))


def placeholders(graph: fx.Graph) -> list[fx.Node]:
    """Return the inputs in order."""
    return [node for node in graph.nodes if node.op == "placeholder"]


def output_node(graph: fx.Graph) -> fx.Node:
    """Return the one output node; raises InternalError when there is none."""
    last: fx.Node
    for last in reversed(graph.nodes):
        if last.op == "output":
            return last
    raise InternalError("a graph has no output", hint="call graph.output(tuple_of_values)")


def outputs(graph: fx.Graph) -> tuple[object, ...]:
    """Return what the graph gives: nodes and constants, always as a tuple."""
    (result,) = output_node(graph).args
    return tuple(cast("tuple[object, ...]", result)) if isinstance(result, (tuple, list)) else (result,)


def calls(graph: fx.Graph) -> Iterator[fx.Node]:
    """Yield the nodes that compute something, in order."""
    return (node for node in graph.nodes if node.op in ("call_function", "call_method", "call_module"))


def type_text(value: object) -> str:
    """Return a short text of a value's type: `f32[2, 3]`, with strides (in elements) unless contiguous."""
    if isinstance(value, torch.Tensor):
        name = _SHORT.get(value.dtype, str(value.dtype).removeprefix("torch."))
        text = f"{name}[{', '.join(str(size) for size in value.shape)}]"
        if value.layout is torch.strided and not value.is_contiguous():
            text += f" strides ({', '.join(str(step) for step in value.stride())})"
        return text if value.device.type == "cpu" else f"{text} {value.device}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(type_text(part) for part in value)})"
    return type(value).__name__
