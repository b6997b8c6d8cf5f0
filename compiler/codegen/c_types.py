"""How torch dtypes stand in memory and in registers.

Registers come in five classes: f (float), d (double), i (32-bit int), l (64-bit int), b (a mask of 32-bit lanes, all
bits or none).  Small integers live in i and are wrapped after each operation; half types live in f, already rounded.
A type with N lanes is called `f_16`, `i_8`, ...; `f_1` is the scalar, so vector and scalar code read the same.
"""

from __future__ import annotations

import torch

REGISTER: dict[torch.dtype, str] = {
    torch.float32: "f",
    torch.float16: "f",
    torch.bfloat16: "f",
    torch.float64: "d",
    torch.int64: "l",
    torch.int32: "i",
    torch.int16: "i",
    torch.int8: "i",
    torch.uint8: "i",
    torch.bool: "b",
}
STORED: dict[torch.dtype, str] = {
    torch.float32: "float",
    torch.float16: "unsigned short",
    torch.bfloat16: "unsigned short",
    torch.float64: "double",
    torch.int64: "long long",
    torch.int32: "int",
    torch.int16: "short",
    torch.int8: "signed char",
    torch.uint8: "unsigned char",
    torch.bool: "unsigned char",
}
TAG: dict[torch.dtype, str] = {
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float64: "f64",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "b8",
}
ELEMENT = {"f": "float", "d": "double", "i": "int", "l": "long long", "b": "int"}
WIDTH = {"f": 4, "d": 8, "i": 4, "l": 8, "b": 4}


def typed(register: str, lanes: int) -> str:
    """Return the C name of a register type; masks are ints."""
    return f"{'i' if register == 'b' else register}_{lanes}"


def number_text(value: float | int | bool, register: str) -> str:
    """Return a C literal of a register class, exact: floats are hexadecimal."""
    if register == "b":
        return "-1" if value else "0"
    if register in "fd":
        number = float(value)
        suffix = "f" if register == "f" else ""
        if number != number:
            return f'__builtin_nan{suffix}("")'
        if number in (float("inf"), float("-inf")):
            return f"{'-' if number < 0 else ''}__builtin_inf{suffix}()"
        if register == "f":
            number = torch.tensor(number, dtype=torch.float32, device="cpu").item()
            if number in (float("inf"), float("-inf")):
                return f"{'-' if number < 0 else ''}__builtin_inff()"
        return f"{number.hex()}{suffix}"
    whole = int(value)
    if register == "i":
        return "(-2147483647 - 1)" if whole == -(2**31) else str(whole)
    return "(-9223372036854775807LL - 1)" if whole == -(2**63) else f"{whole}LL"
