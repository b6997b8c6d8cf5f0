"""Symbolic sizes compute what whole numbers do; what is proved holds at every point, what is not is written down."""

import operator
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.compiler.base.errors import InternalError
from plumbline.compiler.symbolic.symbolic_sizes import (
    FUNCTIONS,
    Extent,
    Size,
    assumptions,
    common_factor,
    count_text,
    exact_quotient,
    floor_quotient,
    floor_remainder,
    hint_of,
    larger,
    lowest_of,
    same,
    smaller,
    split,
    surely_less,
    symbol,
    value_at,
)

N, M = symbol("n", 7), symbol("m", 5, lowest=3)
POINTS = st.fixed_dictionaries({"n": st.integers(2, 40), "m": st.integers(3, 40)})
LEAVES: st.SearchStrategy[Extent] = st.one_of(st.integers(-4, 9), st.just(N), st.just(M))
BINARY: list[Callable[[Extent, Extent], Extent]] = [operator.add, operator.sub, operator.mul, larger, smaller]


def _deeper(inner: st.SearchStrategy[Extent]) -> st.SearchStrategy[Extent]:
    combined = st.builds(lambda rule, a, b: rule(a, b), st.sampled_from(BINARY), inner, inner)
    halved = st.builds(lambda a, d: floor_quotient(a, d), inner, st.integers(1, 8))
    rest = st.builds(lambda a, d: floor_remainder(a, d), inner, st.integers(1, 8))
    return st.one_of(combined, halved, rest)


EXTENTS = st.recursive(LEAVES, _deeper, max_leaves=6)


@given(EXTENTS, POINTS)
def test_text_and_value_agree(value: Extent, point: dict[str, int]) -> None:
    assert eval(repr(value), {**FUNCTIONS, **point}) == value_at(value, point)


@given(EXTENTS, EXTENTS, POINTS)
def test_arithmetic_is_that_of_whole_numbers(first: Extent, second: Extent, point: dict[str, int]) -> None:
    a, b = value_at(first, point), value_at(second, point)
    assert value_at(first + second, point) == a + b
    assert value_at(first - second, point) == a - b
    assert value_at(first * second, point) == a * b
    assert value_at(larger(first, second), point) == max(a, b)
    assert value_at(smaller(first, second), point) == min(a, b)


@given(EXTENTS, st.one_of(st.integers(-12, -1), st.integers(1, 12), st.sampled_from([N, M, N * M, N * 4])), POINTS)
def test_division_is_floor_division(value: Extent, divisor: Extent, point: dict[str, int]) -> None:
    a, b = value_at(value, point), value_at(divisor, point)
    assert value_at(floor_quotient(value, divisor), point) == a // b
    assert value_at(floor_remainder(value, divisor), point) == a % b
    high, low = split(value, divisor)
    assert value_at(high, point) * b + value_at(low, point) == a
    whole = exact_quotient(value, divisor)
    assert whole is None or value_at(whole, point) * b == a


@given(EXTENTS, POINTS)
def test_the_least_value_is_never_undercut(value: Extent, point: dict[str, int]) -> None:
    low = lowest_of(value)
    assert low is None or low <= value_at(value, point)


@given(EXTENTS, EXTENTS, POINTS)
def test_proofs_and_assumptions_hold(first: Extent, second: Extent, point: dict[str, int]) -> None:
    a, b = value_at(first, point), value_at(second, point)
    if surely_less(first, second):
        assert a < b
    if same(first, second):
        assert a == b
    with assumptions() as assumed:
        answers = (first < second, first == second, first >= second)
    if all(eval(each.text, {**FUNCTIONS, **point}) for each in assumed):
        assert answers == (a < b, a == b, a >= b)


@given(EXTENTS, EXTENTS, POINTS)
def test_a_common_factor_divides_both(first: Extent, second: Extent, point: dict[str, int]) -> None:
    if not isinstance(first, Size) or not isinstance(second, Size):
        return
    shared = common_factor(first, second)
    for value in (first, second):
        part = exact_quotient(value, shared)
        assert part is not None
        assert value_at(part, point) * value_at(shared, point) == value_at(value, point)


def test_what_cancels_is_a_number() -> None:
    assert N + M - N - M == 0
    assert type(N * M - M * N) is int
    assert (N * 64) // 64 is not None
    assert same((N * 64) // 64, N)
    assert (N * 64) % 64 == 0


def test_proofs_need_no_assumption() -> None:
    with assumptions() as assumed:
        assert N > 1
        assert N * M > M
        assert N != 0
        assert not N - 1 >= N
        assert N - N // 2 > 0
        assert N - smaller(N, 5) >= 0
    assert assumed == {}


def test_what_is_not_proved_is_answered_for_this_call_and_written_down() -> None:
    with assumptions() as assumed:
        assert N > M
        assert int(N) == 7
        assert hint_of(N * M) == 35
    assert [each.text for each in assumed] == ["m < n", "n == 7"]
    assert [each.is_equality for each in assumed] == [False, True]


def test_nobody_may_ask_outside_of_a_compilation() -> None:
    with pytest.raises(InternalError):
        bool(N == M)


def test_a_symbol_of_unknown_range_proves_nothing() -> None:
    free = symbol("k", 4, lowest=None)
    with assumptions() as assumed:
        assert free > 0
    assert [each.text for each in assumed] == ["0 < k"]


def test_c_text() -> None:
    assert count_text(12) == "12LL"
    assert count_text(N * 3 + 1) == "(3*n + 1)"
