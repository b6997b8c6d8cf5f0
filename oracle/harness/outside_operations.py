"""How many tensor operations of a test ran outside every boundary: the part of it that no compiler has seen."""

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode

from plumbline.compiler.base.torch_facts import without_function_mode

# They give a tensor and compute nothing.
_BOOKKEEPING = frozenset({"__get__", "__set__", "detach", "requires_grad_", "retain_grad", "register_hook", "backward"})


class OutsideOperations(TorchFunctionMode):
    """Counts, while entered, the calls of torch that compute a tensor from tensors; `paused` inside boundaries.

    A call that torch makes inside another one is not counted again, nor what torch's own assertions compute.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __enter__(self) -> Self:
        """Start counting."""
        super().__enter__()  # type: ignore[no-untyped-call]  # untyped in torch
        return self

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run one call, and count it."""
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in _BOOKKEEPING or not (_has_tensor(result) and _has_tensor(args)):
            return result
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))
        if not caller.startswith("torch.testing"):
            self.count += 1
        return result

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Return a block in which this mode is not there at all: compilers look at the modes that are."""
        return without_function_mode(self)


def _has_tensor(value: object) -> bool:
    if type(value) in (tuple, list):  # what torch itself makes and takes; classes of the user's may do anything
        return any(isinstance(item, torch.Tensor) for item in value)  # type: ignore[attr-defined]  # checked above
    return isinstance(value, torch.Tensor)
