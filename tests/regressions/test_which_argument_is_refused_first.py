"""A call with several faults raises for the one that Python finds first: names in their order, then numbers."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
def called(PARAMETERS):
    return sorted(locals().items())

def attempt(*given, **named):
    try:
        return called(*given, **named)
    except TypeError as error:
        return str(error)

def step(x):
    return [
        attempt(1, 2, 3, 4, z=9),
        attempt(1, z=9, a=9),
        attempt(1, a=9, z=9),
        attempt(1, b=2, k=3),
        attempt(z=1, y=2),
        attempt(k=1),
        attempt(1, 2, 3, k=1),
        attempt(),
    ], x + 1
"""


@pytest.mark.parametrize(
    "parameters",
    ["a, b", "a, b=1", "a, /, b", "a, b, /", "a, *, k", "a, b=2, *, k", "a, *r, k", "a, /, **kw", "*r, **kw", ""],
)
def test_as_python_does(parameters):
    assert difference_of(PROGRAM.replace("PARAMETERS", parameters)) == ""
