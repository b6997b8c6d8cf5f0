"""Which results of loops C and Triton may round in other places."""

import torch

from plumbline.compiler.loops.ir import Loop, LoopProgram
from plumbline.compiler.loops.scalar_ops import SCALAR_OPS


def rounded(program: LoopProgram) -> set[str]:
    """Return the tensors behind a function of libm or behind a sum: C and Triton round them in other places."""
    found: set[str] = set()
    for step in program.steps:
        if step.reads & found or (isinstance(step, Loop) and any(map(_rounds, step.scalars()))):
            found |= step.writes
    return found


def _rounds(scalar: object) -> bool:
    name, dtype = getattr(scalar, "name", ""), getattr(scalar, "dtype", torch.bool)
    if not dtype.is_floating_point:
        return False
    is_sum = name in ("reduce", "scan") and getattr(scalar, "kind", "") in ("sum", "prod", "logsumexp")
    return is_sum or (name in SCALAR_OPS and SCALAR_OPS[name].costly)
