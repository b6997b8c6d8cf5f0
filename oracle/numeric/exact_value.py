"""The float64 value of a tensor of eager's, kept in as little memory as it needs."""

import math
from dataclasses import dataclass

from torch import Tensor, bfloat16, empty_like, float32, split
from torch.linalg import vector_norm

from ..noise.monte_carlo import unit_roundoff
from .bits import as_reals

SHORTENED = 1 << 16
"""Elements from which a float64 value is kept as its distance from eager's."""
_BLOCKS = 64
"""Parts in which that is computed."""
_UNITS = 32
"""Roundings of eager's that its error is as large as, at most, where 8 bits of it say the value to a tenth of one."""


@dataclass(frozen=True, slots=True, eq=False)
class ExactValue:
    """A float64 value.  number: the value, or its distance from eager's, which is small and needs few bits."""

    number: Tensor
    distance: bool = False

    @classmethod
    def beside(cls, eager: Tensor, value: Tensor) -> "ExactValue":
        """Keep the float64 value of a tensor of eager's; a distance loses 2**-9 or 2**-24 of itself."""
        if value.numel() >= SHORTENED and eager.is_floating_point() and 1 < eager.itemsize <= 4:
            distance = empty_like(eager, dtype=float32)
            rows = max(1, eager.shape[0] // _BLOCKS)
            parts = (split(each.detach(), rows) for each in (distance, value, eager))
            for block, widened, real in zip(*parts, strict=True):
                block.copy_(widened - real)
            error, level = float(vector_norm(distance)), float(vector_norm(eager.detach(), dtype=float32))
            if error <= _UNITS * unit_roundoff(eager.dtype) * level < math.inf:
                return cls(distance.to(bfloat16), True)
            if bool(distance.isfinite().all()):
                return cls(distance, True)
        return cls(value)

    def value(self, eager: Tensor) -> Tensor:
        """Return the float64 value; eager: the same as before, bit by bit."""
        return eager.detach().double().add_(self.number) if self.distance else self.number

    def matrix(self, columns: int) -> "ExactValue":
        """Return it as rows of this many reals."""
        return ExactValue(as_reals(self.number).reshape(-1, columns), self.distance)

    def rows(self, chosen: "Tensor | slice", eager: Tensor) -> Tensor:
        """Return the float64 value of some rows of a matrix; eager: these rows of eager's, in float64."""
        return eager + self.number[chosen] if self.distance else self.number[chosen]
