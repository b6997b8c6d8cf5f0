"""Units of noise: how far a program's own rounding errors move its results.

The program runs a few times in its own dtypes with random last digits: what an operator gives is off by a unit in the
last place now and then, and so is what it reads, where its inside rounds too (the stochastic arithmetic of Vignes,
CESTAC, 1974).  The oracle's noise (`oracle/noise`) is finer: it follows eager in float64 and knows its operators one
by one.  The compiler cannot import it, and does not need it: here two stages of one program are compared, which follow
the same formulas, and a fault moves values by more than their last digits.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import torch
from torch import Tensor

from ..base.torch_facts import DispatchMode, OpOverload
from ..graph.facts import QUESTIONS, OpKind, op_facts
from ..graph.fx_nodes import map_leaves

FEW_REPLICAS, REPLICAS = 3, 8  # runs: enough where noise explains a difference at once, and where it does not
SHARE = 0.25  # of the elements that are moved by one unit in the last place: their root mean square is half of it


def _names(text: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in text.split())


# Results are elements of the inputs: nothing is rounded.
_MOVING = _names(
    "clone cat stack gather index index_select where masked_fill masked_select constant_pad_nd slice_scatter "
    "select_scatter scatter flip roll repeat relu clamp clamp_min clamp_max maximum minimum max min amax amin abs neg "
    "max_pool2d_with_indices sort topk kthvalue median cummax cummin embedding threshold_backward tril triu fill copy "
    "slice_backward select_backward index_put diag_embed hardtanh lift_fresh detach"
)
# Results jump where an input crosses a threshold.  What they read is exact, or carries the noise of what made it.
_JUMPING = _names("floor ceil round trunc frac floor_divide fmod remainder sign sgn heaviside nextafter")
# Correctly rounded by IEEE 754: only the result is off.
_EXACT = _names("add sub rsub mul div true_divide reciprocal sqrt square _to_copy lerp addcmul addcdiv mean sum")
# Inside, numbers as large as the inputs cancel: the result is off by a last digit of these.
_CANCELLING = _names(
    "gelu gelu_backward mish mish_backward silu_backward softplus log_sigmoid_forward log_sigmoid_backward "
    "tanh_backward sigmoid_backward hardswish hardswish_backward hardsigmoid elu celu selu logit log1p expm1"
)


class Noise(DispatchMode):
    """Moves last digits in every ATen call inside it; below autograd, so that gradients are moved too."""

    supports_higher_order_operators = True

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = random.Random(seed)
        self._table = _Steps()

    def __torch_dispatch__(
        self, func: OpOverload, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        """Run one call with noise in it."""
        kwargs = dict(kwargs or {})
        if func in QUESTIONS or not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        facts, name = op_facts(func), func._schema.name.removesuffix("_")
        if facts.kind in (OpKind.VIEW, OpKind.CREATION, OpKind.RANDOM) or name in _MOVING:
            return func(*args, **kwargs)
        rounded = any(argument.name == "rounding_mode" for argument in func._schema.arguments)
        if (rounded and kwargs.get("rounding_mode") is not None) or name in _JUMPING:
            return func(*args, **kwargs)
        plain = name in _EXACT and name not in _REDUCTIONS
        if not plain:
            written, terms = set(facts.mutates), _terms(name, facts.kind, args)
            args = tuple(value if place in written else self._moved(value, terms) for place, value in enumerate(args))
        result = func(*args, **kwargs)
        if facts.mutates:
            for place in facts.mutates:
                self._move_in_place(args[place] if place < len(args) else None)
            return result
        scale = _greatest(args) if name in _CANCELLING else None
        return map_leaves(result, lambda value: self._moved_value(value, scale))

    def _moved(self, value: object, terms: int) -> object:
        """Return what a call reads with moved digits; half types stay: inside, they are float32."""

        def moved(leaf: object) -> object:
            half = isinstance(leaf, Tensor) and leaf.element_size() < 4
            return leaf if half else self._moved_value(leaf, None, terms)

        return map_leaves(value, moved)

    def _moved_value(self, value: object, scale: Tensor | None, terms: int = 0) -> object:
        """Return a tensor with moved digits.

        scale: what the digits are of, where it is larger than the values.  terms: how many of the values are added up,
        one after the other: what comes late is added to a large sum, whose rounding neighbours have in common.
        """
        if not isinstance(value, Tensor) or not (value.is_floating_point() or value.is_complex()) or not value.numel():
            return value
        steps = self._table.steps(value, self._generator)
        if terms > 1:
            steps = steps + self._table.drift(value, self._generator) * (RUNNING * terms**0.5)
        if scale is None or scale.shape != value.shape:
            return torch.addcmul(value, value, steps)
        return torch.where(torch.isfinite(value), value + (torch.maximum(value.abs(), scale) * steps), value)

    def _move_in_place(self, value: object) -> None:
        for part in value if isinstance(value, list | tuple) else (value,):
            moved = self._moved_value(part, None)
            if isinstance(part, Tensor) and isinstance(moved, Tensor) and moved is not part:
                part.copy_(moved)


@dataclass(slots=True, eq=False)
class _Steps:
    """Relative steps of one unit in the last place, by dtype: drawn once, read from a place that is drawn each time."""

    drawn: dict[tuple[str, torch.dtype, torch.device], Tensor] = field(default_factory=dict)

    def steps(self, value: Tensor, generator: random.Random) -> Tensor:
        """Return a step for each element."""
        return self._read("steps", value, generator)

    def drift(self, value: Tensor, generator: random.Random) -> Tensor:
        """Return a number of the size of one unit for each element, that changes slowly from one to the next."""
        return self._read("drift", value, generator)

    def _read(self, kind: str, value: Tensor, generator: random.Random) -> Tensor:
        key, count = (kind, value.dtype, value.device), value.numel()
        table = self.drawn.get(key)
        if table is None or table.numel() < 2 * count:
            table = self.drawn[key] = (_draw if kind == "steps" else _draw_walk)(max(2 * count, _LEAST_TABLE), value)
        start = generator.randrange(table.numel() - count)
        return table[start : start + count].view(value.shape)


_LEAST_TABLE = 10_007
RUNNING = 0.3  # the error of a running sum of n terms is this many units times the root of n (mean of a random walk)
_MATRIX_PRODUCTS = _names(
    "mm bmm addmm baddbmm convolution convolution_backward dot mv addmv"
)  # ATen's own in all stages
_ALL_DIMENSIONS = _names("sum mean var std var_mean std_mean prod")


def _terms(name: str, kind: OpKind, args: Sequence[object]) -> int:
    """Return how many elements a call adds up for one result, 0 where it does not; a good guess is enough."""
    first = next((value for value in args if isinstance(value, Tensor) and value.is_floating_point()), None)
    if first is None or not first.dim() or name in _MATRIX_PRODUCTS or kind not in (OpKind.REDUCTION, OpKind.EXTERN):
        return 0
    if "batch_norm" in name:
        return first.numel() // max(first.shape[1], 1) if first.dim() > 1 else first.numel()
    dims = args[1] if name in _ALL_DIMENSIONS and len(args) > 1 else None
    if isinstance(dims, list | tuple) and dims and all(isinstance(dim, int) for dim in dims):
        return prod(first.shape[dim] for dim in dims)
    return first.numel() if name in _ALL_DIMENSIONS else max(first.shape)


def _draw_walk(count: int, like: Tensor) -> Tensor:
    draws = torch.randn(count, generator=torch.Generator(device="cpu").manual_seed(count), device="cpu")
    walk = draws.cumsum(0)
    return (walk / walk.square().mean().sqrt() * (torch.finfo(like.dtype).eps / 2)).to(like.dtype).to(like.device)


def _draw(count: int, like: Tensor) -> Tensor:
    draws = torch.rand(count, generator=torch.Generator(device="cpu").manual_seed(count), device="cpu")
    directions = (draws < SHARE / 2).to(torch.float32) - (draws > 1 - SHARE / 2).to(torch.float32)
    return (directions * torch.finfo(like.dtype).eps).to(like.dtype).to(like.device)


_REDUCTIONS = _names("mean sum addcmul addcdiv lerp")  # exact steps, but several of them


def _greatest(args: Sequence[object]) -> Tensor | None:
    """Return the greatest size among the tensors read, element by element."""
    sizes = [value.abs() for value in args if isinstance(value, Tensor) and value.is_floating_point()]
    result: Tensor | None = None
    for size in sizes:
        result = size if result is None else torch.maximum(result, size)
    return result
