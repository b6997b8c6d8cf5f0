"""Blocks and settings that change what torch does: devices, inference mode, kernels of attention, the default dtype."""

import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import attention

from ...base.torch_facts import inference_block, set_default_dtype
from ..constant import Constant, Known, MethodOf
from ..python.objects.classes import constructs
from ..reasons import ARGUMENT_NOT_KNOWN, TORCH_SETTING, Break
from ..rule_tables import calls
from ..value import Arguments, CaptureContext, Keywords, Rebuilder, Value


class _Entered(threading.local):
    """The blocks that graphs of this thread have entered and not left."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []


_ENTERED = _Entered()


class EnterBlock:
    """A node of a graph: enters a block, which its function makes each time."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args
        self.__name__ = "enter"
        self.__module__ = __name__

    sets_state = True

    def __call__(self) -> None:
        """Enter."""
        block = self.function(*self.args)
        block.__enter__()
        _ENTERED.blocks.append(block)


def leave_block() -> None:
    """Leave the innermost block: a node of a graph."""
    _ENTERED.blocks.pop().__exit__(None, None, None)


leave_block.sets_state = True  # type: ignore[attr-defined]  # as of EnterBlock: a graph of nothing else is none


def block_depth() -> int:
    """Return how many blocks of graphs are open on this thread."""
    return len(_ENTERED.blocks)


def unwind_blocks(depth: int) -> None:
    """Leave the blocks that a failing graph left open."""
    while len(_ENTERED.blocks) > depth:
        leave_block()


class LeaveBlock(Value):
    """The bound `__exit__` of a block that was entered."""

    always_true = True

    def __init__(self, block: "DeviceBlock | GraphBlock") -> None:
        self.block = block

    def python_type(self) -> type:
        """Return the type of bound builtins."""
        return type(torch.device("cpu").__exit__)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Leave the block; an exception goes on."""
        self.block.leave(ctx)
        return Constant(None)

    def rebuild(self, out: Rebuilder) -> str:
        """Bind `__exit__`."""
        name = out.fresh()
        out.line(f"{name} = {out.value(self.block)}.__exit__")
        return name


class DeviceBlock(Known):
    """A device as a context manager."""

    def enter(self, ctx: CaptureContext) -> Value:
        """Make tensors on this device from here on."""
        assert isinstance(self.value, torch.device)
        ctx.modes.enter_device(self.value)
        return self

    def leave(self, ctx: CaptureContext) -> None:
        """Make tensors where they were made before."""
        if self.value != ctx.modes.default_device():
            raise Break(TORCH_SETTING, "leaving a device block that is not the innermost")
        ctx.modes.leave_device()

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `__exit__` of a block entered before a break."""
        if name == "__exit__":
            self.leave(ctx)
            return Constant(None)
        return super().call_method(ctx, name, args, kwargs)


class GraphBlock(Value):
    """A block that is entered and left by nodes of the graph, as by the capture itself."""

    always_true = True

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kind: type) -> None:
        self.function = function
        self.args = args
        self.kind = kind

    def python_type(self) -> type:
        """Return the class of the block."""
        return self.kind

    def enter(self, ctx: CaptureContext) -> Value:
        """Enter the block, now and in the graph."""
        ctx.modes.change_block(EnterBlock(self.function, self.args), self)
        return Constant(None)

    def leave(self, ctx: CaptureContext) -> None:
        """Leave the block, now and in the graph."""
        ctx.modes.change_block(leave_block, None)

    def rebuild(self, out: Rebuilder) -> str:
        """Make the block; it is entered by whoever goes on inside it."""
        name = out.fresh()
        args = ", ".join(out.inject(arg) for arg in self.args)
        out.line(f"{name} = {out.inject(self.function)}({args})")
        return name

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the two methods."""
        return MethodOf(self, name) if name in ("__enter__", "__exit__") else super().get_attr(ctx, name)

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate the two methods."""
        if name == "__enter__":
            return self.enter(ctx)
        if name == "__exit__":
            self.leave(ctx)
            return Constant(None)
        return super().call_method(ctx, name, args, kwargs)


def block_of(value: Value) -> DeviceBlock | GraphBlock | None:
    """Return the block that a value is when it stands after `with`, None if it is none of ours."""
    if isinstance(value, GraphBlock):
        return value
    is_device = isinstance(value, Known) and isinstance(value.value, torch.device)
    return DeviceBlock(value.value) if isinstance(value, Known) and is_device else None


@constructs(inference_block)
def _inference_block(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    mode = ctx.realize(args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(mode, Constant) or type(mode.value) is not bool:
        raise Break(ARGUMENT_NOT_KNOWN, "an inference block by a value that is not known")
    return GraphBlock(kind, (mode.value,), kind)


@calls(attention.sdpa_kernel)
def _attention_kernels(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    """Limit the kernels of scaled dot product attention: an operation is traced by the kernel that it would take."""
    values = dict(zip(("backends", "set_priority"), args, strict=False)) | kwargs
    arguments = {name: ctx.realize(value) for name, value in values.items()}
    if not all(value.is_constant() for value in arguments.values()):
        raise Break(ARGUMENT_NOT_KNOWN, "sdpa_kernel with kernels that are not known")
    settings: dict[str, Any] = {name: value.constant() for name, value in arguments.items()}
    block = partial(attention.sdpa_kernel, **settings)
    return GraphBlock(block, (), contextlib._GeneratorContextManager)


@calls(set_default_dtype)
def _set_default_dtype(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    dtype = ctx.realize(args[0]).constant() if len(args) == 1 and ctx.realize(args[0]).is_constant() else None
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise Break(ARGUMENT_NOT_KNOWN, "a default dtype that is not known")
    ctx.modes.set_default_dtype(dtype)
    return Constant(None)


@calls(torch.set_default_device)
def _set_default_device(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    raise Break(TORCH_SETTING, "torch.set_default_device")  # it puts a mode on the stack: one break for all of it


@calls(torch.get_default_device)
def _get_default_device(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.known(ctx.modes.default_device())
