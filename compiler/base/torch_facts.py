"""The only importer of private torch names: one place to mend per torch release.

Each name stands with what of ours breaks if torch changes it.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode  # oracle's shadow execution observes ATen calls through it

__all__ = ["TorchDispatchMode", "backward_is_running", "functorch_is_active", "jit_is_tracing"]


def backward_is_running() -> bool:
    """Return whether the autograd engine is running a backward on this thread."""
    return torch._C._current_graph_task_id() != -1


def functorch_is_active() -> bool:
    """Return whether a functorch transform (vmap, grad, jvp, ...) surrounds this call."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def jit_is_tracing() -> bool:
    """Return whether torch.jit.trace is recording this call."""
    return torch._C._get_tracing_state() is not None
