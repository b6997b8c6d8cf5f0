"""What an exception's traceback holds are the variables of the program: operands that were waiting have ended."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import weakref

ended = []

class Ending:
    def __del__(self):
        ended.append('ended')

class Unequal:
    def __eq__(self, other):
        return None

async def doubled(value):
    return value * 2

def take(*given):
    return given

def seen_at(error):
    return type(error).__name__, list(ended)

def inner(x):
    LINES

def step(x):
    ended.clear()
    try:
        inner(x)
    except Exception as error:
        return seen_at(error), x + 1
"""


@pytest.mark.parametrize(
    "lines",
    [
        "take(doubled(x), [Unequal(), 3].index(Unequal()))",
        "take(Ending(), [Unequal(), 3].index(Unequal()))",
        "take(Ending(), int('text'))",
        "take([Ending(), x.item()], int('text'))",
        "kept = Ending(); take(kept, [Unequal()].index(1))",
        "kept = Ending(); kept = None; print(end=''); take(x.sum().item(), int('text'))",
        "take(Ending(), print(end=''), x.item(), [Unequal()].index(1))",
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine")
def test_they_have_ended(lines):
    assert difference_of(PROGRAM.replace("LINES", lines)) == ""
    assert difference_of(PROGRAM.replace("LINES", lines) + "\nstep = inner\n") == ""


def test_operands_in_a_unit_after_a_break():
    text = PROGRAM.replace("LINES", "take(doubled(x), [Unequal(), 3].index(Unequal()))")
    assert difference_of(text + "\ndef step(x):\n    take(doubled(x), [Unequal(), 3].index(Unequal()))\n") == ""
