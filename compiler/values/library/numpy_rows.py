"""What torch expression is equal to a NumPy function, and for which dtypes: the tables that traced NumPy rests on.

Every row is held against NumPy by tests/programs/test_numpy_rows.py, over dtypes and special values. What has no row
stays with NumPy. Dtypes are NumPy's own choice (`numpy_operations`), never torch's; operands come in those.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from ...graph.exact_operators import EXACT_SQRT

BOOL, WHOLE, FLOAT = "b", "iu", "f"  # kinds of NumPy's dtypes


@dataclass(frozen=True, slots=True)
class ElementRow:
    """A function of elements.

    run: on tensors of the dtypes that NumPy computes in.  kinds: of these dtypes.  units: how far a result may be from
    NumPy's, in units in the last place.  warns: NumPy may warn of the result.  divides: by its second operand.
    tensors: takes no numbers.
    """

    run: Callable[..., Any]
    kinds: str
    units: int = 0
    warns: bool = False
    divides: bool = False
    tensors: bool = False


@dataclass(frozen=True, slots=True)
class FoldRow:
    """A function that folds axes; sums: in another order than NumPy's, so rounding may differ."""

    run: Callable[..., Any]
    kinds: str
    sums: bool = False
    warns: bool = False
    one_axis: bool = False
    keeps_shape: bool = False


def _sign(x: torch.Tensor) -> torch.Tensor:
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.dtype.is_floating_point else torch.sign(x)


def _sqrt(x: torch.Tensor) -> Any:
    return torch.sqrt(x) if x.requires_grad else EXACT_SQRT(x)  # which has no derivative


def _safe(divisor: torch.Tensor) -> torch.Tensor:
    """Return a divisor without 0 and -1, for which kernels fail or overflow."""
    unsafe = (divisor == 0) | (divisor == -1) if divisor.dtype != torch.uint8 else divisor == 0
    return torch.where(unsafe, torch.ones_like(divisor), divisor)


def _floor_divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    found = torch.div(x, _safe(y), rounding_mode="floor")
    return found if y.dtype == torch.uint8 else torch.where(y == -1, -x, found)


def _remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    found = torch.remainder(x, _safe(y))
    return found if y.dtype == torch.uint8 else torch.where(y == -1, torch.zeros_like(found), found)


