"""`error.name` was None where `__getattr__` or a property of the program raised: Python enters it after the look-up."""

import pytest

import plumbline
from support.played_programs import difference_of

PROGRAM = """
class Owner:
    def __getattr__(self, name):
        if name == 'explicit':
            raise AttributeError('text', name='given', obj=5)
        raise AttributeError(name)

    @property
    def broken(self):
        raise AttributeError('inside')

owner = Owner()

def step(x):
    try:
        TEXT
    except AttributeError as error:
        return error.name, error.obj is owner, error.args, x + 1
"""


@pytest.mark.parametrize(
    "text", ["owner.lacking", "owner.broken", "getattr(owner, 'lacking')", "owner.explicit", "owner.lacking()"]
)
def test_the_look_up_is_named(text):
    assert difference_of(PROGRAM.replace("TEXT", text)) == ""


def test_an_error_that_no_look_up_raises():
    assert difference_of(PROGRAM.replace("TEXT", "raise AttributeError('a')")) == ""


@pytest.mark.parametrize("value", ["1", "None", "'a'"])
def test_requires_grad_takes_truth_values_only(value):
    program = "def step(x):\n    try:\n        x.requires_grad = VALUE\n    except Exception as e:\n        return e\n"
    assert difference_of(program.replace("VALUE", value)) == ""


class Guarded:
    def __getattribute__(self, name):
        if name == "asked":
            raise AttributeError(name)
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        return f"{name}!"

    @property
    def broken(self):
        raise AttributeError("inside")


class Inheriting(Guarded):
    pass


def test_a_property_that_raises_has_the_attribute_looked_up_elsewhere():
    owner = Inheriting()

    def step(x):
        return owner.asked, owner.broken, owner.lacking

    compiled = plumbline.compile(step, backend="eager")
    assert compiled(1) == step(1) == ("asked!", "broken!", "lacking!")
    owner.lacking = 1
    Inheriting.broken = 2
    assert compiled(1) == step(1) == ("asked!", 2, 1)
