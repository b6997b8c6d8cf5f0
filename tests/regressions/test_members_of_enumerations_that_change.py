"""The name and the value of a member of an enumeration were taken as fixed; they are attributes that can be set."""

import enum

import pytest
import torch

import plumbline


def made():
    class Color(enum.Enum):
        RED = 1

    class Level(enum.IntEnum):
        LOW = 1

    class Flags(enum.Flag):
        ONE = 1
        TWO = 2

    return Color, Level, Flags


QUESTIONS = {
    "value": lambda color, level, flags: (color.RED.value, level.LOW.value, flags.ONE.value),
    "_value_": lambda color, level, flags: (color.RED._value_, level.LOW._value_),
    "name": lambda color, level, flags: (color.RED.name, level.LOW.name),
    "repr": lambda color, level, flags: (repr(color.RED), repr(level.LOW)),
    "str": lambda color, level, flags: str(color.RED),
    "format": lambda color, level, flags: f"{color.RED} {color.RED!r}",
    "truth": lambda color, level, flags: bool(flags.ONE),
    "among": lambda color, level, flags: (flags.ONE in flags.TWO, flags.TWO in flags.ONE),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_members_are_asked_at_every_call(question):
    enumerations = made()

    def program(x):
        return x + 1, question(*enumerations)

    x = torch.ones(2)
    compiled = plumbline.compile(program, backend="eager")
    assert compiled(x)[1] == program(x)[1]
    for enumeration in enumerations:
        first = next(iter(enumeration))
        first._value_, first._name_ = 0, "NEW"
    assert compiled(x)[1] == program(x)[1]
