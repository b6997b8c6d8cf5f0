"""Python float scalars combined with low-precision tensors: whether eager rounds them first.

Some kernels cast the scalar to the tensor's dtype (fmod, comparisons), others keep it in float32 or float64
(mul, add).  There is no table of these; eager's own result decides.
"""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .lane_evaluation import LaneCall, plain
from .monte_carlo import map_tensors
from .operator_facts import OperatorFacts
from .shadow_memory import wide_dtype

_LOW = (torch.float16, torch.bfloat16)


def needs_decision(facts: OperatorFacts, args: Any, kwargs: Any, tensors: list[Tensor]) -> torch.dtype | None:
    """Return the dtype a float scalar of this call may be rounded to, None when rounding it changes nothing.

    tensors: all that are among the arguments.
    """
    scalars = [v for v in [*args, *kwargs.values()] if isinstance(v, float) and v == v and abs(v) != float("inf")]
    if not scalars:
        return None
    tensors = [t for t in tensors if t.is_floating_point()]
    sized = [t for t in tensors if t.dim()] or tensors
    if not sized:
        return None
    dtype = sized[0].dtype
    for tensor in sized[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    if dtype not in _LOW and not (dtype == torch.float32 and (facts.moving or facts.jumping)):
        return None
    return dtype if any(_rounded(s, dtype) != s for s in scalars) else None


def decide_scalars(call: LaneCall, real_args: Any, real_kwargs: Any, dtype: torch.dtype) -> LaneCall:
    """Return the call with its float scalars as eager takes them: the variant nearest to eager's result.

    real_args, real_kwargs: the call's arguments before it ran, with eager's tensors.
    """
    preferred = (
        [dtype, torch.float32, None] if call.facts.moving or call.facts.jumping else [None, torch.float32, dtype]
    )
    args = map_tensors(real_args, _upcast)
    kwargs = map_tensors(real_kwargs, _upcast)
    best: tuple[float, torch.dtype | None] | None = None
    for kind in preferred:
        results = plain(call, _with_scalars(args, kind), _with_scalars(kwargs, kind))
        distance = sum(_distance(value, real) for value, real in zip(results, call.real, strict=True))
        if best is None or distance < best[0]:
            best = (distance, kind)
        if distance == 0:
            break
    assert best is not None
    return replace(call, args=_with_scalars(call.args, best[1]), kwargs=_with_scalars(call.kwargs, best[1]))


def _rounded(value: float, dtype: torch.dtype) -> float:
    return float(torch.tensor(value, dtype=torch.float64).to(dtype))


def _with_scalars(values: Any, dtype: torch.dtype | None) -> Any:
    if dtype is None:
        return values
    if isinstance(values, dict):
        return {k: _rounded(v, dtype) if isinstance(v, float) else v for k, v in values.items()}
    return tuple(_rounded(v, dtype) if isinstance(v, float) else v for v in values)


def _upcast(value: Tensor) -> Tensor:
    return value.to(wide_dtype(value.dtype))


def _distance(value: Tensor, real: Tensor) -> float:
    """Return how far a float64 result, rounded to eager's dtype, is from eager's; equal non-finite values count 0."""
    rounded = value.to(real.dtype)
    differs = (rounded != real) & ~((rounded != rounded) & (real != real))
    if not real.is_floating_point():
        return float(differs.sum())
    gap = (rounded.double() - real.double()).abs()
    return float(torch.where(differs, gap.nan_to_num(nan=1e300, posinf=1e300), torch.zeros_like(gap)).sum())
