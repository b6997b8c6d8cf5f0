"""Numbers that became symbols after they first changed: what the program computed of them was not always eager's."""

import bisect
import math

import pytest
import torch

import plumbline


def same_as_eager(function, calls):
    compiled = plumbline.compile(function, backend="eager", options={"strict": True})
    for args in calls:
        expected, found = function(*args), compiled(*args)
        assert repr(found) == repr(expected)


def test_a_condition_on_a_float_of_a_symbol_can_be_checked():
    """The guard called torch.sym_float, which it did not know: the caller saw a NameError."""

    def decayed(x, step):
        return x * (0.1 ** bisect.bisect_right([2, 5, 9], step))

    same_as_eager(decayed, [(torch.ones(2), step) for step in (0, 2, 3, 5, 10)])


def test_a_float_stays_a_float_where_its_value_became_known():
    """n * 0.5 was written as the number 0 once n was known to be 0."""

    def halves(x, n):
        return x, n * 0.5, [5, 6, 7][n], torch.arange(2) * (n * 0.5)

    same_as_eager(halves, [(torch.ones(2), n) for n in (2, 1, 0, 1, 0)])


ROUNDED = {
    "two products": lambda n: n * 0.1 * 3,
    "two sums": lambda n: (n + 0.1) + 0.2,
    "a sum times": lambda n: (n * 0.1 + 0.7) * n,
    "collected": lambda n: n * 0.1 + n * 0.2,
    "halved twice": lambda n: (n / 3) * 7 * 3,
    "roots": lambda n: 0.1 * math.sqrt(n) * 0.7,
}


@pytest.mark.parametrize("formula", ROUNDED.values(), ids=ROUNDED.keys())
def test_floats_of_symbols_are_rounded_in_the_order_of_the_program(formula):
    """sympy put (n * 0.1) * 3 together to n * 0.3, which has other bits."""

    def function(x, n):
        return formula(n), x * formula(n), formula(x.shape[0])

    same_as_eager(function, [(torch.ones(n, dtype=torch.float64), n) for n in range(2, 24)])


def test_zeros_keep_their_sign():
    def function(x, a):
        return x * a, min(a, 1.0), sorted([a, 0.0])

    same_as_eager(function, [(torch.ones(1), a) for a in (0.5, 2.0, -0.0, 0.0, -3.5, -0.0)])
