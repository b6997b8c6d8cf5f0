"""The `__dict__` of a class shows the attributes that the call has set and deleted, whenever it was asked for."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import inspect

class Plain:
    first = 1
    second = 2

def own(space):
    return [(name, space[name]) for name in space if not name.startswith('__')]

def step(x):
    Plain.third = 0
    LINES
    return seen, x + 1
"""


@pytest.mark.parametrize(
    "lines",
    [
        "Plain.first += 1; seen = Plain.__dict__['first'], vars(Plain).get('first'), Plain.first",
        "Plain.fourth = x; seen = 'fourth' in Plain.__dict__, 'fourth' in vars(Plain), own(vars(Plain))",
        "space = Plain.__dict__; Plain.fifth = 5; Plain.first = 7; seen = own(space)",
        "space = vars(Plain); del Plain.third; seen = own(space), 'third' in space, 'third' in Plain.__dict__",
        "del Plain.first; Plain.first = 8; seen = own(vars(Plain))",
        "space = Plain.__dict__; len(space); del Plain.first; Plain.first = 8; seen = own(space)",
        "Plain.sixth = 6; seen = inspect.getattr_static(Plain, 'sixth'); del Plain.sixth",
        "Plain.sixth = 6; del Plain.sixth; seen = inspect.getattr_static(Plain, 'sixth', None)",
        "Plain.twice = lambda self: 2; seen = Plain.__dict__['twice'](1), Plain().twice()",
        "space = vars(Plain); Plain.second = int(x.sum().item()); seen = own(space), space['second']",
        "space = vars(Plain); print(end=''); Plain.second = 4; seen = space['second'], own(space), 'first' in space",
        "space = Plain.__dict__; Plain.first = 3; seen = [*zip(*own(space))], [*space.keys()][-1], len(space) > 3",
    ],
)
def test_as_in_plain_python(lines):
    assert difference_of(PROGRAM.replace("LINES", lines)) == ""
