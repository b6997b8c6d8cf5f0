"""The most memory that this process holds at once during a piece of work, beyond what it held before."""

import contextlib
from pathlib import Path

_STATUS = Path("/proc/self/status")
_FORGET_PEAK = "5"
"""What Linux wants written so that the peak of a process starts again from what it holds."""


class PeakMemory:
    """Watches from the moment it is made; knows nothing where the system is not Linux or does not let it."""

    def __init__(self) -> None:
        self._before: int | None = None
        with contextlib.suppress(OSError, ValueError):
            Path("/proc/self/clear_refs").write_text(_FORGET_PEAK, encoding="ascii")
            self._before = _kilobytes("VmRSS")

    def bytes(self) -> int:
        """Return the peak so far, 0 where it is not known."""
        if self._before is None:
            return 0
        with contextlib.suppress(OSError, ValueError):
            return 1024 * max(0, _kilobytes("VmHWM") - self._before)
        return 0


def _kilobytes(name: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise ValueError(name)
