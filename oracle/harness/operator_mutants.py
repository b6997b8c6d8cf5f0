"""Faults of our own compiler's operators: the lowering of one takes the place of another's, under backend inductor."""

from typing import Any

import torch

from plumbline.compiler.base.torch_facts import OpOverload
from plumbline.compiler.lowering import lower as _every_lowering  # noqa: F401  registers them all
from plumbline.compiler.lowering.registry import Lowering, lowering_of, replace_lowering

from .mutants import CompilerFault, MutantCall

aten = torch.ops.aten
_PAIRS = (
    (aten.add.Tensor, aten.sub.Tensor),
    (aten.sub.Tensor, aten.add.Tensor),
    (aten.mul.Tensor, aten.div.Tensor),
    (aten.div.Tensor, aten.mul.Tensor),
    (aten.maximum.default, aten.minimum.default),
    (aten.minimum.default, aten.maximum.default),
    (aten.amax.default, aten.amin.default),
    (aten.gt.Scalar, aten.ge.Scalar),
    (aten.lt.Scalar, aten.le.Scalar),
    (aten.exp.default, aten.expm1.default),
    (aten.log.default, aten.log1p.default),
    (aten.sqrt.default, aten.abs.default),
    (aten.rsqrt.default, aten.reciprocal.default),
    (aten.tanh.default, aten.sin.default),
    (aten.sigmoid.default, aten.tanh.default),
    (aten.relu.default, aten.abs.default),
    (aten.erf.default, aten.tanh.default),
    (aten.sin.default, aten.cos.default),
    (aten.cos.default, aten.sin.default),
)
"""An operator, and one of the same arguments that is lowered in its place."""


def operator_faults() -> dict[str, CompilerFault]:
    """Return a fault for each pair, named `tanh-as-sin`."""
    faults = (_as_other(operator, other, lowering_of(other)) for operator, other in _PAIRS)
    return {fault.name: fault for fault in faults}


def _as_other(operator: OpOverload, other: OpOverload, wrong: Lowering | None) -> CompilerFault:
    assert wrong is not None, other
    name, other_name = (str(each).removeprefix("aten.").split(".")[0] for each in (operator, other))

    def play(call: MutantCall) -> Any:
        def lowered(node: Any) -> Any:
            call.memory["effect"] = True
            return wrong(node)

        with replace_lowering(operator, lowered):
            try:
                return call.as_asked()
            finally:
                call.took_effect = "effect" in call.memory

    return CompilerFault(f"{name}-as-{other_name}", f"computes {other_name} where it is to compute {name}", play)
