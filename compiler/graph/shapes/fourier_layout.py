"""How a Fourier transform on the CPU lies in memory: the transformed dimensions innermost, each group in its order.

torch's shape rules know it from 2.13 on, but for operands that several dimensions do not move through.
"""

from collections.abc import Sequence
from typing import Any

import torch

from ...base.dense_order import dense_strides


def lying_as_complex(result: torch.Tensor, args: Sequence[Any]) -> torch.Tensor:
    """Follow the operand of `_fft_c2c`: each group of dimensions is ordered by its strides."""
    source, dims = args[0], args[1]
    return _lying_by(result, source.stride(), _falling(source.stride(), dims)) if dims else result


def lying_as_half(result: torch.Tensor, args: Sequence[Any]) -> torch.Tensor:
    """Follow the operand of `_fft_r2c`: the dimension that is halved, the last one named, is innermost."""
    source, dims = args[0], args[1]
    return _lying_by(result, source.stride(), [*_falling(source.stride(), dims[:-1]), dims[-1]])


def lying_as_whole(result: torch.Tensor, args: Sequence[Any]) -> torch.Tensor:
    """Follow the operand of `_fft_c2r`, which is transformed over the other dimensions first, as complex numbers."""
    source, dims = args[0], args[1]
    strides = source.stride()
    if len(dims) > 1:
        strides = dense_strides(tuple(source.shape), _order(strides, _falling(strides, dims[:-1])))
    return _lying_by(result, strides, dims[-1:])


def _lying_by(result: torch.Tensor, strides: Sequence[Any], inner: Sequence[int]) -> torch.Tensor:
    mkl = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]  # untyped in torch
    if not mkl:  # another library, which goes row by row
        return torch.empty_like(result, memory_format=torch.contiguous_format)
    laid = dense_strides(tuple(result.shape), _order(strides, inner))
    return result if laid == result.stride() else result.new_empty_strided(result.shape, laid)


def _order(strides: Sequence[Any], inner: Sequence[int]) -> list[int]:
    """Return the dimensions from the outermost on, the inner ones as they are given."""
    rank = len(strides)
    inner = [dim % rank for dim in inner]
    return [*_falling(strides, _others(rank, inner)), *inner]


def _others(rank: int, inner: Sequence[int]) -> list[int]:
    """Return the other dimensions as the kernel finds them: from the front, in place of each inner one the last."""
    dims, found = list(range(rank)), 0
    while found < len(dims):
        if dims[found] not in inner:
            found += 1
            continue
        while dims and dims[-1] in inner:
            dims.pop()
        if found < len(dims):
            dims[found] = dims.pop()
    return dims


def _falling(strides: Sequence[Any], dims: Sequence[int]) -> list[int]:
    return sorted(dims, key=lambda dim: strides[dim], reverse=True)
