"""What a shadow run knows about one tensor: its value in every lane of arithmetic."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Lanes:
    """The values one tensor takes in the lanes of a shadow run, detached, in the tensor's own shape.

    Floating values are float64 (complex128), integers and booleans keep their dtype.
    exact: float64 evaluation of the program on the same inputs; None when it was not run.
    replicas: [S, *shape], the same with Monte-Carlo-arithmetic noise in every rounding operator.
    rounded: [F, *shape], every operator's result rounded to its declared dtype.
    wide: [F, *shape], replicas with `monte_carlo.WIDE` times the noise; run together with `rounded`.
    known: False when the run never touched the tensor; then every lane is the tensor itself.
    """

    exact: Tensor | None = None
    replicas: Tensor | None = None
    rounded: Tensor | None = None
    wide: Tensor | None = None
    known: bool = True

    def beside(self, other: "Lanes") -> "Lanes":
        """Return these with the lanes of another run behind them; of the exact one there is one."""
        return Lanes(
            self.exact if self.exact is not None else other.exact,
            _behind(self.replicas, other.replicas),
            _behind(self.rounded, other.rounded),
            _behind(self.wide, other.wide),
            self.known or other.known,
        )


def _behind(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    parts = [part for part in (first, second) if part is not None]
    return torch.cat(parts) if len(parts) == 2 else parts[0] if parts else None
