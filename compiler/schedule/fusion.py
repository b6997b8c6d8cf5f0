"""Which loops may become one kernel: a short list of named rules, and the merge itself.

A refusal is a value with the rule's name and the reason in words; nothing here decides by looking at the world.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..loops.body import Access, Scalar, ScalarBuilder, rebuild
from ..loops.ir import Buffer, Loop, LoopStore
from ..loops.phases import plan_phases
from ..symbolic.expr import Expr, Symbol, as_expr, substitute
from ..symbolic.symbolic_sizes import Extent
from .alignment import Mapped, align, real, volume

MOST_BUFFERS = 32
MOST_SCALARS = 400
MOST_PASSES = 6


@dataclass(frozen=True, slots=True)
class FusionDecision:
    """Whether two loops may share a kernel; rule: the name of the rule that said no; why: here."""

    allowed: bool
    rule: str = ""
    why: str = ""


ALLOWED = FusionDecision(True)
SWITCHED_OFF = FusionDecision(False, "switched_off", "the option bisect keeps them apart")
Rule = Callable[[Loop, Loop], FusionDecision]


def both_have_points(first: Loop, second: Loop) -> FusionDecision:
    """Loops without iterations stay alone: there is nothing to save."""
    if volume((*first.kept, *first.reduced)) and volume((*second.kept, *second.reduced)):
        return ALLOWED
    return FusionDecision(False, "both_have_points", "one of them never iterates")


def something_is_shared(first: Loop, second: Loop) -> FusionDecision:
    """Fusing loops that touch no common tensor saves no memory traffic."""
    if (first.reads | first.writes) & (second.reads | second.writes):
        return ALLOWED
    return FusionDecision(False, "something_is_shared", "they touch no common tensor")


def kernel_stays_small(first: Loop, second: Loop) -> FusionDecision:
    """A kernel with very many values spills registers and compiles slowly."""
    buffers = len(first.reads | first.writes | second.reads | second.writes)
    if buffers > MOST_BUFFERS:
        return FusionDecision(False, "kernel_stays_small", f"{buffers} tensors in one kernel, at most {MOST_BUFFERS}")
    scalars = sum(1 for _ in first.scalars()) + sum(1 for _ in second.scalars())
    if scalars > MOST_SCALARS:
        return FusionDecision(False, "kernel_stays_small", f"{scalars} values in one kernel, at most {MOST_SCALARS}")
    return ALLOWED


def joined_tensors_are_complete(first: Loop, second: Loop) -> FusionDecision:
    """A tensor written piece by piece cannot be read in the kernel that writes one of the pieces."""
    partial = {store.access.buffer for store in first.stores if not store.whole}
    if partial & second.reads:
        return FusionDecision(
            False, "joined_tensors_are_complete", f"{min(partial & second.reads)} is only partly written"
        )
    return ALLOWED


def scans_keep_their_order(fixed: Loop, moving: Loop, mapping: Mapped) -> FusionDecision:
    """A scan visits the points of its one variable in order, whatever else the kernel does with them."""
    if not moving.scans:
        return ALLOWED
    along, beside = real(moving.reduced), real(fixed.reduced)
    if len(along) == len(beside) == 1 and mapping.get(along[0]) == as_expr(beside[0]):
        return ALLOWED
    return FusionDecision(False, "scans_keep_their_order", "it would visit the points of a scan in another order")


RULES: tuple[Rule, ...] = (something_is_shared, both_have_points, joined_tensors_are_complete, kernel_stays_small)


def merge(first: Loop, second: Loop, buffers: Mapping[str, Buffer]) -> Loop | FusionDecision:
    """Return one loop that does what first and then second do, or why that cannot be."""
    for rule in RULES:
        decision = rule(first, second)
        if not decision.allowed:
            return decision
    names = first.reads | first.writes | second.reads | second.writes
    shapes = {name: buffers[name].shape for name in names if name in buffers}
    candidates = [
        one
        for keep_first in (True, False)
        if (one := _merge_onto(first, second, shapes, keep_first=keep_first)) is not None
    ]
    if not candidates:
        return FusionDecision(False, "same_points", "their iterations do not correspond one to one")
    merged = [each for each in candidates if isinstance(each, Loop)]
    if not merged:
        return next(each for each in candidates if isinstance(each, FusionDecision))
    best = min(merged, key=_awkwardness)
    passes = len(plan_phases(best).phases)
    if passes > MOST_PASSES:
        return FusionDecision(False, "few_passes", f"{passes} passes over the reduced points, at most {MOST_PASSES}")
    return best


def _merge_onto(
    first: Loop, second: Loop, shapes: Mapping[str, tuple[Extent, ...]], *, keep_first: bool
) -> Loop | FusionDecision | None:
    """Merge on the variables of one of the two; None where the other cannot be expressed in them."""
    fixed, moving = (first, second) if keep_first else (second, first)
    if moving.reduced and not fixed.reduced:
        return None
    mapping = align(fixed, moving, shapes)
    if mapping is None:
        return None
    if fixed.scans or moving.scans:
        decision = scans_keep_their_order(fixed, moving, mapping)
        if not decision.allowed:
            return decision
    stay: Mapped = {symbol: as_expr(symbol) for symbol in (*fixed.kept, *fixed.reduced)}
    maps = (stay, mapping) if keep_first else (mapping, stay)
    return _joined(first, second, maps, fixed)


def _joined(first: Loop, second: Loop, maps: tuple[Mapped, Mapped], fixed: Loop) -> Loop | FusionDecision:
    builder = ScalarBuilder()
    before = [(_moved(store.access, maps[0]), store) for store in first.stores]
    values = rebuild([store.value for store in first.stores], builder, maps[0])
    written = {access.buffer: (access, value) for (access, _), value in zip(before, values, strict=True)}
    stray: list[str] = []

    def replace(load: Scalar) -> Scalar | None:
        if load.access.buffer not in written:
            return None
        access, value = written[load.access.buffer]
        if load.access.index != access.index:
            stray.append(f"{load.access.buffer} is read at {load.access.index} and written at {access.index}")
            return None
        return value

    after = rebuild([store.value for store in second.stores], builder, maps[1], replace)
    if stray:
        return FusionDecision(False, "reads_same_element", stray[0])
    stores = [LoopStore(access, value, store.whole) for (access, store), value in zip(before, values, strict=True)]
    stores += [
        LoopStore(_moved(store.access, maps[1]), value, store.whole)
        for store, value in zip(second.stores, after, strict=True)
    ]
    origins = tuple(dict.fromkeys((*first.origins, *second.origins)))
    return Loop(first.name, fixed.kept, fixed.reduced, tuple(stores), origins)


def _moved(access: Access, mapping: Mapping[Symbol, Expr]) -> Access:
    return Access(access.buffer, tuple(substitute(part, mapping) for part in access.index), access.looked_up)


def _awkwardness(loop: Loop) -> int:
    """Count the quotients and remainders in a loop's indexes: each one stops a vector load."""
    accesses = [store.access for store in loop.stores] + [load.access for load in loop.loads()]
    return sum(not isinstance(atom, Symbol) for access in accesses for part in access.index for atom, _ in part.terms)
