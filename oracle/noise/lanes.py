"""What a shadow run knows about one tensor: its value in every lane of arithmetic."""

from dataclasses import dataclass

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
