"""An argument of a call that raises, at a graph break, stayed in the frame that its own traceback knew: a cycle."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
async def waits(log):
    pass

def step(x):
    coroutine = waits([])
    errors = [ValueError()]
    {statement}
"""
STATEMENTS = (
    "coroutine.throw(ValueError())",
    "coroutine.throw(errors.pop())",
    "coroutine.throw(*[ValueError()])",
    "coroutine.throw(ValueError)",
    "coroutine.throw([ValueError()][0])",
)
HISTORY = ("given = x0 + 1", "watched = reference(given)", "step(given)", "del given")


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("handled", [True, False])
def test_nothing_holds_the_inputs_after_the_call(handled, statement):
    if handled:
        statement = f"try:\n        {statement}\n    except ValueError as error:\n        pass"
    assert difference_of(PROGRAM.replace("{statement}", statement), HISTORY) == ""


def test_an_error_that_is_kept_keeps_the_variables_of_its_frame():
    program = """
async def waits(log):
    pass
kept = []
def step(x):
    y = x + 1
    coroutine = waits([])
    try:
        coroutine.throw(ValueError())
    except ValueError as error:
        kept.append(error)
"""
    assert difference_of(program, HISTORY) == ""
