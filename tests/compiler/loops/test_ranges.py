"""What a whole number of a loop body can be: no value that the interpreter gives leaves its range."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.loops.body import Scalar, ScalarBuilder, walk
from plumbline.compiler.loops.ranges import ranges_of, surely_within
from plumbline.compiler.symbolic.expr import Symbol, as_expr, evaluate, quotient, remainder
from plumbline.compiler.symbolic.symbolic_sizes import symbol

VARIABLE = Symbol("i", 12)
DTYPES = (torch.int64, torch.int32, torch.int8, torch.uint8)


def value_at(scalar: Scalar, place: int, read: int) -> int:
    """Return the value of a tree where the variable is at a place and every load gives one number."""
    values: dict[int, torch.Tensor] = {}
    for each in walk([scalar]):
        args = [values[id(arg)] for arg in each.args]
        if each.name == "constant":
            found = torch.tensor(each.detail)
        elif each.name == "index":
            found = torch.tensor(evaluate(each.expression, {"i": place}))
        elif each.name == "load":
            found = torch.tensor(read)
        elif each.name in ("add", "sub", "mul", "minimum", "maximum"):
            found = getattr(torch, each.name)(*args)
        elif each.name == "where":
            found = torch.where(*args)
        elif each.name == "lt":
            found = args[0] < args[1]
        else:
            found = args[0]
        values[id(each)] = found.to(each.dtype)
    return int(values[id(scalar)])


@st.composite
def trees(draw: st.DrawFn) -> Scalar:
    b = ScalarBuilder()
    index = as_expr(VARIABLE)
    dtype = draw(st.sampled_from(DTYPES))
    pool = [
        b.load("x", (index,), dtype),
        b.cast(b.index(draw(st.sampled_from([index, 3 * index - 4, quotient(index, 5)])), torch.int64), dtype),
        b.cast(b.index(remainder(index + 7, 4), torch.int32), dtype),
        b.constant(draw(st.integers(-5 if dtype.is_signed else 0, 100)), dtype),
    ]
    for _ in range(draw(st.integers(1, 8))):
        name = draw(st.sampled_from(["add", "sub", "mul", "minimum", "maximum", "where", "cast"]))
        first, second = (draw(st.sampled_from(pool)) for _ in range(2))
        if name == "cast":
            pool.append(b.cast(b.cast(first, draw(st.sampled_from(DTYPES))), dtype))
        elif name == "where":
            pool.append(b.op("where", b.op("lt", first, second), first, second))
        else:
            pool.append(b.op(name, first, second))
    return pool[-1]


@given(trees(), st.integers(0, 11), st.integers(-(2**62), 2**62))
def test_no_value_leaves_its_range(tree: Scalar, place: int, read: int) -> None:
    ranges = ranges_of([tree])
    for each in walk([tree]):
        if id(each) in ranges:
            low, high = ranges[id(each)]
            assert low <= value_at(each, place, read) <= high


def test_an_index_kept_inside_a_dimension_is_within_it() -> None:
    b = ScalarBuilder()
    zero, last = b.constant(0, torch.int64), b.constant(7, torch.int64)
    for value in (b.index(2 * as_expr(VARIABLE) - 3, torch.int64), b.load("x", (as_expr(VARIABLE),), torch.int64)):
        kept = b.op("minimum", b.op("maximum", value, zero), last)
        found = ranges_of([kept])[id(kept)]
        assert found == (0, 7)
        assert surely_within(found, 8)
        assert not surely_within(found, 7)
        assert not surely_within(found, symbol("n", 100))
    assert not surely_within(None, 8)
