"""Which kernels the segments of a program launch, in order, and with what: pure, written before anything is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ...schedule.execution_plan import ExecutionPlan
from ...symbolic.symbolic_sizes import Extent, value_at
from .tiles import DeviceFacts
from .triton_kernel import TritonKernel, write_triton_kernel


@dataclass(frozen=True, slots=True, eq=False)
class Launch:
    """One launch: a kernel by its place in the table, and what it is given.

    slots: of its buffers among the segment's parameters.  sizes: the open sizes it takes.  programs: in one dimension.
    """

    kernel: int
    slots: tuple[int, ...]
    sizes: tuple[Extent, ...]
    programs: Extent

    def numbers(self, point: Mapping[str, int]) -> list[int]:
        """Return the open sizes for dynamic sizes by name."""
        return [value_at(size, point) for size in self.sizes]


@dataclass(frozen=True, slots=True, eq=False)
class LaunchTable:
    """The distinct kernels of a program, and the launches of each of its segments in order."""

    kernels: tuple[TritonKernel, ...]
    segments: tuple[tuple[Launch, ...], ...]

    @property
    def launched(self) -> tuple[str, ...]:
        """The names of the kernels in the order in which one call launches them."""
        return tuple(self.kernels[launch.kernel].name for launches in self.segments for launch in launches)


def write_launch_table(plan: ExecutionPlan, device: DeviceFacts) -> LaunchTable:
    """Return the kernels of a plan, equal ones once, and their launches."""
    kernels: dict[tuple[str, tuple[str, ...], int], TritonKernel] = {}
    segments: list[tuple[Launch, ...]] = []
    for segment in plan.segments:
        launches: list[Launch] = []
        for loop in segment.loops:
            kernel = write_triton_kernel(loop, plan.program.buffers, device)
            key = (kernel.text, kernel.signature, kernel.tiling.warps)
            kernels.setdefault(key, kernel)
            slots = tuple(segment.parameters.index(name) for name in kernel.buffers)
            launches.append(Launch(list(kernels).index(key), slots, kernel.sizes, kernel.programs))
        segments.append(tuple(launches))
    return LaunchTable(tuple(kernels.values()), tuple(segments))


def table_text(table: LaunchTable) -> str:
    """Return a table as text, for the record: every kernel, then who launches it."""
    parts = [kernel.text for kernel in table.kernels]
    for number, launches in enumerate(table.segments):
        shown = [f"#   kernel {each.kernel}, {each.programs} programs, tensors {each.slots}" for each in launches]
        parts.append("\n".join([f"# segment {number}", *shown]))
    return "\n\n".join(parts) + "\n"
