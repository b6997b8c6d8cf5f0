"""What torch says of CUDA by private names, each with what holds where the name is gone."""

from __future__ import annotations

import torch


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
