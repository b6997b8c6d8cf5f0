"""What torch says of CUDA by private names, each with what holds where the name is gone."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch


def made_current(device: torch.device) -> AbstractContextManager[object]:
    """Return what makes a GPU the current one for a block; nothing where it is, or where the device is none.

    Code is loaded into the context of the device that is current, and launched in it.
    """
    if device.type != "cuda" or torch.cuda.current_device() == device.index:
        return nullcontext()
    return torch.cuda.device(device)


def current_cuda_stream(device: torch.device) -> int:
    """Return the address of a CUDA device's current stream, by the private call where it is: a tenth of the cost."""
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None and device.index is not None:
        return int(raw(device.index))
    return int(torch.cuda.current_stream(device).cuda_stream)


def forget_library_workspaces() -> None:
    """Let cuBLAS take new memory for its work at its next call.

    It keeps what it took once, for each stream.  What it takes while a CUDA graph is recorded is of that graph's pool,
    and gone with the graph; a later recording that was made with it would then write to somebody else's memory.
    """
    forget = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if forget is not None:
        forget()
