"""Random operators in a shadow run: every lane takes eager's draw, so graphs with dropout are checked exactly."""

from typing import Any

import torch
from torch import Tensor

from .monte_carlo import tensors_in

# Draws whose tensor arguments only give shapes and probabilities: the result is exactly what eager drew.
PURE = frozenset(
    "rand randn randint randint_like rand_like randn_like randperm uniform normal log_normal exponential geometric "
    "cauchy random bernoulli multinomial poisson binomial _standard_gamma _sample_dirichlet".split()
)


def substitute(name: str, args: Any, real_args: Any, lanes: list[Tensor], *, written: bool) -> list[Tensor] | None:
    """Return the outputs of a random operator in every lane, from what eager drew.

    args: the operator's arguments in the lanes ([L, *shape] each).  real_args: eager's.
    lanes: the exact upcast of eager's outputs, [L, *shape] each.  written: it fills an argument in place.
    Returns None when the operator's formula is unknown: its outputs are then untrusted.
    """
    if name == "native_dropout":
        return _dropout(args, lanes)
    if name == "normal" and not written and tensors_in(args):
        return _normal(args, real_args, lanes)
    if name == "rrelu_with_noise" and len(lanes) == 2:  # result, then the noise it drew
        return _rrelu(args, lanes[1])
    return lanes if name in PURE or not tensors_in(args) else None


def _dropout(args: Any, lanes: list[Tensor]) -> list[Tensor]:
    value, probability, training = args[0], args[1], args[2]
    mask = lanes[1]
    if training is False or probability == 0:
        return [value.clone(), mask]
    scale = 0.0 if probability == 1 else 1 / (1 - probability)
    return [value * mask * scale, mask]


def _rrelu(args: Any, noise: Tensor) -> list[Tensor]:
    """Outside training nothing is drawn, and the noise is memory that nobody has written."""
    value, given = args[0], list(args[2:5])
    lower, upper, training = given + [0.125, 1 / 3, False][len(given) :]
    slope = noise if training else (lower + upper) / 2
    return [torch.where(value <= 0, value * slope, value), noise]


def _normal(args: Any, real_args: Any, lanes: list[Tensor]) -> list[Tensor] | None:
    mean, deviation = args[0], args[1] if len(args) > 1 else 1.0
    real_mean, real_deviation = real_args[0], real_args[1] if len(args) > 1 else 1.0
    shape = lanes[0].shape

    def wide(value: Any) -> Any:
        return value.to(lanes[0].dtype) if isinstance(value, Tensor) else float(value)

    standard = (lanes[0] - wide(real_mean)) / wide(real_deviation)
    result = mean + deviation * standard
    return [result] if isinstance(result, Tensor) and result.shape == shape else None
