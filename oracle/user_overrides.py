"""Overrides of torch's functions, the user's subclasses and modes, as seen by the user's code alone.

The judge copies, compares and describes tensors all the time.  Nothing of that may reach a `__torch_function__` that
counts, logs or answers in its own way; the program, its backward and its hooks do, as if nobody judged them.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar

from plumbline.compiler.base.torch_facts import (
    TorchFunctionState,
    torch_function_state,
    with_torch_function_state,
    without_torch_function,
)

_OUTSIDE: ContextVar[TorchFunctionState | None] = ContextVar("torch_function_outside_the_judge", default=None)


@contextmanager
def without_overrides() -> Iterator[None]:
    """Run the block unseen by overrides, but for what runs inside `with_overrides`."""
    token = _OUTSIDE.set(torch_function_state())
    try:
        with without_torch_function():
            yield
    finally:
        _OUTSIDE.reset(token)


@contextmanager
def with_overrides() -> Iterator[None]:
    """Run the block as it was outside the judge; outside of it, as it is."""
    outside = _OUTSIDE.get()
    with ExitStack() as stack:
        if outside is not None:
            stack.enter_context(with_torch_function_state(outside))
        yield
