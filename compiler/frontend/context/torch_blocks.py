"""Settings of torch that a capture changes and puts back: blocks, and the default dtype.

Devices and dtypes are not left to the generated code: what they do to an operation becomes an argument of it, or the
operation breaks. Other blocks are entered and left by nodes of the graph.
"""

import types
from collections.abc import Callable
from typing import Any

import torch

from ...base.torch_facts import device_constructors, set_default_dtype
from ...values.reasons import TENSOR_STATE, Break
from ...values.torch.modes import block_depth, unwind_blocks
from ...values.value import Rebuilder, Value


class TorchBlocks:
    """The settings of one capture."""

    def __init__(self) -> None:
        self.devices: list[torch.device] = []
        self.left: list[torch.device] = []  # blocks from around the code that it has left
        self.dtype_at_entry = torch.get_default_dtype()
        self.depth_at_entry = block_depth()
        self.in_graph = False  # nodes enter or leave blocks
        self.open: list[Value] = []  # the blocks that are entered now
        self.constructors = device_constructors()

    def extra_arguments(self, target: object, args: list[object], kwargs: dict[str, object]) -> dict[str, object]:
        """Return the keyword arguments that the settings add to an operation; Break where they cannot say it."""
        constructs = isinstance(target, types.BuiltinFunctionType | types.FunctionType) and target in self.constructors
        extra: dict[str, object] = {}
        if constructs and (self.devices or self.left) and kwargs.get("device") is None:
            extra["device"] = self.devices[-1] if self.devices else torch.get_default_device()
        if torch.get_default_dtype() is self.dtype_at_entry or (constructs and kwargs.get("dtype") is not None):
            return extra
        if constructs:
            extra["dtype"] = None  # whatever it turns out to be
            return extra
        tensors = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, torch.Tensor)]
        if not tensors or not all(tensor.is_floating_point() for tensor in tensors):
            name = target if isinstance(target, str) else getattr(target, "__name__", target)
            raise Break(TENSOR_STATE, f"{name} under another default dtype")
        return extra

    def leave_device(self) -> None:
        """Leave the innermost device block; one from around the code goes on at run time, so devices are named."""
        if self.devices:
            self.devices.pop()
            return
        outer = torch.get_default_device()
        outer.__exit__(None, None, None)
        self.left.append(outer)

    def restore(self) -> None:
        """Put everything back: capture leaves no trace on the thread."""
        for device in reversed(self.left):
            device.__enter__()
        self.left.clear()
        unwind_blocks(self.depth_at_entry)
        if torch.get_default_dtype() is not self.dtype_at_entry:
            set_default_dtype(self.dtype_at_entry)

    def write(self, out: Rebuilder) -> None:
        """Write what leaves the settings as the captured code left them."""
        if torch.get_default_dtype() is not self.dtype_at_entry:
            out.line(f"{out.inject(set_default_dtype)}({out.inject(torch.get_default_dtype())})")
        for block in self.open:  # the graph has left them at its end
            out.line(f"{out.value(block)}.__enter__()")
        for device in self.left:
            out.line(f"{out.inject(device)}.__exit__(None, None, None)")
        for device in self.devices:
            out.line(f"{out.inject(device)}.__enter__()")

    def around(self, lines: list[str], inject: Callable[[Any], str], fresh: str) -> list[str]:
        """Return the statements that run the graph, which leave no block open if it fails."""
        if not self.in_graph:
            return lines
        depth, unwind = inject(block_depth), inject(unwind_blocks)
        return [
            f"{fresh} = {depth}()",
            "try:",
            *(f"    {line}" for line in lines),
            "finally:",
            f"    {unwind}({fresh})",
        ]
