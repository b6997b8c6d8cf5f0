"""Operators of ours where what ATen does is less exact than the function that a program named.

NumPy's square root is correctly rounded, as IEEE 754 asks.  ATen's goes through MKL, which is off by one unit in the
last place for about 0.8 % of float64 values, on some CPUs more.  `one_hot` leaves its checks of the class values out
where it is traced.
"""

import numpy
import torch

from ..base.torch_facts import OpOverload

_LIBRARY = torch.library.Library("plumbline", "FRAGMENT")  # type: ignore[no-untyped-call]  # untyped in torch


def _sqrt(x: torch.Tensor) -> torch.Tensor:
    with numpy.errstate(all="ignore"):
        return torch.from_numpy(numpy.asarray(numpy.sqrt(x.detach().numpy())))


def _like(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


_LIBRARY.define("exact_sqrt(Tensor self) -> Tensor", tags=(torch.Tag.pointwise,))  # type: ignore[no-untyped-call]  # as above
_LIBRARY.impl("exact_sqrt", _sqrt, "CPU")  # type: ignore[no-untyped-call]  # as above
_LIBRARY.impl("exact_sqrt", _like, "Meta")  # type: ignore[no-untyped-call]  # as above
EXACT_SQRT: OpOverload = torch.ops.plumbline.exact_sqrt.default


def _one_hot(x: torch.Tensor, num_classes: int) -> torch.Tensor:
    return torch.nn.functional.one_hot(x, num_classes)


def _rows_like(x: torch.Tensor, num_classes: int) -> torch.Tensor:
    return x.new_empty((*x.shape, num_classes))


_LIBRARY.define("one_hot(Tensor self, SymInt num_classes) -> Tensor")  # type: ignore[no-untyped-call]  # as above
_LIBRARY.impl("one_hot", _one_hot, "CPU")  # type: ignore[no-untyped-call]  # as above
_LIBRARY.impl("one_hot", _rows_like, "Meta")  # type: ignore[no-untyped-call]  # as above
ONE_HOT: OpOverload = torch.ops.plumbline.one_hot.default


def _one_hot_of_a_batch(info: object, dims: tuple[int, None], x: torch.Tensor, num_classes: int) -> tuple[object, int]:
    return ONE_HOT(x.movedim(dims[0], 0), num_classes), 0


torch.library.register_vmap(ONE_HOT, _one_hot_of_a_batch, lib=_LIBRARY)
