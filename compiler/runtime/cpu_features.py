"""What this CPU's vectors can do, and the compiler flags for it; read once per process."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache

import torch


@dataclass(frozen=True, slots=True)
class CpuFeatures:
    """The vector abilities that code generation asks about.

    vector_bytes: width of a vector register.  has_f16c: hardware conversion of float16.  name: for cache keys.
    """

    name: str
    vector_bytes: int
    has_f16c: bool
    flags: tuple[str, ...]


@cache
def cpu_features() -> CpuFeatures:
    """Return the features of this machine as torch sees them (so that vector function names agree).

    Flags name a set of instructions, never `native`: a cache that two machines share must not hold what only one of
    them can run under the name of both.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    machine = platform.machine()
    if machine in ("x86_64", "AMD64"):
        if capability.startswith("AVX512"):
            return CpuFeatures("avx512", 64, True, ("-march=x86-64-v4", "-mprefer-vector-width=512"))
        if capability.startswith("AVX2"):
            return CpuFeatures("avx2", 32, True, ("-march=x86-64-v3",))
        return CpuFeatures("x86-64", 16, False, ())
    return CpuFeatures(machine, 16, False, ())
