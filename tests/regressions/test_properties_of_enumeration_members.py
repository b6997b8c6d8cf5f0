"""What members of enumerations and functions in C have of their own is read at each call, by properties as well."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import enum

class Planet(enum.Enum):
    EARTH = (5.9, 6.3)
    MARS = (1, 3.4)

    def __init__(self, mass, radius):
        self.mass, self.radius = mass, radius

    @property
    def weight(self):
        return self.mass / 1

def step(x, planet=Planet.EARTH):
    return EXPRESSION, x + 1
"""
HISTORY = ("r0 = step(x0)", "Planet.EARTH.mass = 1.0", "r1 = step(x0)", "Planet.EARTH.mass = 0.5", "r2 = step(x1)")


@pytest.mark.parametrize(
    "expression",
    [
        "Planet.EARTH.weight",
        "planet.weight, planet.mass",
        "sorted(vars(planet)), vars(planet)['mass']",
        "[each.weight for each in Planet]",
        "sorted(Planet, key=lambda each: each.weight)[0].name",
    ],
)
def test_as_in_plain_python(expression):
    assert difference_of(PROGRAM.replace("EXPRESSION", expression), HISTORY) == ""


@pytest.mark.parametrize("owner", ["numpy.sin", "torch.ops.aten.add"])
def test_attributes_that_functions_in_c_are_given(owner):
    module = f"""
import numpy
owner = {owner}
vars(owner).pop('given_here', None)

def step(x):
    return sorted(name for name in vars(owner) if name == 'given_here'), hasattr(owner, 'given_here'), x + 1
"""
    history = ("r0 = step(x0)", "owner.given_here = 1", "r1 = step(x0)", "del owner.given_here", "r2 = step(x0)")
    assert difference_of(module, history) == ""
