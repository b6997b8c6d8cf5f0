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
        library = build(c.text, c.addresses, "graph", c.kernels, options)
    functions: list[Callable[..., int]] = []
    for number, count in enumerate(c.tensors):
        function = library[f"segment_{number}"]
        function.argtypes = [*([ctypes.c_void_p] * count), *([ctypes.c_longlong] * c.sizes)]
        function.restype = ctypes.c_int
        functions.append(function)
    return functions
