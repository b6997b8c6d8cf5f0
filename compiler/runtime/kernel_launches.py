"""The launches of a segment in one call of C: arguments are put in their places and handed to the driver, in order.

A kernel takes microseconds, and a launch from Python costs as many.  The C file is the same for every graph, so it is
built once on a machine; where there is no C compiler, launches are made from Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..base.errors import BuildError
from ..base.events import FellBack, record
from ..base.options import Options
from .c_build import build
from .cuda_driver import CudaDriver, LoadedKernel

ALIGNMENT = 16  # bytes; the widest load of a thread
Launcher = Callable[[Sequence[int], int], None]
"""Launches everything; given addresses, and the stream."""

TEXT = r"""
typedef unsigned long long word;
typedef int (*launch_function)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                               void **, void **);

/* functions, shared: of the kernel for addresses divisible by 16, and of the one for any, which may not be there yet.
   values: a slot among the addresses, or minus one minus the place of a number. */
struct launch { void *functions[2]; unsigned shared[2]; unsigned programs, threads; long count; const long *values; };
struct launches { launch_function call; long count; struct launch *launch; const word *numbers; };

/* Returns 0, or the number of the launch that stopped, counted from 1, above 32 bits of the driver's code; 0 there
   says that its second kernel is missing. */
word plumbline_launch(const struct launches *all, const word *addresses, void *stream, long first) {
  for (long number = first; number < all->count; number++) {
    const struct launch *one = all->launch + number;
    word given[one->count + 2], places = 0;
    void *pointers[one->count + 2];
    for (long at = 0; at < one->count; at++) {
      long value = one->values[at];
      given[at] = value >= 0 ? addresses[value] : all->numbers[-1 - value];
      places |= value >= 0 ? given[at] : 0;
      pointers[at] = given + at;
    }
    for (long at = one->count; at < one->count + 2; at++) { given[at] = 0; pointers[at] = given + at; }
    int any = places % 16 != 0;
    if (!one->functions[any]) return (word)(number + 1) << 32;
    int code = all->call(one->functions[any], one->programs, 1, 1, one->threads, 1, 1, one->shared[any], stream,
                         pointers, 0);
    if (code) return (word)(number + 1) << 32 | (unsigned)code;
  }
  return 0;
}
"""


class KernelVariants(Protocol):
    """What gives the kernels of a program, loaded."""

    def kernel(self, number: int, *, aligned: bool) -> LoadedKernel:
        """Return a kernel for addresses divisible by 16, or for any."""


@dataclass(frozen=True, slots=True)
class PlannedLaunch:
    """One launch of so many programs, at least one; slots: of its addresses.  numbers: what it takes behind them."""

    kernel: int
    programs: int
    slots: tuple[int, ...]
    numbers: tuple[int, ...]


class _Launch(ctypes.Structure):
    _fields_ = (
        ("functions", ctypes.c_void_p * 2),
        ("shared", ctypes.c_uint * 2),
        ("programs", ctypes.c_uint),
        ("threads", ctypes.c_uint),
        ("count", ctypes.c_long),
        ("values", ctypes.c_void_p),
    )


class _Launches(ctypes.Structure):
    _fields_ = (
        ("call", ctypes.c_void_p),
        ("count", ctypes.c_long),
        ("launch", ctypes.c_void_p),
        ("numbers", ctypes.c_void_p),
    )


def launcher_of(
    planned: Sequence[PlannedLaunch], kernels: KernelVariants, driver: CudaDriver, options: Options
) -> Launcher:
    """Return what makes these launches: in C, or from Python where there is no compiler for it."""
    if not planned:
        return lambda addresses, stream: None
    try:
        library = build(TEXT, {}, "kernel launches", 0, options)
    except BuildError as error:
        record(FellBack("kernel launches", f"made from Python: {error.one_line()}"))
        return _FromPython(tuple(planned), kernels, driver)
    return _InC(planned, kernels, driver, library)


@dataclass(frozen=True, slots=True)
class _FromPython:
    planned: tuple[PlannedLaunch, ...]
    kernels: KernelVariants
    driver: CudaDriver

    def __call__(self, addresses: Sequence[int], stream: int) -> None:
        for launch in self.planned:
            given = [addresses[slot] for slot in launch.slots]
            aligned = all(address % ALIGNMENT == 0 for address in given)
            kernel = self.kernels.kernel(launch.kernel, aligned=aligned)
            self.driver.launch(kernel, launch.programs, stream, [*given, *launch.numbers])


class _InC:
    def __init__(
        self, planned: Sequence[PlannedLaunch], kernels: KernelVariants, driver: CudaDriver, library: ctypes.CDLL
    ) -> None:
        self._planned, self._kernels, self._driver = planned, kernels, driver
        self._numbers = (ctypes.c_uint64 * sum(len(launch.numbers) for launch in planned))()
        self._launch = (_Launch * len(planned))()
        self._values = []  # the arrays that launches point to
        first = 0
        for each, launch in zip(self._launch, planned, strict=True):
            last = first + len(launch.numbers)
            self._numbers[first:last] = [number & (2**64 - 1) for number in launch.numbers]
            values = [*launch.slots, *(-1 - number for number in range(first, last))]
            self._values.append((ctypes.c_long * len(values))(*values))
            each.programs, each.count, each.values = launch.programs, len(values), ctypes.addressof(self._values[-1])
            first = last
        for number in range(len(planned)):
            self._load(number, aligned=True)
        numbers, table = ctypes.addressof(self._numbers), ctypes.addressof(self._launch)
        self._all = _Launches(driver.launch_address, len(planned), table, numbers)
        self._run = library.plumbline_launch
        self._run.restype = ctypes.c_uint64
        self._run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long)
        self._address = ctypes.addressof(self._all)

    def _load(self, number: int, *, aligned: bool) -> None:
        kernel, launch = self._kernels.kernel(self._planned[number].kernel, aligned=aligned), self._launch[number]
        which = 0 if aligned else 1
        launch.functions[which], launch.shared[which] = kernel.function.value, kernel.shared
        launch.threads = kernel.threads

    def __call__(self, addresses: Sequence[int], stream: int) -> None:
        given = (ctypes.c_uint64 * len(addresses))(*addresses)
        stopped = self._run(self._address, given, stream, 0)
        while stopped:
            number, code = (stopped >> 32) - 1, stopped & (2**32 - 1)
            if code:
                raise self._driver.refusal(code, "cuLaunchKernel")
            self._load(number, aligned=False)
            stopped = self._run(self._address, given, stream, number)
