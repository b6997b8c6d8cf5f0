"""Autocast as the thread has it: its flags, and how deep its blocks are nested."""

import torch

AutocastState = tuple[bool, torch.dtype, bool, torch.dtype, bool]


def autocast_state() -> AutocastState:
    """Return what autocast does now, on the devices that have a kernel for it here."""
    return (
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.is_autocast_enabled("cuda"),
        torch.get_autocast_dtype("cuda"),
        torch.is_autocast_cache_enabled(),
    )


def autocast_depth() -> int:
    """Return how many autocast blocks are open."""
    torch.autocast_increment_nesting()
    return torch.autocast_decrement_nesting()


def put_autocast(state: AutocastState, depth: int) -> None:
    """Set both; casts that were kept for the blocks are dropped where the last one is left."""
    cpu, cpu_dtype, cuda, cuda_dtype, cache = state
    for device, enabled, dtype in (("cpu", cpu, cpu_dtype), ("cuda", cuda, cuda_dtype)):
        torch.set_autocast_enabled(device, enabled)
        torch.set_autocast_dtype(device, dtype)
    torch.set_autocast_cache_enabled(cache)
    now = autocast_depth()
    for _ in range(now, depth):
        torch.autocast_increment_nesting()
    for _ in range(depth, now):
        torch.autocast_decrement_nesting()
    if depth == 0:
        torch.clear_autocast_cache()


def enter_autocast(state: AutocastState, blocks: int) -> None:
    """Set the state, and open so many blocks more, or fewer, than are open."""
    put_autocast(state, autocast_depth() + blocks)
