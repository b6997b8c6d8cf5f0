"""`Color(tensor)` made an object that was no member: a member of an enumeration is looked up, never made."""

import enum

import pytest
import torch

import plumbline


class Color(enum.Enum):
    RED = 1
    GREEN = (2, 3)


VALUES = {
    "a tensor": lambda x: x,
    "a list of a tensor": lambda x: [x],
    "a list": lambda x: [1],
    "a tuple of a tensor": lambda x: (x, 3),
    "a value": lambda x: 1,
    "a tuple": lambda x: (2, 3),
    "a size": lambda x: x.shape[0],
    "a keyword": lambda x: {"value": 1},
    "no member": lambda x: "RED",
}


@pytest.mark.parametrize("name", VALUES)
def test_a_member_by_its_value(name):
    def program(x):
        value = VALUES[name](x)
        try:
            member = Color(**value) if isinstance(value, dict) else Color(value)
        except (ValueError, TypeError) as error:
            return type(error), str(error)
        return member, member.name, member is Color.RED

    x = torch.zeros(1)
    assert plumbline.compile(program, backend="eager")(x) == program(x)
