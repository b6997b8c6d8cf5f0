"""What must hold of the machine code of every kernel, read from its PTX: precision, parameters, resources."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...runtime.triton_build import BuiltKernel, KernelRequest
from .triton_library import SO_FAR

MOST_REGISTERS = 128  # with more, fewer than 4 programs of 4 warps fit on a multiprocessor
MOST_SHARED = 48 * 1024  # bytes; beyond, a kernel has to ask for more
_ENTRY = re.compile(r"\.entry\s+\w+\(([^)]*)\)", re.S)
_THREADS = re.compile(r"\.reqntid\s+(\d+)")
_LIBDEVICE = (
    "ex2.approx.ftz.f32",
    "rcp.approx.ftz.f32",
    "rcp.approx.ftz.f64",
    "rsqrt.approx.ftz.f32",
    "rsqrt.approx.ftz.f64",
)
"""What libdevice itself is written with: arguments are scaled so that nothing subnormal reaches it."""
_DIVIDING = ("libdevice.sinh", "libdevice.cosh", "libdevice.fmod")  # divide by an approximation, and correct the result


def faults_of(request: KernelRequest, built: BuiltKernel) -> Iterator[str]:
    """Yield in words what is wrong with a built kernel."""
    ptx = built.ptx
    if built.spills > 0:
        yield f"{built.spills} bytes of registers are spilled"
    if built.shared > MOST_SHARED:
        yield f"{built.shared} bytes of shared memory, at most {MOST_SHARED}"
    if isinstance(request.capability, str):
        return  # the rest is about NVIDIA's registers and texts; AMD's threads have four times as many registers
    if built.registers > MOST_REGISTERS:
        yield f"{built.registers} registers, at most {MOST_REGISTERS}"
    if built.scratch:
        yield f"{built.scratch} bytes of global scratch, which the host does not give"
    own = request.text.split("def kernel", 1)[1]
    if "div.full" in ptx or ("div.approx" in ptx and not any(name in own for name in _DIVIDING)):
        yield "an approximate division"
    asks_libdevice = "libdevice" in own or SO_FAR["logsumexp"] in own  # by itself, or by a function of the library
    spared = _LIBDEVICE if asks_libdevice else ()
    for word in sorted(set(re.findall(r"[\w.]+\.ftz[\w.]*", ptx)) - set(spared)):
        yield f"{word} flushes subnormal numbers"
    if not asks_libdevice and "tl.fma" not in own and "div_rn" not in own:
        yield from sorted({f"{word}, which nobody asked for" for word in re.findall(r"fma\.rn\.f(?:32|64)", ptx)})
    entry, threads = _ENTRY.search(ptx), _THREADS.search(ptx)
    count = entry[1].count(".param") if entry else -1
    if count != len(request.signature) + 2:
        yield f"{count} parameters, not {len(request.signature)} and two for scratch"
    if threads is None or int(threads[1]) != 32 * request.warps:
        yield f"{threads[1] if threads else 'no'} threads, not {32 * request.warps}"