def _nonzero(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.bool else x != 0


def _logical(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    return lambda *operands: function(*map(_nonzero, operands))


def _signbit(x: torch.Tensor) -> torch.Tensor:
    return torch.signbit(x)


_N = numpy
ELEMENTS: Mapping[object, ElementRow] = {
    _N.add: ElementRow(torch.add, BOOL + WHOLE + FLOAT, warns=True),
    _N.subtract: ElementRow(torch.sub, WHOLE + FLOAT, warns=True),
    _N.multiply: ElementRow(torch.mul, BOOL + WHOLE + FLOAT, warns=True),
    _N.divide: ElementRow(torch.div, FLOAT, warns=True),
    _N.floor_divide: ElementRow(_floor_divide, WHOLE, divides=True),
    _N.remainder: ElementRow(_remainder, WHOLE, divides=True),
    _N.power: ElementRow(torch.pow, FLOAT, units=1, warns=True),
    _N.negative: ElementRow(torch.neg, WHOLE + FLOAT),
    _N.positive: ElementRow(torch.clone, WHOLE + FLOAT),
    _N.absolute: ElementRow(torch.abs, WHOLE + FLOAT),
    _N.fabs: ElementRow(torch.abs, FLOAT),
    _N.square: ElementRow(torch.square, WHOLE + FLOAT, warns=True),
    _N.sqrt: ElementRow(_sqrt, FLOAT, warns=True),
    _N.reciprocal: ElementRow(torch.reciprocal, FLOAT, warns=True),
    _N.sign: ElementRow(_sign, WHOLE + FLOAT),
    _N.floor: ElementRow(torch.floor, FLOAT),
    _N.ceil: ElementRow(torch.ceil, FLOAT),
    _N.trunc: ElementRow(torch.trunc, FLOAT),
    _N.rint: ElementRow(torch.round, FLOAT),
    _N.isnan: ElementRow(torch.isnan, BOOL + WHOLE + FLOAT),
    _N.isinf: ElementRow(torch.isinf, BOOL + WHOLE + FLOAT),
    _N.isfinite: ElementRow(torch.isfinite, BOOL + WHOLE + FLOAT),
    _N.signbit: ElementRow(_signbit, FLOAT),
    _N.copysign: ElementRow(torch.copysign, FLOAT, tensors=True),
    _N.maximum: ElementRow(torch.maximum, BOOL + WHOLE + FLOAT, tensors=True),
    _N.minimum: ElementRow(torch.minimum, BOOL + WHOLE + FLOAT, tensors=True),
    _N.equal: ElementRow(torch.eq, BOOL + WHOLE + FLOAT),
    _N.not_equal: ElementRow(torch.ne, BOOL + WHOLE + FLOAT),
    _N.less: ElementRow(torch.lt, BOOL + WHOLE + FLOAT),
    _N.less_equal: ElementRow(torch.le, BOOL + WHOLE + FLOAT),
    _N.greater: ElementRow(torch.gt, BOOL + WHOLE + FLOAT),
    _N.greater_equal: ElementRow(torch.ge, BOOL + WHOLE + FLOAT),
    _N.logical_and: ElementRow(_logical(torch.logical_and), BOOL + WHOLE + FLOAT, tensors=True),
    _N.logical_or: ElementRow(_logical(torch.logical_or), BOOL + WHOLE + FLOAT, tensors=True),
    _N.logical_xor: ElementRow(_logical(torch.logical_xor), BOOL + WHOLE + FLOAT, tensors=True),
    _N.logical_not: ElementRow(_logical(torch.logical_not), BOOL + WHOLE + FLOAT),
    _N.bitwise_and: ElementRow(torch.bitwise_and, BOOL + WHOLE, tensors=True),
    _N.bitwise_or: ElementRow(torch.bitwise_or, BOOL + WHOLE),
    _N.bitwise_xor: ElementRow(torch.bitwise_xor, BOOL + WHOLE),
    _N.invert: ElementRow(torch.bitwise_not, BOOL + WHOLE),
    _N.deg2rad: ElementRow(torch.deg2rad, FLOAT, units=1),
    _N.radians: ElementRow(torch.deg2rad, FLOAT, units=1),
    _N.rad2deg: ElementRow(torch.rad2deg, FLOAT, units=2, warns=True),
    _N.degrees: ElementRow(torch.rad2deg, FLOAT, units=2, warns=True),
    _N.exp: ElementRow(torch.exp, FLOAT, units=2, warns=True),
    _N.exp2: ElementRow(torch.exp2, FLOAT, units=2, warns=True),
    _N.expm1: ElementRow(torch.expm1, FLOAT, units=2, warns=True),
    _N.log: ElementRow(torch.log, FLOAT, units=2, warns=True),
    _N.log2: ElementRow(torch.log2, FLOAT, units=2, warns=True),
    _N.log10: ElementRow(torch.log10, FLOAT, units=3, warns=True),
    _N.log1p: ElementRow(torch.log1p, FLOAT, units=2, warns=True),
    _N.sin: ElementRow(torch.sin, FLOAT, units=2, warns=True),
    _N.cos: ElementRow(torch.cos, FLOAT, units=2, warns=True),
    _N.tan: ElementRow(torch.tan, FLOAT, units=3, warns=True),
    _N.arcsin: ElementRow(torch.asin, FLOAT, units=2, warns=True),
    _N.arccos: ElementRow(torch.acos, FLOAT, units=2, warns=True),
    _N.arctan: ElementRow(torch.atan, FLOAT, units=2),
    _N.arctan2: ElementRow(torch.atan2, FLOAT, units=3, tensors=True),
    _N.tanh: ElementRow(torch.tanh, FLOAT, units=2),
    _N.hypot: ElementRow(torch.hypot, FLOAT, units=1, warns=True, tensors=True),
}

KEEPING = frozenset({_N.add, _N.subtract, _N.multiply, _N.square, _N.sqrt})
"""Whose result is not finite where an operand is not."""


def _cast_sum(x: torch.Tensor, axes: Any, keepdims: bool) -> torch.Tensor:
    return x.sum(axes, keepdim=keepdims) if x.dim() else x.clone()


def _prod(x: torch.Tensor, axes: Any, keepdims: bool) -> torch.Tensor:
    for axis in sorted((number % x.dim() for number in axes), reverse=True):
        x = x.prod(axis, keepdim=keepdims)
    return x


def _variance(x: torch.Tensor, axes: Any, keepdims: bool, ddof: float = 0) -> torch.Tensor:
    apart = torch.square(x - x.mean(axes, keepdim=True)).sum(axes, keepdim=keepdims)
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return apart / (count - ddof)


def _deviation(x: torch.Tensor, axes: Any, keepdims: bool, ddof: float = 0) -> Any:
    return _sqrt(_variance(x, axes, keepdims, ddof))


def _spread(x: torch.Tensor, axes: Any, keepdims: bool) -> torch.Tensor:
    return x.amax(axes, keepdim=keepdims) - x.amin(axes, keepdim=keepdims)


def _count(x: torch.Tensor, axes: Any, keepdims: bool) -> torch.Tensor:
    return (x != 0).sum(axes, keepdim=keepdims)


FOLDS: Mapping[object, FoldRow] = {
    _N.sum: FoldRow(_cast_sum, BOOL + WHOLE + FLOAT, sums=True, warns=True),
    _N.mean: FoldRow(lambda x, axes, keep: x.mean(axes, keepdim=keep), FLOAT, sums=True, warns=True),
    _N.prod: FoldRow(_prod, BOOL + WHOLE + FLOAT, sums=True, warns=True),
    _N.var: FoldRow(_variance, FLOAT, sums=True, warns=True),
    _N.std: FoldRow(_deviation, FLOAT, sums=True, warns=True),
    _N.max: FoldRow(lambda x, axes, keep: x.amax(axes, keepdim=keep), BOOL + WHOLE + FLOAT),
    _N.min: FoldRow(lambda x, axes, keep: x.amin(axes, keepdim=keep), BOOL + WHOLE + FLOAT),
    _N.ptp: FoldRow(_spread, WHOLE + FLOAT, warns=True),
    _N.any: FoldRow(lambda x, axes, keep: _nonzero(x).any(axes, keepdim=keep), BOOL + WHOLE + FLOAT),
    _N.all: FoldRow(lambda x, axes, keep: _nonzero(x).all(axes, keepdim=keep), BOOL + WHOLE + FLOAT),
    _N.count_nonzero: FoldRow(_count, BOOL + WHOLE + FLOAT),
    _N.argmax: FoldRow(lambda x, axis, keep: x.argmax(axis, keepdim=keep), WHOLE + FLOAT, one_axis=True),
    _N.argmin: FoldRow(lambda x, axis, keep: x.argmin(axis, keepdim=keep), WHOLE + FLOAT, one_axis=True),
    _N.cumsum: FoldRow(
        lambda x, axis, _: x.cumsum(axis), BOOL + WHOLE + FLOAT, True, warns=True, one_axis=True, keeps_shape=True
    ),
    _N.cumprod: FoldRow(
        lambda x, axis, _: x.cumprod(axis), BOOL + WHOLE + FLOAT, True, warns=True, one_axis=True, keeps_shape=True
    ),
}
for _name, _of in (("amax", "max"), ("amin", "min")):
    FOLDS[getattr(numpy, _name)] = FOLDS[getattr(numpy, _of)]  # type: ignore[index]  # filled here, read-only elsewhere

METHODS: Mapping[str, object] = {
    name: getattr(numpy, name) for name in "sum mean prod var std max min any all argmax argmin cumsum cumprod".split()
}
