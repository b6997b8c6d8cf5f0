"""An attribute that is deleted and set again is the last one of `__dict__`, within the call as after it."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
class Plain:
    pass

kept = Plain()
kept.a, kept.z = 1, 5

def step(x):
    LINES
    return seen, x + 1
"""


@pytest.mark.parametrize(
    "lines",
    [
        "kept.b = 1; del kept.a; kept.a = 3; seen = list(kept.__dict__), list(vars(kept).values())",
        "space = vars(kept); kept.b = 1; del space['a']; kept.a = 3; seen = list(space)",
        "del kept.a; kept.b = 1; kept.a = 1; del kept.b; kept.b = 2; seen = list(vars(kept).items())",
        "kept.b = 2; del kept.z; kept.a = kept.b; kept.z = 1; del kept.a; seen = list(vars(kept)); kept.a = 1",
        "kept.c = 1; kept.a = 4; seen = list(kept.__dict__.items())",
    ],
)
def test_their_order(lines):
    assert difference_of(PROGRAM.replace("LINES", lines)) == ""
