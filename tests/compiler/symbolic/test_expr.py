"""Index expressions keep their value through every simplification, and come out of round trips as they went in."""

from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.symbolic.expr import (
    Expr,
    Symbol,
    as_expr,
    bounds,
    coefficient,
    constant,
    evaluate,
    substitute,
    symbols,
    text,
)

VARIABLES = (Symbol("a", 3), Symbol("b", 5), Symbol("c", 7), Symbol("d", 16))
DIVISORS = st.sampled_from([1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 35])
POINTS = st.fixed_dictionaries({v.name: st.integers(0, v.size - 1) for v in VARIABLES})


def grow(children: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(lambda x, y: x + y, children, children),
        st.builds(lambda x, y: x - y, children, children),
        st.builds(lambda x, k: x * k, children, st.integers(-40, 40)),
        st.builds(lambda x, d: x // d, children, DIVISORS),
        st.builds(lambda x, d: x % d, children, DIVISORS),
    )


EXPRESSIONS = st.recursive(
    st.one_of(st.sampled_from(VARIABLES).map(as_expr), st.integers(-50, 50).map(constant)), grow, max_leaves=8
)


@given(EXPRESSIONS, EXPRESSIONS, DIVISORS, st.integers(-20, 20), POINTS)
def test_arithmetic_keeps_the_value(x: Expr, y: Expr, d: int, k: int, point: dict[str, int]) -> None:
    first, second = evaluate(x, point), evaluate(y, point)
    assert evaluate(x + y, point) == first + second
    assert evaluate(x - y, point) == first - second
    assert evaluate(x * k, point) == first * k
    assert evaluate(x // d, point) == first // d
    assert evaluate(x % d, point) == first % d
    assert evaluate((x // d) * (d * k) + (x % d) * k, point) == first * k


@given(EXPRESSIONS, POINTS)
def test_text_is_python_and_bounds_hold(x: Expr, point: dict[str, int]) -> None:
    value = evaluate(x, point)
    assert eval(text(x), {}, dict(point)) == value
    low, high = bounds(x)
    assert low <= value <= high


@given(EXPRESSIONS, st.integers(0, 2), POINTS)
def test_substitution_keeps_the_value(x: Expr, value: int, point: dict[str, int]) -> None:
    assert evaluate(substitute(x, {VARIABLES[0]: constant(value)}), point) == evaluate(x, {**point, "a": value})


@given(EXPRESSIONS, POINTS)
def test_a_coefficient_is_the_step(x: Expr, point: dict[str, int]) -> None:
    for variable in VARIABLES:
        factor = coefficient(x, variable)
        if factor is not None and point[variable.name] + 1 < variable.size:
            moved = {**point, variable.name: point[variable.name] + 1}
            assert evaluate(x, moved) - evaluate(x, point) == factor
        if variable not in symbols(x):
            assert factor == 0


def test_round_trips_vanish() -> None:
    n = as_expr(Symbol("n", 105))
    assert (n // 35) * 35 + ((n // 7) % 5) * 7 + n % 7 == n
    b, t = as_expr(Symbol("b", 3)), as_expr(Symbol("t", 5))
    assert (b * 5 + t) // 5 == b
    assert (b * 5 + t) % 5 == t
    assert (b * 10 + t * 2 + 1) // 2 == b * 5 + t


def test_expressions_are_immutable_and_hash_alike() -> None:
    x = as_expr(VARIABLES[0]) + 1
    assert {x: 1}[as_expr(VARIABLES[0]) + 1] == 1
    try:
        x.constant = 2
    except AttributeError:
        return
    raise AssertionError("an expression was changed")
