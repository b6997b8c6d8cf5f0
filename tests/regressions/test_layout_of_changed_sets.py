"""A set from outside that compiled code changes comes to lie as in plain Python: the same operations made it."""

import random

import pytest

from plumbline.compiler import api


def crossed(kept, other, items):
    kept.symmetric_difference_update(other)
    return str(kept)


def crossed_by_operator(kept, other, items):
    kept ^= {"x", *items}
    return list(kept)


def united(kept, other, items):
    kept |= {*items, "x"}
    return list(kept)


def extended(kept, other, items):
    kept.update(items, (1, 2), {"x", items[0]})
    return list(kept)


def thinned(kept, other, items):
    kept.difference_update({"x", "y", *items[:2]})
    kept.add("late")
    return list(kept)


def cut(kept, other, items):
    kept &= {"x", "z", items[0]}
    kept.add("late")
    return list(kept)


def changed_after(kept, other, items):
    mine = {items[0], "x"}
    kept |= mine
    mine.clear()
    rest = list(items)
    kept.update(rest)
    rest.clear()
    return list(kept)


@pytest.mark.parametrize("function", [crossed, crossed_by_operator, united, extended, thinned, cut, changed_after])
def test_order(function):
    draws = random.Random(0)
    run = api.compile(function, backend="eager")
    for _ in range(60):
        words = [f"w{draws.randrange(1000)}" for _ in range(draws.randrange(1, 9))]
        first = ["x", "y", "z", *words[: draws.randrange(3)], *range(draws.randrange(12))]
        results = []
        for call in (function, run):
            kept = set(first)
            results.append((call(kept, {words[0], "x"}, words), list(kept)))
        assert results[0] == results[1]


@pytest.mark.parametrize("text", [str, repr, lambda one: f"{one}", lambda one: f"{[one]}", lambda one: f"{one!r:>40}"])
def test_text_of_a_set_from_outside(text):
    run = api.compile(lambda kept: text(kept), backend="eager")
    for number in range(60):
        kept = {"x", "y", f"w{number}", number}
        kept.discard("x")
        kept |= {"z", "q"}
        assert run(kept) == text(kept)
        assert run(frozenset(kept)) == text(frozenset(kept))


@pytest.mark.parametrize(
    "function",
    [
        lambda data: repr({*data}),
        lambda data: list({*data, *b"xyz"}),
        lambda data: str(frozenset(data)),
        lambda data: list(set(data.decode()) | {"q", "p"}),
    ],
)
def test_members_of_bytes_and_texts(function):
    run = api.compile(function, backend="eager")
    for data in (b"plain", b"zyxw", b"", b"aabbcc0123456789"):
        assert run(data) == function(data)
