"""How one loop runs: which values belong to kept points, and in which pass over the reduced points each is due.

A reduction's result is known only after a full pass, so whatever needs it waits for the next pass.  Printing, the
interpreter and code generation all follow this one plan.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..symbolic.expr import symbols
from ..symbolic.symbolic_sizes import same
from .body import Access, Scalar
from .ir import Loop, LoopStore, index_symbols


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """One pass over the reduced points: reductions that finish in it, stores made in it."""

    reductions: tuple[Scalar, ...]
    stores: tuple[LoopStore, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The passes of a loop, and what each scalar depends on.

    level: how many passes must be over before the scalar can be computed, by id.
    inner: ids of scalars that differ between reduced points.
    kept_stores: stores made once per kept point after pass number `level`, as (level, store).
    """

    phases: tuple[Phase, ...]
    level: dict[int, int]
    inner: frozenset[int]
    kept_stores: tuple[tuple[int, LoopStore], ...]


def plan_phases(loop: Loop) -> Plan:
    """Return the passes that a loop needs; a loop without reductions has exactly one."""
    reduced = {symbol for symbol in loop.reduced if not same(symbol.size, 1)}
    level: dict[int, int] = {}
    inner: set[int] = set()
    reductions: dict[int, list[Scalar]] = {}
    for scalar in loop.scalars():
        below = max((level[id(arg)] for arg in scalar.args), default=0)
        if scalar.name == "reduce":
            reductions.setdefault(below, []).append(scalar)
            level[id(scalar)] = below + 1
            continue
        level[id(scalar)] = below
        depends = any(id(arg) in inner for arg in scalar.args)
        if isinstance(scalar.detail, Access):
            depends = depends or bool(index_symbols(scalar.detail) & reduced)
        elif scalar.name == "index":
            depends = bool(symbols(scalar.expression) & reduced)
        elif scalar.name == "scan":
            depends = bool(reduced)
        if depends:
            inner.add(id(scalar))
    full: dict[int, list[LoopStore]] = {}
    kept: list[tuple[int, LoopStore]] = []
    for store in loop.stores:
        due = level[id(store.value)]
        if id(store.value) in inner or index_symbols(store.access) & reduced:
            full.setdefault(due, []).append(store)
        else:
            kept.append((due, store))
    count = 1 + max([*reductions, *full], default=0)
    phases = tuple(Phase(tuple(reductions.get(n, ())), tuple(full.get(n, ()))) for n in range(count))
    return Plan(phases, level, frozenset(inner), tuple(kept))


def roots_of(phase: Phase) -> list[Scalar]:
    """Return the values a pass must compute."""
    return [
        *(arg for reduction in phase.reductions for arg in reduction.args),
        *(store.value for store in phase.stores),
    ]
