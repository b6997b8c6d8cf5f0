"""The autocast state of a moment, and a context that has it again later."""

from __future__ import annotations

from contextlib import ExitStack

import torch

from ...base.torch_facts import any_autocast

AUTOCAST_DEVICES = ("cpu", "cuda")
AutocastState = tuple[tuple[str, torch.dtype], ...]


def autocast_state() -> AutocastState:
    """Return the devices where autocast is on, each with its dtype."""
    if not any_autocast():
        return ()
    return tuple((d, torch.get_autocast_dtype(d)) for d in AUTOCAST_DEVICES if torch.is_autocast_enabled(d))


def autocast_as(states: AutocastState) -> ExitStack:
    """Return a context with autocast on for these devices and off for others."""
    stack, wanted = ExitStack(), dict(states)
    for device in AUTOCAST_DEVICES:
        if device in wanted or torch.is_autocast_enabled(device):
            stack.enter_context(torch.autocast(device, dtype=wanted.get(device), enabled=device in wanted))
    return stack
