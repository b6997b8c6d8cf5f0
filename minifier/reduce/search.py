"""Searches over ordered choices with a costly yes/no test; nothing here knows what is searched.

Tests are taken to be monotone (more is never less failing) to save queries; every result is one that was tested,
so a test that is not monotone costs minimality, never truth.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

PREFIXES = 6
"""Short prefixes, of 1 to 32 items, that are tried before long ones where they are likely to be enough."""


def first_failing(low: int, high: int, fails: Callable[[int], bool]) -> int:
    """Return the smallest n in (low, high] that fails, by bisection; `high` fails and `low` does not."""
    while high - low > 1:
        middle = (low + high) // 2
        if fails(middle):
            high = middle
        else:
            low = middle
    return high


def gallop(high: int, fails: Callable[[int], bool], *, steps: int = 3) -> int | None:
    """Return the smallest n in 1..high that fails, None when `high` does not fail either.

    Tries 1, 2, 4, ... for `steps` tries, then `high` at once, then bisects: cheap when n is small, and cheap to give
    up when nothing fails.
    """
    below, here = 0, 1
    for _ in range(steps):
        if here >= high:
            break
        if fails(here):
            return first_failing(below, here, fails)
        below, here = here, here * 2
    if high <= below or not fails(high):
        return None
    return first_failing(below, high, fails)


def _first_failing_from_below(high: int, fails: Callable[[int], bool], steps: int) -> int:
    """Return the smallest n in 1..high that fails, where `high` is known to; tries as `gallop` does."""
    found = gallop(high, lambda n: n >= high or fails(n), steps=steps)
    assert found is not None
    return found


def minimal_subset(
    items: Sequence[T], fails: Callable[[Sequence[T]], bool], *, likely_first: bool = False
) -> list[T] | None:
    """Return a small list of `items` that fails, in their order; None when no list that was tried fails.

    likely_first: the first items are the likeliest to be needed, so short prefixes are tried before long ones.

    `items` as a whole is taken to fail and is tested last, only if nothing smaller was.  Finds the end of the
    shortest failing prefix, keeps that item, and goes on with the prefix before it (QuickXplain's idea): a set of k
    out of n costs about k * (log2(n) + 1) tests.
    """
    needed: list[T] = []
    rest = list(items)
    known: list[T] | None = None

    def in_order(chosen: Sequence[T]) -> list[T]:
        places = {id(item): number for number, item in enumerate(items)}
        return sorted(chosen, key=lambda item: places[id(item)])

    def fails_with(count: int) -> bool:
        nonlocal known
        chosen = in_order([*rest[:count], *needed])
        if not fails(chosen):
            return False
        known = chosen
        return True

    while rest and not (needed and fails_with(0)):
        count = _first_failing_from_below(len(rest), fails_with, PREFIXES if likely_first else 0)
        needed.append(rest[count - 1])
        rest = rest[: count - 1]
    final = in_order(needed)
    return final if final and fails(final) else known
