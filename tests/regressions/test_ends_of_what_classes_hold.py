"""An object with a finaliser that a class lets go of ended after the call, not where the attribute is assigned."""

import pytest

from support.played_programs import difference_of

_MODULE = """
ENDS = []
class Ending:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        ENDS.append(self.name)
class Owner:
    pass
Owner.part = Ending("first")
def step(x):
    log = [list(ENDS)]
    CHANGE
    log.append(list(ENDS))
    return log, x + 1
"""


@pytest.mark.parametrize("change", ["Owner.part = len", "Owner.part = x", "del Owner.part; Owner.part = 3"])
def test_the_end_comes_with_the_change(change):
    assert not difference_of(_MODULE.replace("CHANGE", change))
