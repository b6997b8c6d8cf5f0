"""The error of summing in a plain float32 loop: the least careful kernel that is still legitimate.

Adding equal terms one by one rounds the same way at every step, so the error of a running sum can grow with the
number of terms, not with its square root.  No formula in the sizes of the terms predicts it, so the loop is run.
"""

import math
from typing import Any

import numpy
import torch
from torch import Tensor

from .operator_facts import OperatorFacts

SUMS = frozenset({"sum", "mean", "nansum"})
# Longest chain of terms added one by one: any careful kernel splits longer sums, and one that does not is wrong.
LONGEST_CHAIN = 4096
# Terms up to which both loops run as one, beside each other: it is the steps that cost there, not the terms.
_BESIDE = 1 << 20
# A uniform draw in [-1, 1] has standard deviation 1/sqrt(3).
_UNIFORM = math.sqrt(3.0)


def running_sum_error(facts: OperatorFacts, args: Any, outputs: list[Tensor]) -> Tensor | None:
    """Return |loop - exact| for a sum or mean, shaped as its output; None for anything else.

    The larger error of the loop forwards and the loop backwards, times sqrt(3): the amplitude of uniform noise.
    """
    if facts.name not in SUMS or not isinstance(args[0], Tensor) or args[0].is_complex() or len(outputs) != 1:
        return None
    terms, out = args[0], outputs[0]
    dims = _summed(terms, args)
    count = math.prod(terms.shape[d] for d in dims)
    if count <= 2 or not terms.is_floating_point() or not out.is_floating_point():
        return None
    others = [d for d in range(terms.dim()) if d not in dims]
    rows = terms.permute(*dims, *others).reshape(count, -1).float()
    if rows.numel() <= _BESIDE:
        forwards, backwards = _loop_error(torch.cat((rows, rows.flip(0)), 1)).view(2, -1)
    else:
        forwards, backwards = _loop_error(rows), _loop_error(rows.flip(0))
    error = torch.maximum(forwards, backwards)
    divisor = count if facts.name == "mean" else 1
    return error.view(out.shape).mul_(_UNIFORM / divisor)


def _summed(terms: Tensor, args: Any) -> list[int]:
    argument = args[1] if len(args) > 1 and args[1] is not None else []
    dims = [argument] if isinstance(argument, int) else list(argument)
    return sorted(d % terms.dim() for d in dims) if dims and terms.dim() else list(range(terms.dim()))


def _loop_error(rows: Tensor) -> Tensor:
    """Return |running float32 sum - float64 sum| of the rows, [columns]; chains longer than the longest are split."""
    chains = -(-rows.shape[0] // LONGEST_CHAIN)
    length = -(-rows.shape[0] // chains)
    padded = torch.zeros(chains * length, rows.shape[1], dtype=torch.float32)
    padded[: rows.shape[0]] = rows
    steps = padded.view(chains, length, -1).transpose(0, 1).reshape(length, -1).contiguous()
    # NumPy adds rows of at least two numbers one after the other, forty times faster than a loop over tensors does.
    beside = steps if steps.shape[1] > 1 else steps.expand(-1, 2).contiguous()
    total = torch.from_numpy(numpy.add.reduce(beside.numpy(), axis=0))[: steps.shape[1]].view(chains, -1)
    return (total.to(rows.device).double().sum(0) - rows.double().sum(0)).abs()
