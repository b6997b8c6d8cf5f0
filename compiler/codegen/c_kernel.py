"""One kernel: a loop written as a C function, vector and scalar code by the same rules.

The plan says what is written.  `KernelText` holds the lines; the writers of values, reductions, stores, passes and
columns write into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..base.bisecting.applications import Gate
from ..loops.ir import Buffer, Loop
from ..symbolic.symbolic_sizes import surely_at_least
from .c_columns import ColumnWriter
from .c_functions.c_library import Library
from .c_parallel import range_text, wrapper_text
from .c_passes import PassWriter
from .c_reductions import ReductionWriter
from .c_stores import StoreWriter
from .c_types import STORED
from .c_values import ValueWriter
from .kernel_plan import NOTHING_LEFT_OUT, KernelPlan, LeftOut, plan_kernel
from .kernel_text import KernelText

_ENDINGS = ("first", "second", "third")


def write_kernel(
    loop: Loop,
    buffers: Mapping[str, Buffer],
    library: Library,
    name: str,
    vector_bytes: int,
    threads: int = 0,
    sizes: Sequence[str] = (),
    gate: Gate | None = None,
) -> tuple[str, tuple[str, ...]]:
    """Return a loop as the C function `static int <name>(void **p)`, and the names of the buffers in p.

    threads: the most that may share it, 0 for as many as torch uses.  sizes: names of dynamic sizes; with them the
    function takes their values in `const long long *z`, and there may be several versions of it: each call takes the
    first whose condition holds.  gate: asked before vectors, rows and threads are used.  The function returns 0, 1 for
    an index out of range, 2 for a division by zero.
    """
    most = threads if library.has_threads else 1
    without = NOTHING_LEFT_OUT if gate is None else _left_out(plan_kernel(loop, buffers, vector_bytes, most), gate)
    versions = _versions(loop, buffers, vector_bytes, most, without, dynamic=bool(sizes))
    names = [name] if len(versions) == 1 else [f"{name}_{ending}" for ending in _ENDINGS[: len(versions)]]
    lines = []
    for own_name, (_, plan) in zip(names, versions, strict=True):
        text = _loops(plan, buffers, library)
        lines.append(_function(text, own_name, threads, sizes))
    order = versions[0][1].buffer_order
    if len(versions) == 1:
        return lines[0], order
    lines.append(f"static int {name}(void **p, const long long *z) {{")
    lines += _size_lines(sizes)
    lines += [f"  if ({condition}) return {each}(p, z);" for each, (condition, _) in zip(names, versions, strict=True)]
    return "\n".join([*lines, "  return 3;", "}"]), order


def _left_out(plan: KernelPlan, gate: Gate) -> LeftOut:
    """Return what a kernel has to do without, of what its plan uses."""
    loop = plan.shape.loop
    place = loop.origins[-1].partition("  ")[0] if loop.origins else ""

    def is_off(kind: str, used: bool, what: str) -> bool:
        return used and not gate.allows(kind, f"{what} {loop.name}", rule=kind, place=place)

    return LeftOut(
        vectors=is_off("vector", plan.shape.vector is not None, f"{plan.shape.lanes} lanes in"),
        rows=is_off("stash", bool(plan.stashes.rooms), "kept rows of values in"),
        threads=is_off("threads", plan.shared is not None, "threads share"),
    )


def _versions(
    loop: Loop, buffers: Mapping[str, Buffer], vector_bytes: int, threads: int, without: LeftOut, *, dynamic: bool
) -> list[tuple[str, KernelPlan]]:
    """Return the versions of a kernel with the C condition of each; one where sizes are known."""
    plan = plan_kernel(loop, buffers, vector_bytes, threads, without)
    if not dynamic:
        return [("1", plan)]
    vector, lanes, stashes = plan.shape.vector, plan.shape.lanes, plan.stashes
    wide = vector is None or surely_at_least(vector.size, lanes)
    enough = "1" if vector is None or wide else f"{vector.size} >= {lanes}"
    versions = [(enough, plan)]
    without_rows = replace(without, dynamic_rows=True)
    if stashes.are_dynamic:
        plain = plan_kernel(loop, buffers, vector_bytes, threads, without_rows)
        versions = [(f"{enough} && {stashes.points} <= {stashes.most}", plan), (enough, plain)]
    if not wide:
        scalar = replace(without_rows, vectors=True)
        versions.append(("1", plan_kernel(loop, buffers, vector_bytes, threads, scalar)))
    if any(each.buffer_order != plan.buffer_order for _, each in versions):
        raise ValueError("two versions of a kernel take different tensors")
    return versions


def _loops(plan: KernelPlan, buffers: Mapping[str, Buffer], library: Library) -> KernelText:
    """Write the loops of a kernel."""
    text = KernelText(plan, buffers, library)
    values = ValueWriter(text)
    reductions, stores = ReductionWriter(text, values), StoreWriter(text, values)
    writer = PassWriter if plan.chunks is None else ColumnWriter
    writer(text, values, reductions, stores).write()
    return text


def _function(text: KernelText, name: str, threads: int, sizes: Sequence[str]) -> str:
    """Return the C function around the loops; where threads share them, with the one that starts the threads."""
    pointers = []
    for position, buffer in enumerate(text.plan.buffer_order):
        kind = STORED[text.buffers[buffer].dtype]
        const = "" if buffer in text.shape.loop.writes else "const "
        pointers.append(f"  {const}{kind} *__restrict__ p_{position} = p[{position}];")
    body = [*pointers, *text.head, *text.lines]
    named, parameter, shared = _size_lines(sizes), ", const long long *z" if sizes else "", text.plan.shared
    if shared is None:
        opening = f"static int {name}(void **p{parameter}) {{\n  int failed = 0, *error = &failed; (void)error;"
        return "\n".join([opening, *named, *body, "  return failed;", "}"])
    opening = f"static void {name}_run(void **p{parameter}, int thread, int threads, int *error) {{\n  (void)error;"
    share = range_text(shared, text.step_of(shared))
    wrapper = wrapper_text(name, text.library, text.shape, threads, "\n".join(named))
    return "\n".join([opening, *named, share, *body, "}", wrapper])


def _size_lines(sizes: Sequence[str]) -> list[str]:
    """Return the C declarations of dynamic sizes from their array z."""
    return [f"  const long long {name} = z[{number}]; (void){name};" for number, name in enumerate(sizes)]
