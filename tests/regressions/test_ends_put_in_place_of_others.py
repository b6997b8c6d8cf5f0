"""What a later call overwrites had another value when the code was compiled: its finaliser ran with the graph's end."""

import pytest

from support.played_programs import difference_of

_MODULE = """
ENDS = []
class Ending:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        ENDS.append(self.name)
class Owner: pass
owner, table, last = Owner(), {'part': 1}, 3
def step(x):
    global last
"""
_WRITES = {
    "attribute": ("owner.part", "owner.part = None"),
    "new attribute": ("owner.part", "del owner.part"),
    "item": ("table['part']", "table['part'] = 'a'"),
    "new item": ("table['part']", "table.clear()"),
    "global": ("last", "last = 2.5"),
}


@pytest.mark.parametrize(("place", "before"), _WRITES.values(), ids=_WRITES)
def test_it_ends_at_the_write(place: str, before: str):
    program = f"{_MODULE}    {place} = 4\n    log = list(ENDS)\n    return log, x + 1\n"
    history = ["r0 = step(x0)", before, "r1 = step(x0)", f"{place} = Ending('again')", "r2 = step(x0)", "r3 = step(x0)"]
    assert not difference_of(program, [each for each in history if each != "del owner.part"])
    assert not difference_of(program, history)
