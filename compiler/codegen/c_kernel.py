"""One kernel: a loop written as a C function, vector and scalar code by the same rules.

`KernelText` holds the lines; writers of values, reductions, stores, passes and columns write into it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..loops.ir import Buffer, Loop
from ..symbolic.expr import Symbol
from ..symbolic.symbolic_sizes import Size, hint_of, surely_at_least
from .c_columns import ColumnWriter
from .c_library import Library
from .c_parallel import range_text, shared_variable, wrapper_text
from .c_passes import PassWriter
from .c_types import STORED
from .c_values import ValueWriter
from .kernel_shape import shape_kernel
from .kernel_text import KernelText


class KernelWriter:
    """Writes one kernel; lives for one call of `write_kernel`."""

    def __init__(self, text: KernelText, *, stashes: bool = True) -> None:
        self.text = text
        self.values = ValueWriter(text, stashes=stashes)
        self.columns = ColumnWriter(text, self.values)
        self.shape = text.shape
        self.library = text.library

    def write(self, name: str, threads: int, sizes: Sequence[str] = ()) -> str:
        """Return the C function `static int <name>(void **p)`; `buffer_order` says what p holds.

        threads: the most threads that may share it, 0 for as many as torch uses.  sizes: names of dynamic sizes; with
        them the function takes their values in `const long long *z`.
        """
        self.text.shared = self._shared(threads)
        if self.columns.are_wide():
            self.columns.write()
        else:
            PassWriter(self.text, self.values).write()
        pointers = []
        for position, buffer in enumerate(self.text.buffer_order):
            kind = STORED[self.text.buffers[buffer].dtype]
            const = "" if buffer in self.text.loop.writes else "const "
            pointers.append(f"  {const}{kind} *__restrict__ p_{position} = p[{position}];")
        body = [*pointers, *self.text.head, *self.text.lines]
        named, taken = size_lines(sizes), ", const long long *z" if sizes else ""
        if self.text.shared is None:
            opening = f"static int {name}(void **p{taken}) {{\n  int failed = 0, *error = &failed; (void)error;"
            return "\n".join([opening, *named, *body, "  return failed;", "}"])
        opening = f"static void {name}_run(void **p{taken}, int thread, int threads, int *error) {{\n  (void)error;"
        share = range_text(self.text.shared, self.text.step_of(self.text.shared))
        wrapper = wrapper_text(name, self.library, self.shape, threads, "\n".join(named))
        return "\n".join([opening, *named, share, *body, "}", wrapper])

    def _shared(self, threads: int) -> Symbol | None:
        if not self.library.has_threads:
            return None
        if self.columns.are_wide() and len(self.shape.outer) == 1:
            chunks = self.columns.chunks()
            return chunks if hint_of(chunks.size) > 1 and shared_variable(self.shape, threads) else None
        return shared_variable(self.shape, threads)


def size_lines(sizes: Sequence[str]) -> list[str]:
    """Return the C declarations of dynamic sizes from their array z."""
    return [f"  const long long {name} = z[{number}]; (void){name};" for number, name in enumerate(sizes)]


def write_kernel(
    loop: Loop,
    buffers: Mapping[str, Buffer],
    library: Library,
    name: str,
    vector_bytes: int,
    threads: int = 0,
    sizes: Sequence[str] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return a loop as the C function `static int <name>(void **p)`, and the names of the buffers in p.

    The function returns 0, 1 for an index out of range, 2 for an integer division by zero.  With dynamic sizes it takes
    them too, and there may be several versions of it: each call takes the first whose condition holds.
    """
    shape = shape_kernel(loop, buffers, vector_bytes)
    writer = KernelWriter(KernelText(shape, buffers, library))
    if not sizes:
        return writer.write(name, threads), writer.text.buffer_order
    wide = shape.vector is None or surely_at_least(shape.vector.size, shape.lanes)
    enough = "1" if wide else f"{shape.vector.size if shape.vector else 0} >= {shape.lanes}"
    first = writer.write(f"{name}_first", threads, sizes)
    versions: list[tuple[str, str]] = []
    points, most = writer.values.row_points
    if isinstance(points, Size):
        versions.append((f"{enough} && {points} <= {most}", first))
        writer = KernelWriter(KernelText(shape, buffers, library), stashes=False)
        versions.append((enough, writer.write(f"{name}_second", threads, sizes)))
    elif wide:
        return KernelWriter(KernelText(shape, buffers, library)).write(name, threads, sizes), writer.text.buffer_order
    else:
        versions.append((enough, first))
    if not wide:
        scalar = shape_kernel(loop, buffers, vector_bytes, scalar=True)
        narrow = KernelWriter(KernelText(scalar, buffers, library), stashes=False)
        if narrow.text.buffer_order != writer.text.buffer_order:
            raise ValueError("two versions of a kernel take different tensors")
        versions.append(("1", narrow.write(f"{name}_third", threads, sizes)))
    return _dispatcher(name, versions, sizes), writer.text.buffer_order


def _dispatcher(name: str, versions: Sequence[tuple[str, str]], sizes: Sequence[str]) -> str:
    """Return the versions and the function that chooses among them."""
    lines = [text for _, text in versions]
    lines.append(f"static int {name}(void **p, const long long *z) {{")
    lines += size_lines(sizes)
    for condition, text in versions:
        called = next(ending for ending in ("first", "second", "third") if f"static int {name}_{ending}(" in text)
        lines.append(f"  if ({condition}) return {name}_{called}(p, z);")
    return "\n".join([*lines, "  return 3;", "}"])
