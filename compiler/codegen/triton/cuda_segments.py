"""The segments of a program as kernels on a GPU: built for its capability, loaded once, launched in order.

Memory and streams are PyTorch's: the host allocates through its caching allocator, and each call launches on the stream
that is current for the device, so that reuse is in stream order.  There are two variants of a kernel: one for addresses
that are multiples of 16, which loads 16 bytes at once, and one for any, built when a call first needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from ...base.events import KernelLaunched, is_recording, record
from ...base.options import Options
from ...runtime.cuda_driver import CudaDriver, LoadedKernel
from ...runtime.cuda_facts import current_cuda_stream, made_current
from ...runtime.kernel_launches import Launcher, PlannedLaunch, launcher_of
from ...runtime.triton_build import KernelRequest, build_kernels
from ...schedule.execution_plan import ExecutionPlan
from ...symbolic.symbolic_sizes import value_at
from .launch_table import Launch, LaunchTable
from .triton_kernel import TritonKernel

_MOST_SIZES = 256  # dynamic sizes of which the launches are kept


class CurrentStream(Protocol):
    """What gives the address of the stream that is current for a device."""

    def __call__(self, device: torch.device) -> int:
        """Return the address; 0 is the default stream."""


@dataclass(frozen=True, slots=True, eq=False)
class Gpu:
    """A device, how its kernels are loaded and launched, and what they are built for (90 for sm_90)."""

    device: torch.device
    capability: int
    driver: CudaDriver
    stream: CurrentStream = current_cuda_stream


def request_of(kernel: TritonKernel, capability: int | str, *, aligned: bool = True) -> KernelRequest:
    """Return what is built of a kernel; aligned: for addresses that are multiples of 16."""
    places = tuple(number for number, kind in enumerate(kernel.signature) if kind.startswith("*") and aligned)
    module = kernel.module_for("cuda" if isinstance(capability, int) else "hip")
    return KernelRequest(module, kernel.signature, kernel.tiling.warps, places, capability, f"plumbline_{kernel.name}")


class CudaKernels:
    """The kernels of one program on one device: the aligned ones loaded, the others when they are needed."""

    def __init__(self, table: LaunchTable, gpu: Gpu, options: Options) -> None:
        """Build and load the aligned kernels; raises BuildError where that fails."""
        self._table, self._gpu, self._options = table, gpu, options
        self._loaded: dict[bool, list[LoadedKernel]] = {True: self._load(aligned=True)}

    def _load(self, *, aligned: bool) -> list[LoadedKernel]:
        kernels = self._table.kernels
        requests = [request_of(kernel, self._gpu.capability, aligned=aligned) for kernel in kernels]
        built = build_kernels(requests, self._options)
        with made_current(self._gpu.device):
            return [
                self._gpu.driver.load(each.cubin, each.name, 32 * kernel.tiling.warps, each.shared)
                for kernel, each in zip(kernels, built, strict=True)
            ]

    def kernel(self, number: int, *, aligned: bool) -> LoadedKernel:
        """Return a kernel of the table, loaded."""
        if aligned not in self._loaded:
            self._loaded[aligned] = self._load(aligned=aligned)
        return self._loaded[aligned][number]


@dataclass(frozen=True, slots=True, eq=False)
class LaunchedSegment:
    """One segment: called with addresses, then dynamic sizes; launches, waits for nothing, and returns 0.

    ready: what launches for dynamic sizes that have been met.
    """

    kernels: CudaKernels
    table: LaunchTable
    launches: tuple[Launch, ...]
    tensors: int
    counts: tuple[str, ...]
    gpu: Gpu
    options: Options
    ready: dict[tuple[int, ...], Launcher] = field(default_factory=dict)

    def __call__(self, *arguments: int) -> int:
        """Launch the kernels in order.

        A place out of range ends the program where it is next waited for, as eager's own kernels do.
        """
        sizes = arguments[self.tensors :]
        launch = self.ready.get(sizes)
        if launch is None:
            launch = self._made_ready(sizes)
        with made_current(self.gpu.device):
            launch(arguments[: self.tensors], self.gpu.stream(self.gpu.device))
        if is_recording():
            for planned in self._planned(sizes):
                record(KernelLaunched(self.table.kernels[planned.kernel].name, planned.programs))
        return 0

    def _made_ready(self, sizes: tuple[int, ...]) -> Launcher:
        if len(self.ready) >= _MOST_SIZES:
            self.ready.clear()
        self.ready[sizes] = launcher_of(self._planned(sizes), self.kernels, self.gpu.driver, self.options)
        return self.ready[sizes]

    def _planned(self, sizes: tuple[int, ...]) -> list[PlannedLaunch]:
        """Return the launches for dynamic sizes; the driver refuses an empty grid, so there is none."""
        point = dict(zip(self.counts, sizes, strict=True))
        planned = []
        for launch in self.launches:
            programs = value_at(launch.programs, point)
            flag = (0,) if self.table.kernels[launch.kernel].needs_flag else ()  # which the interpreter alone sets
            if programs:
                planned.append(PlannedLaunch(launch.kernel, programs, launch.slots, (*launch.numbers(point), *flag)))
        return planned


def cuda_segments(plan: ExecutionPlan, table: LaunchTable, gpu: Gpu, options: Options) -> list[Callable[..., int]]:
    """Return the segments as functions of addresses; raises BuildError where a kernel is not built or loaded."""
    kernels = CudaKernels(table, gpu, options)
    counts: Sequence[str] = plan.program.counts
    return [
        LaunchedSegment(kernels, table, launches, len(segment.parameters), tuple(counts), gpu, options)
        for segment, launches in zip(plan.segments, table.segments, strict=True)
    ]
