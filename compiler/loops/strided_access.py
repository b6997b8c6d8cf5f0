"""An access of a loop as a view of its tensor: where the index is a plain sum of variables, nothing is looked up.

The interpreter uses it instead of gathering element by element, which needs an index tensor per dimension.
"""

from collections.abc import Sequence

import torch

from ..symbolic.expr import Expr, Symbol
from ..symbolic.symbolic_sizes import fixed


def strided_view(tensor: torch.Tensor, index: Sequence[Expr], variables: Sequence[Symbol]) -> torch.Tensor | None:
    """Return the elements at an index for all values of the variables, one dimension each.

    A variable that the index does not mention gives a dimension of size 1.  None where the index is no plain sum of
    variables, or may leave the tensor: then each element has to be looked at.
    """
    sizes, strides = [1] * len(variables), [0] * len(variables)
    offset = int(tensor.storage_offset())
    for part, length, step in zip(index, tensor.shape, tensor.stride(), strict=True):
        first = last = fixed(part.constant)
        for atom, factor in part.terms:
            if not isinstance(atom, Symbol) or atom not in variables or fixed(factor) < 0:
                return None
            place, size = variables.index(atom), fixed(atom.size)
            sizes[place] = size
            strides[place] += fixed(factor) * step
            last += fixed(factor) * (size - 1)
        if first < 0 or last >= length:
            return None
        offset += first * step
    return None if 0 in sizes else tensor.as_strided(sizes, strides, offset)
