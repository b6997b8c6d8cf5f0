"""Functions that are already loaded into this process: Sleef inside libtorch, and the C library's mathematics."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys
from functools import cache
from pathlib import Path

import torch

from .cpu_features import cpu_features


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    folder = Path(torch.__file__).parent / "lib"
    libraries = []
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib"):
        if (folder / name).exists():
            libraries.append(ctypes.CDLL(str(folder / name)))  # loaded already: this only finds the handle
    # torch's own OpenMP runtime; another one in the process would double the threads
    libraries += [ctypes.CDLL(str(path)) for path in sorted(folder.glob("libgomp*.so*"))[:1]]
    mathematics = "libm.so.6" if sys.platform == "linux" else ctypes.util.find_library("m")
    if mathematics:
        libraries.append(ctypes.CDLL(mathematics))
    return tuple(libraries)


def address_of(symbol: str) -> int | None:
    """Return the address of a loaded function, or None."""
    for library in _libraries():
        try:
            function = getattr(library, symbol)
        except AttributeError:
            continue
        return ctypes.cast(function, ctypes.c_void_p).value
    return None


class OfferedSymbols(frozenset[str]):
    """The functions of this process that generated code asks for, as a set that is asked, not listed."""

    def __contains__(self, symbol: object) -> bool:
        return isinstance(symbol, str) and _is_offered(symbol)


@cache
def _is_offered(symbol: str) -> bool:
    if not symbol.startswith("Sleef_"):
        return address_of(symbol) is not None
    width = {"16": 64, "d8": 64, "f8": 32, "d4": 32, "f4": 16, "d2": 16}
    stem = symbol.split("_")[1]
    needed = next((size for ending, size in width.items() if stem.endswith(ending)), 128)
    return needed <= cpu_features().vector_bytes and address_of(symbol) is not None
