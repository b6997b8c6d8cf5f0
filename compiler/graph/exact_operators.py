"""Operators of ours where ATen's kernel is less exact than the function that a program named.

NumPy's square root is correctly rounded, as IEEE 754 asks.  ATen's goes through MKL, which is off by one unit in the
last place for about 0.8 % of float64 values, on some CPUs more.
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
