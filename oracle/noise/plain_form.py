"""The form in which tensors are compared: what is sparse with all its elements, what is quantised as it is read."""

import torch
from torch import Tensor


def plain_form(value: Tensor) -> Tensor:
    """Return the numbers of a tensor as a strided tensor without history; not a copy where it is one already."""
    plain = value.detach()
    if plain.layout != torch.strided:
        plain = plain.to_dense()
    return plain.dequantize() if plain.is_quantized else plain
