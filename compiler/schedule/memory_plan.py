"""Where intermediate tensors live: one arena per call, slots reused when nobody needs them any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.bisecting.applications import Gate
from ..base.errors import InternalError
from ..symbolic.symbolic_sizes import Extent, Size, floor_quotient, hint_of, surely_at_least


@dataclass(frozen=True, slots=True)
class Lifetime:
    """A tensor of so many bytes that is needed from step `first` to step `last`, both included."""

    name: str
    size: Extent
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Byte offsets into an arena of `arena_bytes`, by tensor name."""

    arena_bytes: Extent
    offsets: dict[str, Extent]


def plan_memory(lifetimes: Sequence[Lifetime], alignment: int = 64) -> MemoryPlan:
    """Place every tensor so that those needed at the same step never overlap; offsets are multiples of alignment.

    Raises InternalError for a negative size.  Largest first, each at the lowest free offset (Sekiyama et al. 2018).
    Where sizes are dynamic, each place holds tensors that are surely no larger than its first.
    """
    if any(isinstance(each.size, Size) for each in lifetimes):
        return _plan_places(lifetimes, alignment)
    placed: list[tuple[int, int, Lifetime]] = []
    offsets: dict[str, Extent] = {}
    total = 0
    for each in sorted(lifetimes, key=lambda lifetime: (-hint_of(lifetime.size), lifetime.name)):
        size = hint_of(each.size)
        if size < 0:
            raise InternalError(f"{each.name} has {each.size} bytes", hint="report the graph")
        offset = 0
        for start, occupied, other in sorted(placed, key=lambda place: place[0]):
            if other.first > each.last or each.first > other.last:
                continue
            if start - offset >= size:
                break
            end = start + occupied
            offset = max(offset, (end + alignment - 1) // alignment * alignment)
        offsets[each.name] = offset
        placed.append((offset, size, each))
        total = max(total, offset + size)
    return MemoryPlan(total, offsets)


def _plan_places(lifetimes: Sequence[Lifetime], alignment: int) -> MemoryPlan:
    places: list[list[Lifetime]] = []
    for each in sorted(lifetimes, key=lambda lifetime: (-hint_of(lifetime.size), lifetime.name)):
        for place in places:
            alone = all(other.first > each.last or each.first > other.last for other in place)
            if alone and surely_at_least(place[0].size, each.size):
                place.append(each)
                break
        else:
            places.append([each])
    offsets: dict[str, Extent] = {}
    total: Extent = 0
    for place in places:
        offsets.update({each.name: total for each in place})
        total = total + floor_quotient(place[0].size + alignment - 1, alignment) * alignment
    return MemoryPlan(total, offsets)


def with_own_places(plan: MemoryPlan, lifetimes: Sequence[Lifetime], gate: Gate, alignment: int = 64) -> MemoryPlan:
    """Return a plan in which those that may not take memory that an earlier one had lie behind all others.

    gate: asked for each tensor that shares a byte with one that is needed before it.
    """
    offsets, total = dict(plan.offsets), plan.arena_bytes
    order = sorted(lifetimes, key=lambda each: (each.first, each.name))
    for position, each in enumerate(order):
        before = [other.name for other in order[:position] if _share_bytes(plan, other, each)]
        if before and not gate.allows("reuse", f"put {each.name} into the memory of {before[0]}", rule="plan_memory"):
            offsets[each.name] = floor_quotient(total + alignment - 1, alignment) * alignment
            total = offsets[each.name] + each.size
    return MemoryPlan(total, offsets)


def _share_bytes(plan: MemoryPlan, one: Lifetime, other: Lifetime) -> bool:
    start, other_start = hint_of(plan.offsets[one.name]), hint_of(plan.offsets[other.name])
    return start < other_start + hint_of(other.size) and other_start < start + hint_of(one.size)
