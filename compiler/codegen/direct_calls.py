"""ATen operators by their functions in torch's own Python module, which cost half of what calling an overload costs.

Both reach the dispatcher with the same operator and the same arguments; only how Python values are read differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from ..base.torch_facts import OpOverload

aten = torch.ops.aten
_DIRECT: Mapping[OpOverload, Callable[..., object]] = {
    aten.addmm.default: torch.addmm,
    aten.as_strided.default: torch.as_strided,
    aten.baddbmm.default: torch.baddbmm,
    aten.bmm.default: torch.bmm,
    aten.convolution.default: torch.convolution,
    aten.expand.default: torch.Tensor.expand,
    aten.mm.default: torch.mm,
    aten.permute.default: torch.permute,
    aten.select.int: torch.select,
    aten.squeeze.dim: torch.squeeze,
    aten.t.default: torch.t,
    aten.transpose.int: torch.transpose,
    aten.unsqueeze.default: torch.unsqueeze,
    aten.view.default: torch.Tensor.view,
}


def direct_call(value: object) -> object:
    """Return what calls an operator: a function of torch's where there is one that is only that, else itself.

    value: anything that a host function names; what is no operator is returned as it is.
    """
    return _DIRECT.get(value, value) if isinstance(value, OpOverload) else value
