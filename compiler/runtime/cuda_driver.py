"""The few calls of the CUDA driver that launch a kernel, through ctypes: nothing here links to libcuda.

PyTorch has made the context and owns memory and streams; this loads code into that context and launches it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..base.errors import BuildError, Unsupported

LIBRARY = "libcuda.so.1"
_MOST_SHARED_WITHOUT_ASKING = 48 * 1024
_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class LoadedKernel:
    """A function of a loaded module; threads: per program.  shared: bytes per program.  module: keeps it loaded."""

    function: ctypes.c_void_p
    module: ctypes.c_void_p
    threads: int
    shared: int


@dataclass(slots=True, eq=False)
class CudaDriver:
    """The driver, opened; raises Unsupported where there is none.

    path: of another library with the same functions, for tests.
    """

    path: str = LIBRARY
    _library: ctypes.CDLL = field(init=False)

    def __post_init__(self) -> None:
        try:
            self._library = ctypes.CDLL(self.path)
        except OSError as error:
            raise Unsupported(
                f"no CUDA driver: {error}", hint="kernels run on a machine with an NVIDIA driver"
            ) from None

    def load(self, cubin: bytes, name: str, threads: int, shared: int) -> LoadedKernel:
        """Load code for the current device into its context; raises BuildError where the driver refuses it."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._demand(self._library.cuModuleLoadData(ctypes.byref(module), cubin), "cuModuleLoadData")
        found = self._library.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        self._demand(found, "cuModuleGetFunction")
        if shared > _MOST_SHARED_WITHOUT_ASKING:
            allowed = self._library.cuFuncSetAttribute(function, _DYNAMIC_SHARED, shared)
            self._demand(allowed, "cuFuncSetAttribute")
        return LoadedKernel(function, module, threads, shared)

    def launch(self, kernel: LoadedKernel, programs: int, stream: int, arguments: Sequence[int]) -> None:
        """Launch so many programs on a stream; arguments: addresses and 64-bit numbers, in order.

        Two more follow that Triton's kernels take for scratch memory, which ours never need.  Nothing waits for the
        kernel: a fault inside it is found by the next call that does, as in eager.
        """
        values = (ctypes.c_uint64 * (len(arguments) + 2))(*(each & (2**64 - 1) for each in arguments), 0, 0)
        places = (ctypes.c_void_p * len(values))(
            *(ctypes.addressof(values) + 8 * number for number in range(len(values)))
        )
        code = self._library.cuLaunchKernel(
            kernel.function,
            *(programs, 1, 1),
            *(kernel.threads, 1, 1),
            kernel.shared,
            ctypes.c_void_p(stream),
            places,
            None,
        )
        self._demand(code, "cuLaunchKernel")

    @property
    def launch_address(self) -> int:
        """The address of `cuLaunchKernel`, for C that calls it."""
        return ctypes.cast(self._library.cuLaunchKernel, ctypes.c_void_p).value or 0

    def refusal(self, code: int, call: str) -> BuildError:
        """Return the error of a call that the driver answered with a code."""
        return BuildError(f"{call} failed with code {code}", hint="see the CUDA driver's CUresult of this number")

    def _demand(self, code: int, call: str) -> None:
        if code:
            raise self.refusal(code, call)
