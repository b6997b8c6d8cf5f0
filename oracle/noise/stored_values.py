"""What a kernel keeps in the dtype of its operands between its steps, where noisy lanes write it out in smaller ones.

The steps of such a kernel compute in float32; a value that they store for a matrix product of half precision is rounded
to that.  Lanes are wide throughout, so what is written out says where: `stored(weights)`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_rounding: ContextVar[Callable[[Tensor], Tensor] | None] = ContextVar("rounding", default=None)


def stored(value: Tensor) -> Tensor:
    """Return a value as the kernel keeps it: with the noise of its storage, if lanes are being made."""
    rounding = _rounding.get()
    return value if rounding is None else rounding(value)


@contextmanager
def storing(rounding: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let what is stored inside be rounded so."""
    token = _rounding.set(rounding)
    try:
        yield
    finally:
        _rounding.reset(token)
