"""Positions in a tensor and their words: the first one in a mask, how many there are, the value at one."""

import torch
from torch import Tensor


def positions(count: int) -> str:
    """Return a number of positions in words."""
    return "1 position" if count == 1 else f"{count} positions"


def first_place(mask: Tensor) -> tuple[int, ...]:
    """Return the index of the first position where a mask is true."""
    return tuple(map(int, torch.unravel_index(mask.reshape(-1).to(torch.uint8).argmax(), mask.shape)))


def shown(value: Tensor) -> str:
    """Return a tensor of one element as text, floats with six digits."""
    number = value.item()
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def discrete_difference(actual: Tensor, eager: Tensor, at: tuple[int, ...], count: int) -> str:
    """Return the difference of two integer or boolean tensors in words; at: its first position, count: of how many."""
    more = f" (and at {positions(count - 1)} more)" if count > 1 else ""
    return f"{shown(actual[at])} at {list(at)}, eager has {shown(eager[at])}{more}"
