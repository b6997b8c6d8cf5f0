"""A whole graph as one C file: kernels, and one entry per run of kernels between two ATen calls."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.bisecting.applications import Gate
from ..loops.ir import Loop
from ..runtime.cpu_features import CpuFeatures
from ..schedule.execution_plan import ExecutionPlan
from ..symbolic.scaled_sizes import SCALED, in_c
from .c_functions.c_library import Library
from .c_kernel import write_kernel
from .kernel_text import without_comments
from .memory.in_place import as_written

_FLOOR = """static inline long long floor_quotient(long long a, long long b) {
  long long q = a / b; return q - (a % b < 0);
}
static inline long long floor_remainder(long long a, long long b) { long long r = a % b; return r < 0 ? r + b : r; }"""
_EXTREMES = """static inline long long larger(long long a, long long b) { return a > b ? a : b; }
static inline long long smaller(long long a, long long b) { return a < b ? a : b; }"""

KERNEL = "kernel_name"  # stands for a kernel's name until it is known to be new


@dataclass(frozen=True, slots=True, eq=False)
class CFile:
    """The text of a C file, the outside functions it calls by slot, and per kernel its name and text."""

    text: str
    addresses: dict[str, int]
    kernels: tuple[tuple[str, str], ...]


def _commented(loop: Loop, text: str) -> str:
    lines = [f"/* {origin.replace('*/', '* /')} */" for origin in loop.origins]
    return "\n".join([*lines, text])


def write_file(
    plan: ExecutionPlan,
    symbols: frozenset[str],
    features: CpuFeatures,
    threads: int = 0,
    gate: Gate | None = None,
) -> CFile:
    """Return the C file of all segments: entry `segment_<n>` takes its tensors, then the dynamic sizes.

    symbols: functions that the process offers by address.
    threads: the most threads a kernel may use, 0 for as many as torch uses at the time of the call.
    gate: asked for what makes kernels fast.
    """
    buffers, sizes = plan.program.buffers, plan.program.counts
    library = Library(symbols, has_f16c=features.has_f16c)
    kernels: list[tuple[str, str]] = []
    entries: list[str] = []
    names: dict[str, str] = {}
    for number, segment in enumerate(plan.segments):
        slots = {name: f"a{position}" for position, name in enumerate(segment.parameters)}
        body = ["  int failed;"]
        for loop in segment.loops:
            written, seen = as_written(loop, buffers, plan.in_place)
            text, order = write_kernel(written, seen, library, KERNEL, features.vector_bytes, threads, sizes, gate)
            plain = without_comments(text)
            name = names.get(plain)
            if name is None:  # layers repeat: equal kernels are written, and compiled, once
                name = names[plain] = f"kernel_{len(names)}"
                kernels.append((name, _commented(loop, text.replace(KERNEL, name))))
            pointers = ", ".join(slots[buffer] for buffer in order)
            call = f"{name}(p, z)" if sizes else f"{name}(p)"
            body.append(f"  {{ void *p[] = {{{pointers}}}; if ((failed = {call})) return failed; }}")
        parameters = (
            ", ".join([*(f"void *{slot}" for slot in slots.values()), *(f"long long {n}" for n in sizes)]) or "void"
        )
        if sizes:
            body.insert(0, f"  const long long z[] = {{{', '.join(sizes)}}};")
        entries.append("\n".join([f"int segment_{number}({parameters}) {{", *body, "  return 0;", "}"]))
    helpers = [_FLOOR, _EXTREMES] if sizes else [_FLOOR]
    helpers += [in_c(name) for name in SCALED if any(f"{name}(" in kernel for _, kernel in kernels)]
    text = "\n".join([library.text(), *helpers, *(text for _, text in kernels), *entries, ""])
    return CFile(text, library.addresses, tuple(kernels))
