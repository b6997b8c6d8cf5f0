"""Where intermediate tensors live: one arena per call, slots reused when nobody needs them any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.errors import InternalError


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A tensor of so many bytes that is needed from step `first` to step `last`, both included."""

    name: str
    size: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Byte offsets into an arena of `arena_bytes`, by tensor name."""

    arena_bytes: int
    offsets: dict[str, int]


def plan_memory(lifetimes: Sequence[Lifetime], alignment: int = 64) -> MemoryPlan:
    """Place every tensor so that those needed at the same step never overlap; offsets are multiples of alignment.

    Raises InternalError for a negative size.  Largest first, each at the lowest free offset (Sekiyama et al. 2018).
    """
    placed: list[tuple[int, Lifetime]] = []
    offsets: dict[str, int] = {}
    total = 0
    for each in sorted(lifetimes, key=lambda lifetime: (-lifetime.size, lifetime.name)):
        if each.size < 0:
            raise InternalError(f"{each.name} has {each.size} bytes", hint="report the graph")
        offset = 0
        for start, other in sorted(placed, key=lambda pair: pair[0]):
            if other.first > each.last or each.first > other.last:
                continue
            if start - offset >= each.size:
                break
            end = start + other.size
            offset = max(offset, (end + alignment - 1) // alignment * alignment)
        offsets[each.name] = offset
        placed.append((offset, each))
        total = max(total, offset + each.size)
    return MemoryPlan(total, offsets)
