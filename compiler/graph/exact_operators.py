"""Operators of ours where what ATen does is less exact than the function that a program named.

NumPy's square root is correctly rounded, as IEEE 754 asks.  ATen's goes through MKL, which is off by one unit in the
last place for about 0.8 % of float64 values, on some CPUs more.  `one_hot` leaves its checks of the class values out
where it is traced.
"""

import numpy
import torch

from ..base.own_operators import define, implement, implement_batched
from ..base.torch_facts import OpOverload


def _sqrt(x: torch.Tensor) -> torch.Tensor:
    with numpy.errstate(all="ignore"):
        return torch.from_numpy(numpy.asarray(numpy.sqrt(x.detach().numpy())))


def _like(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


define("exact_sqrt(Tensor self) -> Tensor", tags=(torch.Tag.pointwise,))
implement("exact_sqrt", _sqrt, "CPU")
implement("exact_sqrt", _like, "Meta")
EXACT_SQRT: OpOverload = torch.ops.plumbline.exact_sqrt.default


def _one_hot(x: torch.Tensor, num_classes: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(x, num_classes)


def _rows_like(x: torch.Tensor, num_classes: int) -> torch.Tensor:
    return x.new_empty((*x.shape, num_classes))


define("one_hot(Tensor self, SymInt num_classes) -> Tensor")
implement("one_hot", _one_hot, "CPU")
implement("one_hot", _rows_like, "Meta")
ONE_HOT: OpOverload = torch.ops.plumbline.one_hot.default


def _one_hot_of_a_batch(info: object, dims: tuple[int, None], x: torch.Tensor, num_classes: int) -> tuple[object, int]:
    return ONE_HOT(x.movedim(dims[0], 0), num_classes), 0


implement_batched(ONE_HOT, _one_hot_of_a_batch)
