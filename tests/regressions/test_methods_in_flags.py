"""Found by `fuzz programs`: what is no flag was called a NoneType by the error of a membership test."""

import enum

import pytest

import plumbline


class Mode(enum.IntFlag):
    FAST = 1


class Thing:
    def method(self):
        pass


@pytest.mark.parametrize(
    "item", [Thing().method, len, 1.5, "a", [1]], ids=["method", "builtin", "float", "text", "list"]
)
@pytest.mark.parametrize("flags", [Mode.FAST, Mode], ids=["member", "class"])
def test_the_error_names_the_type(flags, item):
    def program():
        try:
            return item in flags
        except TypeError as error:
            return str(error)

    assert plumbline.compile(program, backend="eager")() == program()
