"""ModeRecord: the settings of torch that a capture changes, puts back, and leaves to the generated code."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from ...base.torch_facts import (
    set_default_dtype,
    set_grad_mode,
)
from ...values.guard import GuardKind
from ...values.override_state import OverrideState
from ...values.reasons import TORCH_SETTING, Break
from ...values.value import CaptureContext, ModeChanges, Value
from .autocast import autocast_depth, autocast_state, put_autocast
from .torch_blocks import TorchBlocks


class ModeRecord(ModeChanges):
    """Grad mode, autocast, devices, the default dtype and other blocks. changed: names of the settings."""

    def __init__(self, ctx: CaptureContext) -> None:
        self.ctx = ctx
        self.changed: set[str] = set()
        self.blocks = TorchBlocks()
        self.overrides = OverrideState()
        self.grad_at_entry = torch.is_grad_enabled()
        self.autocast_at_entry, self.autocast_depth_at_entry = autocast_state(), autocast_depth()

    def enter_device(self, device: torch.device) -> None:
        """Make tensors on a device from here on."""
        self.blocks.devices.append(device)

    def leave_device(self) -> None:
        """Make tensors where they were made before the innermost device block."""
        self.blocks.leave_device()

    def default_device(self) -> torch.device:
        """Return where tensors are made."""
        return self.blocks.devices[-1] if self.blocks.devices else torch.get_default_device()

    def set_default_dtype(self, dtype: torch.dtype) -> None:
        """Change the default dtype for what is captured next, and when the graph has run."""
        set_default_dtype(dtype)

    def change_block(self, change: Callable[[], None], block: Value | None) -> None:
        """Enter or leave a block, now and in the graph; block: the one that is entered."""
        change()
        if block is not None:
            self.blocks.open.append(block)
        else:
            self.blocks.open.pop()
        self.ctx.graph.add_change(change)
        self.blocks.in_graph = True
        self.changed.add("block")

    def keep_open(self, block: Value) -> None:
        """Note a block that the program has entered, which no node of the graph enters."""
        self.blocks.open.append(block)

    def close(self, block: Value) -> None:
        """Note that such a block was left."""
        if not self.blocks.open or self.blocks.open[-1] is not block:
            raise Break(TORCH_SETTING, "leaving a block that is not the innermost")
        self.blocks.open.pop()

    def set_state(self, name: str, setter: Callable[..., object], args: tuple[object, ...]) -> None:
        """Change a global state of torch now, for what is captured next, and in the graph."""
        setter(*args)
        if setter in (torch.autocast_increment_nesting, torch.autocast_decrement_nesting):
            self.ctx.guards.add(None, GuardKind.STATE, (autocast_depth, self.autocast_depth_at_entry))
        self.ctx.graph.add_change(setter, args)
        self.changed.add(name)

    def restore_autocast(self) -> None:
        """Put autocast back to what it was at entry: capture leaves no trace on the thread."""
        if "autocast" in self.changed:
            put_autocast(self.autocast_at_entry, self.autocast_depth_at_entry)
            torch.clear_autocast_cache()  # of casts of fake tensors

    @contextmanager
    def state_at_entry(self) -> Iterator[None]:
        """Return a context with the grad mode, default dtype and autocast that the graph will be called under."""
        grad, autocast, depth = torch.is_grad_enabled(), autocast_state(), autocast_depth()
        dtype = torch.get_default_dtype()
        casts = "autocast" in self.changed
        set_grad_mode(self.grad_at_entry)
        set_default_dtype(self.blocks.dtype_at_entry)
        if casts:
            put_autocast(self.autocast_at_entry, self.autocast_depth_at_entry)
        try:
            yield
        finally:
            set_grad_mode(grad)
            set_default_dtype(dtype)
            if casts:
                put_autocast(autocast, depth)

    def autocast_blocks(self) -> int:
        """Return how many more autocast blocks are open than at entry."""
        return autocast_depth() - self.autocast_depth_at_entry

    def autocast_changed(self) -> bool:
        """Return whether autocast is not as it was at entry."""
        return self.autocast_at_entry != autocast_state() or self.autocast_blocks() != 0
