"""Modes of torch that a failing compiler leaves switched on: reported and cleared.

Stock torch 2.13 does so: a backend that fails under a forward-mode transform leaves the dual level entered, and every
forward-mode call after it raises.
"""

from plumbline.compiler.base.torch_facts import functorch_is_active, leave_forward_mode, leave_functorch


def clear_leftovers() -> tuple[str, ...]:
    """Leave the modes and return one sentence for each; empty when there was none."""
    left = []
    if functorch_is_active():
        leave_functorch()
        left.append("leaves a functorch transform entered")
    if leave_forward_mode():
        left.append("leaves the forward-mode level entered")
    return tuple(left)
