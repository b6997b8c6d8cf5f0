"""How torch dtypes stand in the memory and in the values of a Triton kernel.

Half types are stored only: their values are float32, already rounded, as everywhere in this compiler.  Triton's own
arithmetic on them would round at other places, and its interpreter compares bfloat16 by bit patterns.
"""

from __future__ import annotations

import torch

VALUE: dict[torch.dtype, str] = {
    torch.float32: "tl.float32",
    torch.float16: "tl.float32",
    torch.bfloat16: "tl.float32",
    torch.float64: "tl.float64",
    torch.int64: "tl.int64",
    torch.int32: "tl.int32",
    torch.int16: "tl.int16",
    torch.int8: "tl.int8",
    torch.uint8: "tl.uint8",
    torch.bool: "tl.int1",
}
HALF: dict[torch.dtype, str] = {torch.float16: "tl.float16", torch.bfloat16: "tl.bfloat16"}
ELEMENT: dict[torch.dtype, str] = {
    torch.float32: "fp32",
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float64: "fp64",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "i1",
}
SMALL = frozenset({torch.int8, torch.int16, torch.uint8})


def accumulator_type(dtype: torch.dtype) -> str:
    """Return the type in which a reduction of this dtype counts: no less than 32 bits."""
    return "tl.int32" if dtype in SMALL or dtype == torch.bool else VALUE[dtype]


def number_text(value: float | int | bool, dtype: torch.dtype, rank: int) -> str:
    """Return a number as a tile of one element, so that no promotion of Python numbers ever happens."""
    shape, kind = "[" + ", ".join(["1"] * rank) + "]", VALUE[dtype]
    if not dtype.is_floating_point:
        return f"tl.full({shape}, {bool(value) if dtype == torch.bool else int(value)}, {kind})"
    number = float(value)
    if dtype in HALF:
        number = torch.tensor(number, dtype=dtype, device="cpu").item()
    if number != number or number in (float("inf"), float("-inf")):
        return f'tl.full({shape}, float("{number}"), {kind})'
    if number == 0 and str(number).startswith("-"):  # tl.full takes it for zero
        return f"(tl.full({shape}, 0.0, {kind}) * tl.full({shape}, -1.0, {kind}))"
    return f"tl.full({shape}, {number!r}, {kind})"


def cast_text(source: torch.dtype, target: torch.dtype, value: str) -> str:
    """Return a value converted as eager converts."""
    if target == torch.bool:
        return f"({value} != 0)"
    if source == torch.bool:
        value, source = f"{value}.to(tl.int32)", torch.int32
    if target in HALF:
        single = value if VALUE[source] == "tl.float32" else f"{value}.to(tl.float32)"
        return f"{single}.to({HALF[target]}).to(tl.float32)"
    if source.is_floating_point and target in SMALL:  # by way of a wide type, as eager, so that the result wraps
        value = f"{value}.to({'tl.int64' if target == torch.uint8 else 'tl.int32'})"
    return value if VALUE[source] == VALUE[target] else f"{value}.to({VALUE[target]})"
