"""Texts of two runs are compared without what no two runs share: addresses, also short ones."""

import pytest

from plumbline.fuzz.python_programs.observation import without_addresses


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<function f at 0x7f3741c8b4c0>", "<function f at 0x7f3741c8b4d0>"),
        ("defaultdict(<function <lambda> at 0x38680>, {})", "defaultdict(<function <lambda> at 0x7f3741c8>, {})"),
        ("<FUNCTION F AT 0X38680>", "<FUNCTION F AT 0X386A>"),
        ("<function f at 0x38", "<function f at 0x7f"),
    ],
)
def test_addresses_are_left_out(one, other):
    assert without_addresses(one) == without_addresses(other)


@pytest.mark.parametrize(("one", "other"), [("0x1f", "0x2f"), ("{0x38680}", "{0x38681}"), ("f at 3", "f at 4")])
def test_numbers_of_the_program_are_compared(one, other):
    assert without_addresses(one) != without_addresses(other)
