"""Python makes `__annotations__` of a class that has none when they are asked for; capture asked before the program."""

import pytest

from support.played_programs import difference_of

_ASKED = ["hasattr(Empty, '__annotations__')", "getattr(Empty, '__annotations__', None)", "Empty.__annotations__ == {}"]


@pytest.mark.parametrize("asked", _ASKED)
def test_they_are_made_where_the_program_asks(asked: str):
    program = f"""
class Empty: pass
class Some:
    a: int
def step(x):
    log = [sorted(vars(Empty))]
    log.append(({asked}, list(Some.__annotations__)))
    return log, sorted(vars(Empty)), x + 1
"""
    assert not difference_of(program, ("r0 = step(x0)", "r1 = step(x0)"))
