"""Frames that go on in plain Python got their values from frames of ours, which held what the program let go of."""

import pytest

from support.played_programs import difference_of

_SETUP = """
def tidy(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('shut')
class Ending:
    def __init__(self, log):
        self.log = log
    def __del__(self):
        self.log.append('gone')
async def none():
    return 2
def run(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
"""
BODIES = {
    "a loop over a generator": """
    for number in tidy(log):
        log.append(run(none()))
        break
""",
    "a name that is deleted": """
    held = Ending(log)
    log.append(run(none()))
    del held
""",
    "a handler around the call": """
    for number in tidy(log):
        try:
            log.append(1 // (run(none()) - 2))
        except ZeroDivisionError as error:
            log.append(str(error))
            break
""",
    "while an exception is handled": """
    try:
        raise ValueError('first')
    except ValueError as error:
        for number in tidy(log):
            run(none())
            break
        log.append(str(error))
""",
}


@pytest.mark.parametrize("name", BODIES)
def test_what_the_program_lets_go_of_ends(name: str):
    step = f"def step(x):\n    log = []{BODIES[name]}    log.append('after')\n    return log, x + 1\n"
    assert not difference_of(_SETUP + step)
