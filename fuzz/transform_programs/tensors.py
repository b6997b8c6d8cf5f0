"""Input tensors as plain data: shape, dtype, layout and values, and the expression that makes them."""

import random
from dataclasses import dataclass

import torch

from ..tensor_text import drawn_floats, drawn_from, laid_out

SIZES = (1, 2, 3, 0, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129)
"""Sizes around the widths of vectors and tiles."""

FLOATS = ("float32", "float64", "bfloat16", "float16")
INTEGERS = ("int64", "int32", "uint8", "int8", "int16")
DTYPES = (*FLOATS, "int64", "bool", *INTEGERS[1:])
LAYOUTS = ("contiguous", "transposed", "every_second", "offset", "expanded")
VALUES = ("normal", "ties", "positive", "zeros", "constant", "wide", "special")
MOST_ELEMENTS = 2048

_SPECIAL = ("0.0", "-0.0", "1.0", "-1.0", "0.5", "float('inf')", "-float('inf')", "float('nan')", "1e-40", "3e38")


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One input tensor as data.

    dtype: torch's name without `torch.`.  layout: one of LAYOUTS.  values: one of VALUES (floats only).
    seed: of the generator that draws the elements.  shares: number of an earlier argument of the same form whose memory
    this one has, -1 for its own.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    layout: str = "contiguous"
    values: str = "normal"
    seed: int = 0
    requires_grad: bool = False
    shares: int = -1

    @property
    def is_float(self) -> bool:
        """Return whether gradients can flow through it."""
        return self.dtype in FLOATS

    def expression(self) -> str:
        """Return the tensor as a Python expression that needs `torch` only."""
        text = laid_out(self.layout, self.shape, self._elements)
        return f"{text}.requires_grad_()" if self.requires_grad and self.is_float else text

    def build(self) -> torch.Tensor:
        """Return a new tensor, the same elements every time."""
        tensor: torch.Tensor = eval(self.expression(), {"torch": torch})
        return tensor

    def on_meta(self) -> torch.Tensor:
        """Return a tensor of this shape and dtype without elements, for shape inference."""
        return torch.empty(self.shape, dtype=getattr(torch, self.dtype), device="meta")

    def _elements(self, shape: tuple[int, ...]) -> str:
        drawn, dtype = drawn_from(self.seed), f"torch.{self.dtype}"
        if self.dtype == "bool":
            return f"torch.randint(0, 2, {shape}, {drawn}).bool()"
        if not self.is_float:
            low = 0 if self.dtype == "uint8" else -3
            return f"torch.randint({low}, 4, {shape}, {drawn}).to({dtype})"
        text = drawn_floats(self.values, shape, drawn, _SPECIAL)
        return text + ("" if self.dtype == "float32" else f".to({dtype})")


def tensor_specs(
    draw: random.Random, shape: tuple[int, ...], dtypes: tuple[str, ...] = DTYPES, *, plain_values: bool = False
) -> TensorSpec:
    """Draw a tensor of a shape; plain_values: no NaN, infinities or huge ranges (for tangents and cotangents)."""
    values = VALUES[:5] if plain_values else VALUES
    return TensorSpec(
        shape,
        draw.choice(dtypes),
        draw.choice(LAYOUTS),
        draw.choice(values),
        draw.randint(0, 9),
    )


def shapes(draw: random.Random, sizes: tuple[int, ...], most_dims: int = 3) -> tuple[int, ...]:
    """Draw a shape of sizes that the program shares, or 1, so that operands broadcast and multiply."""
    dims = min(draw.choice((0, 1, 2, 3, 1, 2, 2)), most_dims)
    shape: list[int] = []
    elements = 1
    for _ in range(dims):
        size = draw.choice((*sizes, 1))
        if elements * size > MOST_ELEMENTS:
            size = 1
        elements *= max(size, 1)
        shape.append(size)
    return tuple(shape)
