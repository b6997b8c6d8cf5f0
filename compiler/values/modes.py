"""Blocks and settings that change what torch makes: `with torch.device`, inference mode, the default dtype."""

import threading
from typing import Any

import torch

from ..base.torch_facts import inference_block, set_default_dtype
from .classes import constructs
from .constant import Constant, Known, calls
from .reasons import UNKNOWN_CALLEE, Break
from .value import Arguments, CaptureContext, Keywords, Rebuilder, Value


class _Entered(threading.local):
    """The inference blocks that graphs of this thread have entered and not left."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []


_ENTERED = _Entered()


def enter_inference(mode: bool) -> None:
    """Enter an inference block: a node of a graph."""
    block = inference_block(mode)
    block.__enter__()
    _ENTERED.blocks.append(block)


def leave_inference() -> None:
    """Leave the innermost inference block: a node of a graph."""
    _ENTERED.blocks.pop().__exit__(None, None, None)


def inference_depth() -> int:
    """Return how many inference blocks of graphs are open on this thread."""
    return len(_ENTERED.blocks)


def unwind_inference(depth: int) -> None:
    """Leave the blocks that a failing graph left open."""
    while len(_ENTERED.blocks) > depth:
        leave_inference()


class LeaveBlock(Value):
    """The bound `__exit__` of a block that was entered."""

    def __init__(self, block: "DeviceBlock | InferenceBlock") -> None:
        self.block = block

    def python_type(self) -> type:
        """Return the type of bound builtins."""
        return type(torch.device("cpu").__exit__)

    def truth(self, ctx: CaptureContext) -> bool:
        """Methods are true."""
        return True

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
        ctx.enter_device(self.value)
        return self

    def leave(self, ctx: CaptureContext) -> None:
        """Make tensors where they were made before."""
        if self.value != ctx.default_device():
            raise Break(UNKNOWN_CALLEE, "leaving a device block that is not the innermost")
        ctx.leave_device()

    def call_method(self, ctx: CaptureContext, name: str, args: Arguments, kwargs: Keywords) -> Value:
        """Evaluate `__exit__` of a block entered before a break."""
        if name == "__exit__":
            self.leave(ctx)
            return Constant(None)
        return super().call_method(ctx, name, args, kwargs)


class InferenceBlock(Value):
    """What `torch.inference_mode` enters: torch's own block, made anew where the graph runs."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode

    def python_type(self) -> type:
        """Return the class of the block."""
        kind: type = inference_block
        return kind

    def truth(self, ctx: CaptureContext) -> bool:
        """Blocks are true."""
        return True

    def enter(self, ctx: CaptureContext) -> Value:
        """Enter the block, now and in the graph."""
        ctx.change_inference(enter_inference, (self.mode,))
        return Constant(None)

    def leave(self, ctx: CaptureContext) -> None:
        """Leave the block, now and in the graph."""
        ctx.change_inference(leave_inference, ())

    def get_attr(self, ctx: CaptureContext, name: str) -> Value:
        """Give the two methods."""
        if name == "__enter__":
            return EnterBlock(self)
        return LeaveBlock(self) if name == "__exit__" else super().get_attr(ctx, name)


class EnterBlock(Value):
    """The bound `__enter__` of a block."""

    def __init__(self, block: InferenceBlock) -> None:
        self.block = block

    def python_type(self) -> type:
        """Return the type of bound builtins."""
        return type(torch.device("cpu").__enter__)

    def call(self, ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
        """Enter the block."""
        return self.block.enter(ctx)


def device_block(value: Value) -> DeviceBlock | None:
    """Return the block that a value is when it stands after `with`, None if it is no device."""
    is_device = isinstance(value, Known) and isinstance(value.value, torch.device)
    return DeviceBlock(value.value) if isinstance(value, Known) and is_device else None


@constructs(inference_block)
def _inference_block(ctx: CaptureContext, kind: type, args: Arguments, kwargs: Keywords) -> Value:
    mode = ctx.real(args[0]) if len(args) == 1 and not kwargs else None
    if not isinstance(mode, Constant) or type(mode.value) is not bool:
        raise Break(UNKNOWN_CALLEE, "an inference block by a value that is not known")
    return InferenceBlock(mode.value)


@calls(set_default_dtype)
def _set_default_dtype(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    dtype = ctx.real(args[0]).constant() if len(args) == 1 and ctx.real(args[0]).is_constant() else None
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise Break(UNKNOWN_CALLEE, "a default dtype that is not known")
    ctx.set_default_dtype(dtype)
    return Constant(None)


@calls(torch.get_default_device)
def _get_default_device(ctx: CaptureContext, args: Arguments, kwargs: Keywords) -> Value:
    return ctx.known(ctx.default_device())
