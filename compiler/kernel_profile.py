"""`profile`: where the time of compiled code goes, kernel by kernel, with the user's lines."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .api import reset
from .base.config import CONFIG
from .base.events import Event, KernelRan, listen


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel or ATen call: runs, seconds of all runs; bytes and floating-point operations of one run; lines."""

    kind: str
    name: str
    runs: int
    seconds: float
    bytes: int
    flops: int
    lines: tuple[str, ...]


@dataclass(slots=True)
class Profile:
    """What ran inside a block of `profile()`."""

    events: list[KernelRan] = field(default_factory=list)

    def rows(self) -> list[KernelRow]:
        """Return a row for each kernel and ATen call, those that took longest first."""
        groups: dict[KernelRan, list[float]] = {}
        for event in self.events:
            key = KernelRan(event.kind, event.name, 0.0, event.bytes, event.flops, event.lines)
            groups.setdefault(key, []).append(event.seconds)
        rows = [
            KernelRow(key.kind, key.name, len(seconds), sum(seconds), key.bytes, key.flops, key.lines)
            for key, seconds in groups.items()
        ]
        return sorted(rows, key=lambda row: -row.seconds)

    def text(self) -> str:
        """Return the rows as a table: ms, share, runs, GB/s, GFLOP/s, name; the lines of each below it."""
        rows = self.rows()
        if not rows:
            return "no compiled code ran: profile() times what backend='inductor' has compiled"
        total = sum(row.seconds for row in rows)
        table = [f"{'ms':>9}  {'share':>6}  {'runs':>5}  {'GB/s':>7}  {'GFLOP/s':>8}  kernel or ATen call"]
        for row in rows:
            seconds = max(row.seconds / row.runs, 1e-12)
            table.append(
                f"{row.seconds * 1e3:>9.3f}  {row.seconds / total:>6.1%}  {row.runs:>5}  "
                f"{row.bytes / seconds / 1e9:>7.2f}  {row.flops / seconds / 1e9:>8.2f}  {row.name} ({row.kind})"
            )
            table += [f"{'':>43}  {line}" for line in row.lines]
        return "\n".join(table)

    def __str__(self) -> str:
        return self.text()


@contextmanager
def profile() -> Iterator[Profile]:
    """Time every kernel and ATen call of compiled code inside the block.

    `with plumbline.profile() as found: ...; print(found)`.  Everything is compiled anew inside the block, each kernel
    to be called by itself, and forgotten at its end.  Bytes and operations are counted from the kernels' loops,
    those of ATen calls by torch's counter; seconds are wall time.
    """
    found = Profile()

    def take(event: Event) -> None:
        if isinstance(event, KernelRan):
            found.events.append(event)

    stop: Callable[[], None] = listen(take)
    reset()
    try:
        with CONFIG.patch(time_kernels=True):
            yield found
    finally:
        stop()
        reset()
