"""Objects that a container let go of ended in our order where the unit had been given one: it held that to its end."""

import pytest

from support.played_programs import difference_of

_MODULE = """
ENDS = []
class Ending:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        ENDS.append(self.name)
class Holder: pass
stock = [Ending('a')]
def drop(things, log):  # a list: whether a call holds its arguments depends on hooks on frames, as stock's
    stock.append(things.pop())
    stock.clear()
    log += ENDS
def step(x):
    log = []
    stock.append(Ending('b'))
"""
_ACTIONS = {
    "clear": "stock.append(Ending('x')); stock.clear()",
    "two": "stock.append(Ending('x')); stock.append(Ending('y')); stock.clear()",
    "slice": "stock.append(Ending('x')); stock[:] = []",
    "del": "stock.append(Ending('x')); del stock[:]",
    "pop": "stock.append(Ending('x')); stock.pop()",
    "named": "v = Ending('x'); stock.append(v); stock.clear(); log += ENDS; v = None",
    "call": "drop([Ending('x')], log)",
    "new dictionary": "d = {1: Ending('x'), 2: Ending('y')}; d.clear()",
    "new entry": "d = {1: Ending('x')}; d[1] = Ending('y'); log += ENDS; del d[1]",
    "new list": "d = [Ending('x')]; d[0] = Ending('y'); log += ENDS; del d[0]",
    "new attribute": "h = Holder(); h.a = Ending('x'); h.a = 1",
    "new set": "h = {Ending('x')}; h.clear()",
}


@pytest.mark.parametrize("action", _ACTIONS.values(), ids=_ACTIONS)
def test_the_order_is_pythons(action: str):
    program = f"{_MODULE}    {action}; log += ENDS\n    log.append('end')\n    return log, x + 1\n"
    assert not difference_of(program, ("r0 = step(x0)", "r1 = step(x0)"))
