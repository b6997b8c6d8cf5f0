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
        ("0423240601f7x0 ta >adbmal< noitcnuf<", "0607e00601f7x0 ta >adbmal< noitcnuf<"),
        ("<function <lambda> bt 0y7f1060423240>", "<function <lambda> bt 0y7f10600e7060>"),
        (
            "[torch.FloatTensor [2]] is at version 2; expected version 0",
            "[torch.FloatTensor [2]] is at version 1; expected version 0",
        ),
    ],
)
def test_what_differs_between_runs_is_left_out(one, other):
    assert without_addresses(one) == without_addresses(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("0x1f", "0x2f"),
        ("{0x38680}", "{0x38681}"),
        ("f at 3", "f at 4"),
        ("0.1234567890123456", "0.1234567890123457"),
        ("123456789012345", "123456789012346"),
        ("a_long_name_of_nothing", "a_long_name_of_something"),
        ("1.2345678901234e-05", "1.2345678901235e-05"),
    ],
)
def test_numbers_of_the_program_are_compared(one, other):
    assert without_addresses(one) != without_addresses(other)
