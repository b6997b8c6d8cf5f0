"""kernel_refuses: whether eager's kernel raises for the dtypes of a call, where the shape rule of torch does not.

Such a call fails at its first run or never, so only one that nobody reads has to be asked about, before it is dropped.
"""

from math import prod

import torch

from ...base.torch_facts import OpOverload, without_dispatch_modes
from ..dynamic_sizes import is_symbolic
from ..fx_nodes import map_leaves

_ALWAYS_THERE = frozenset({torch.float32, torch.float64})
_MOST_ELEMENTS = 10_000
_ANY_SIZE = 2  # for a symbolic one


def kernel_refuses(operator: OpOverload, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Return whether the kernel raises on ones of the arguments' dtypes. args, kwargs: with fake tensors.

    Large tensors, other devices, and elements of float32 alone or float64 alone are not tried: False.
    """
    tensors: list[torch.Tensor] = []

    def note(value: object) -> None:
        if isinstance(value, torch.Tensor):
            tensors.append(value)

    map_leaves((args, kwargs), note)
    dtypes = {tensor.dtype for tensor in tensors if tensor.device.type == "cpu"}  # a product takes no two of them
    if (
        len(dtypes) < 2 and dtypes <= _ALWAYS_THERE and not any(0 in _sizes(tensor) for tensor in tensors)
    ):  # no element: `min` refuses that
        return False
    if any(prod(_sizes(tensor)) > _MOST_ELEMENTS for tensor in tensors):
        return False
    with without_dispatch_modes(), torch.no_grad():
        positional, named = map_leaves((args, kwargs), _stand_in)
        try:
            operator(*positional, **named)
        except (RuntimeError, TypeError, ValueError, LookupError):
            return True
    return False


def _stand_in(value: object) -> object:
    if isinstance(value, torch.Tensor):
        return torch.ones(_sizes(value), dtype=value.dtype, device="cpu")
    return _ANY_SIZE if is_symbolic(value) else value


def _sizes(tensor: torch.Tensor) -> list[int]:
    return [_ANY_SIZE if is_symbolic(size) else int(size) for size in tensor.shape]
