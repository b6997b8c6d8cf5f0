"""`Dog.__base__` and `Dog.mro()` were read once: a class that is given other bases between calls was not noticed."""

import pytest

from support.played_programs import difference_of

MODULE = """
class Animal: pass
class Louder: pass
class Dog(Animal): pass
class Meta(type): pass
class Puppy(Dog): pass
def step(x):
    return x * 2, {expression}
"""
HISTORY = ("r0 = step(x0)", "Dog.__bases__ = (Louder,)", "r1 = step(x0)", "r2 = step(x1)")


@pytest.mark.parametrize(
    "expression",
    [
        "Dog.__base__",
        "Dog.__base__ is Animal",
        "Dog.__bases__",
        "Dog.mro()[1]",
        "type.mro(Dog)[1]",
        "Puppy.__base__.__base__",
        "Puppy.mro()[2].__name__",
        "Dog().__class__.__base__",
        "issubclass(Puppy, Louder)",
    ],
)
def test_other_bases_are_noticed(expression):
    assert difference_of(MODULE.format(expression=expression), HISTORY) == ""
