"""A C file on its own, without the program that it was written from: all that it takes to build and to call it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from ..base.events import stage
from ..base.options import Options
from ..runtime.c_build import build


@dataclass(frozen=True, slots=True, eq=False)
class CText:
    """text: of a file with the entries `segment_<n>`.

    addresses: outside functions that it calls, by slot.  kernels: how many it holds.  tensors: how many each segment
    takes, in order; sizes: how many dynamic sizes each takes behind them.
    """

    text: str
    addresses: dict[str, int]
    kernels: int
    tensors: tuple[int, ...]
    sizes: int


def built_segments(c: CText, options: Options) -> list[Callable[..., int]]:
    """Return the segments as functions of addresses and sizes; raises BuildError where no compiler works."""
    if not c.tensors:
        return []
    with stage("build"):
        long = [_of_lists(number, count, c.sizes) for number, count in enumerate(c.tensors) if _is_long(count, c)]
        library = build("\n".join([c.text, *long]), c.addresses, "graph", c.kernels, options)
    functions: list[Callable[..., int]] = []
    for number, count in enumerate(c.tensors):
        function = library[f"lists_{number}" if _is_long(count, c) else f"segment_{number}"]
        function.restype = ctypes.c_int
        if _is_long(count, c):
            functions.append(_taking_lists(function, count, c.sizes))
            continue
        function.argtypes = [*([ctypes.c_void_p] * count), *([ctypes.c_longlong] * c.sizes)]
        functions.append(function)
    return functions


MOST_ARGUMENTS = 1024
"""Of a function that ctypes calls."""


def _is_long(count: int, c: CText) -> bool:
    return count + c.sizes > MOST_ARGUMENTS


def _of_lists(number: int, tensors: int, sizes: int) -> str:
    """Return an entry that calls a segment with what stands in two lists."""
    given = [*(f"t[{place}]" for place in range(tensors)), *(f"s[{place}]" for place in range(sizes))]
    call = f"segment_{number}({', '.join(given)})"
    return f"int lists_{number}(void **t, const long long *s) {{ return {call}; }}\n"


def _taking_lists(function: Callable[..., int], tensors: int, sizes: int) -> Callable[..., int]:
    addresses, numbers = ctypes.c_void_p * tensors, ctypes.c_longlong * sizes

    def call(*given: int) -> int:
        return function(addresses(*given[:tensors]), numbers(*given[tensors:]))

    return call
