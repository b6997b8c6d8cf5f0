"""Modes of torch that a failing compiler leaves switched on, found and cleared, so that one fault stays one fault.

Stock torch 2.13 does so: a backend that fails under a forward-mode transform leaves the dual level entered, and every
forward-mode call after it raises.
"""

import torch

from plumbline.compiler.base.torch_facts import functorch_is_active, leave_functorch


def clear_leftovers() -> tuple[str, ...]:
    """Return what was left behind in words, after setting it right; empty in the good case."""
    left = []
    if functorch_is_active():
        leave_functorch()
        left.append("leaves a functorch transform entered")
    try:
        with torch.autograd.forward_ad.dual_level():
            pass
    except RuntimeError:
        torch.autograd.forward_ad.exit_dual_level(level=0)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        left.append("leaves the forward-mode level entered")
    return tuple(left)
