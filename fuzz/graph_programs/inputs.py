"""Tensors and numbers that a graph program is called with, as plain data and as the expressions that make them."""

from dataclasses import dataclass

import torch

from ..tensor_text import drawn_floats, drawn_from, laid_out

FLOAT_DTYPES = ("float32", "float64", "float16", "bfloat16")
INT_DTYPES = ("int64", "int32", "uint8", "int8", "int16")
DTYPES = (*FLOAT_DTYPES, *INT_DTYPES, "bool")
INPUT_DTYPES = (*("float32",) * 6, "float64", "float64", "float16", "bfloat16", "int64", "int64", "int32", "uint8",
                "int8", "int16", "bool", "bool", "complex64")  # fmt: skip
LAYOUTS = ("contiguous", "transposed", "every_second", "offset", "expanded", "channels_last")
VALUES = ("normal", "ties", "positive", "zeros", "constant", "wide", "special")
VIEWS = ("", ".view_as(a{n})", ".reshape(-1)", "[1:]", ".t()", "[..., ::2]", ".unsqueeze(0)", "[0]", ".detach()")
"""How an argument may be made from an earlier one whose memory it shares; `{n}` is that one's number."""

_SPECIAL = ("0.0", "-0.0", "1.0", "-1.0", "0.5", "float('inf')", "-float('inf')", "float('nan')", "1e-40", "1e30",
            "1e-45", "65504.0", "0.1", "2.0", "3.7", "-0.5")  # fmt: skip
_SPECIAL_INTEGERS = {
    "int64": [0, 1, -1, 2, -(2**63), 2**63 - 1, 2**53 + 1, 100],
    "int32": [0, 1, -1, 2, -(2**31), 2**31 - 1, 2**24 + 1, 100],
    "int16": [0, 1, -1, 2, -(2**15), 2**15 - 1, 300, 100],
    "int8": [0, 1, -1, 2, -128, 127, 100, -100],
    "uint8": [0, 1, 255, 2, 128, 127, 100, 200],
}


@dataclass(frozen=True, slots=True)
class GraphInput:
    """One tensor argument.

    shape: sizes; a negative entry -k is the k-th dynamic size of the call.  dtype: torch's name.  layout, values: one
    of LAYOUTS and VALUES.  shares: number of an earlier argument whose memory this one has, -1 for its own; from the
    call `shares_from` on, before that it is a copy.  view: one of VIEWS.
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    layout: str = "contiguous"
    values: str = "normal"
    requires_grad: bool = False
    shares: int = -1
    shares_from: int = 0
    view: str = ""

    @property
    def is_float(self) -> bool:
        """Return whether gradients can flow through it."""
        return self.dtype in FLOAT_DTYPES or self.dtype == "complex64"

    def expression(self, plan: "CallPlan", call: int, number: int) -> str:
        """Return the tensor for one call as an expression that needs `torch` and the arguments before it."""
        if self.shares >= 0:
            text = f"a{self.shares}{self.view.format(n=self.shares)}"
            return text if call >= self.shares_from else f"{text}.detach().clone()"
        shape = tuple(size if size >= 0 else plan.sizes[-size - 1] for size in self.shape)
        seed = plan.seed * 31 + number
        text = laid_out(self.layout, shape, lambda dense: self._elements(dense, drawn_from(seed)))
        if not (self.requires_grad and self.is_float):
            return text
        # a leaf that is a view of what requires no grad loses its gradients in eager when its memory is written to
        return f"{text}.requires_grad_()" if self.layout == "contiguous" else f"{text}.detach().requires_grad_()"

    def _elements(self, shape: tuple[int, ...], drawn: str) -> str:
        if self.dtype == "bool":
            return f"torch.randint(0, 2, {shape}, {drawn}).bool()"
        if self.dtype in INT_DTYPES:
            return self._integers(shape, drawn)
        text = drawn_floats(self.values, shape, drawn, _SPECIAL)
        return text + ("" if self.dtype == "float32" else f".to(torch.{self.dtype})")

    def _integers(self, shape: tuple[int, ...], drawn: str) -> str:
        dtype = f"torch.{self.dtype}"
        if self.values == "special":
            listed = f"torch.tensor({_SPECIAL_INTEGERS[self.dtype]}, dtype={dtype})"
            return f"{listed}[torch.randint(0, 8, {shape}, {drawn})]"
        low, high = {"wide": (-100, 128), "zeros": (0, 2), "constant": (1, 2), "positive": (1, 9)}.get(
            self.values, (-4, 5)
        )
        return (
            f"torch.randint({low if self.dtype != 'uint8' else max(low, 0)}, {high}, {shape}, {drawn}, dtype={dtype})"
        )


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What changes from call to call: the seed of the elements, the dynamic sizes, the Python numbers."""

    seed: int = 0
    sizes: tuple[int, ...] = ()
    numbers: tuple[int | float | bool, ...] = ()


def number_text(number: float) -> str:
    """Return a number as an expression; infinities and NaN have no literal."""
    return repr(number) if number == number and abs(number) != float("inf") else f"float('{number}')"


def is_grad_leaf(value: object) -> bool:
    """Return whether a gradient can be asked for with respect to this argument."""
    return isinstance(value, torch.Tensor) and value.requires_grad and value.is_leaf
