"""Maps between index spaces: one to one exactly when every point is hit once, and inverted rightly."""

import itertools
from math import prod

from hypothesis import assume, given
from hypothesis import strategies as st

from plumbline.compiler.symbolic.expr import Symbol, as_expr, evaluate
from plumbline.compiler.symbolic.index_space import digits_of, flat_position, invert, reshape_index, row_major

SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=3)


def points(space: tuple[Symbol, ...]) -> list[dict[str, int]]:
    return [
        dict(zip([s.name for s in space], values, strict=True))
        for values in itertools.product(*(range(s.size) for s in space))
    ]


@given(SIZES, st.lists(st.integers(0, 12), min_size=3, max_size=3))
def test_digits_are_found_only_for_exact_counts(sizes: list[int], factors: list[int]) -> None:
    space = tuple(Symbol(f"v{n}", size) for n, size in enumerate(sizes))
    flat = sum((as_expr(s) * f for s, f in zip(space, factors, strict=False)), as_expr(0))
    hit = [evaluate(flat, point) for point in points(space)]
    if digits_of(flat, space) is not None:
        assert sorted(hit) == list(range(prod(sizes)))


@given(SIZES, st.data())
def test_a_reshape_reads_the_same_element(old: list[int], data: st.DataObject) -> None:
    total = prod(old)
    first = data.draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    new = [first, total // first]
    space = tuple(Symbol(f"n{k}", size) for k, size in enumerate(new))
    index = reshape_index([as_expr(s) for s in space], old, new)
    for point in points(space):
        place = sum(evaluate(part, point) * stride for part, stride in zip(index, row_major(old), strict=True))
        assert place == sum(point[s.name] * stride for s, stride in zip(space, row_major(new), strict=True))


@given(SIZES, st.data())
def test_an_inverse_leads_back(sizes: list[int], data: st.DataObject) -> None:
    source = tuple(Symbol(f"s{n}", size) for n, size in enumerate(sizes))
    order = data.draw(st.permutations(range(len(sizes))))
    merged = data.draw(st.booleans())
    shuffled = [source[n] for n in order]
    index = [as_expr(s) for s in shuffled]
    target = tuple(Symbol(f"t{n}", s.size) for n, s in enumerate(shuffled))
    if merged:
        index = [flat_position(index, row_major([s.size for s in shuffled]))]
        target = (Symbol("t", prod(sizes)),)
    found = invert(index, target, source)
    assume(found is not None)
    assert found is not None
    for point in points(source):
        at = {t.name: evaluate(part, point) for t, part in zip(target, index, strict=True)}
        assert {s.name: evaluate(found[s], at) for s in source} == point


def test_a_broadcast_has_no_inverse() -> None:
    i, j = Symbol("i", 4), Symbol("j", 3)
    assert invert([as_expr(i)], (Symbol("t", 4),), (i, j)) is None
    assert invert([as_expr(i) * 2], (Symbol("t", 8),), (i, Symbol("k", 2))) is None
