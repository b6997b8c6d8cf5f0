"""The test that tells small calls by their arguments alone."""

import numpy as np
import pytest

from plumbline.compiler.frontend.units.small_calls import SmallCalls, elements_of


def small(*calls, most=0):
    found = SmallCalls()
    for arguments in calls:
        assert found.takes(arguments)
        found.add(arguments, most)
    return found


def takes(found, *arguments):
    (test,) = found.tests
    return test(*arguments)


def test_nothing_is_small_before_a_capture_has_said_so():
    assert SmallCalls().tests == []


def test_arrays_together_have_at_most_so_many_elements():
    found = small((np.ones(3), np.ones(2)), most=10)
    assert takes(found, np.ones((2, 3)), np.ones(4))
    assert not takes(found, np.ones((2, 3)), np.ones(5))


def test_the_call_that_was_captured_is_small_whatever_was_reckoned():
    assert takes(small((np.ones(7),), most=3), np.ones(7))


def test_limits_only_grow():
    found = small((np.ones(7),), (np.ones(3),))
    assert takes(found, np.ones(7))
    assert not takes(found, np.ones(8))


@pytest.mark.parametrize(
    ("known", "fits", "fits_not"),
    [
        (2.5, (-1.0, float("nan"), 1e300), (1, True, None, "a", np.float64(1))),
        (3, (3, 8, -8), (9, -9, 3.0, True)),
        (100, (200, -200), (201,)),
        (True, (True,), (False, 1, None)),
        (None, (None,), (False, 0)),
        ("sum", ("sum", "".join(["su", "m"])), ("mean", None)),
        (np.float64(1), (np.float64(2),), (1.0, np.float32(1))),
    ],
)
def test_other_arguments_are_of_the_kind_that_was_captured(known, fits, fits_not):
    found = small((np.ones(3), known))
    for value in fits:
        assert takes(found, np.ones(3), value), value
    for value in fits_not:
        assert not takes(found, np.ones(3), value), value


class Sub(np.ndarray):
    """A subclass of arrays."""


@pytest.mark.parametrize("other", [[1.0], (np.ones(2),), {"a": 1}, 1j, np.int64(2), np.ones(3).view(Sub), object()])
def test_what_else_there_is_makes_no_small_call(other):
    assert not SmallCalls().takes((np.ones(3), other))
    assert not takes(small((np.ones(3), np.ones(3))), np.ones(3), other)


def test_calls_without_an_array_are_not_small():
    assert not SmallCalls().takes((1, 2.0))


def test_forms_and_captures_have_an_end():
    found = small(*[(np.ones(3), flag) for flag in (True, False, None, 1.0)])
    assert not found.takes((np.ones(3), "text"))
    again = small(*[(np.ones(size),) for size in range(1, 17)])
    assert not again.takes((np.ones(17),))


def test_one_test_takes_every_form():
    found = small((np.ones(3), None), (np.ones(4), 2))
    assert takes(found, np.ones(3), None)
    assert takes(found, np.ones(4), 2)
    assert not takes(found, np.ones(4), None)


def test_a_trial_is_worth_it_for_few_elements_and_until_one_was_in_vain():
    found = SmallCalls()
    assert found.may_try((np.ones(50),), 100)
    assert not found.may_try((np.ones(51),), 100)
    found.tried()
    assert not found.may_try((np.ones(1),), 100)
    found.forget()
    assert found.may_try((np.ones(1),), 100)


def test_forgetting_keeps_the_list_that_callers_read():
    found = small((np.ones(3),))
    tests = found.tests
    found.forget()
    assert tests == []
    assert found.tests is tests
    assert found.takes((np.ones(3),))


def test_elements_of_arrays_are_added():
    assert elements_of((np.ones((2, 3)), 5, np.ones(()), None)) == 7
