"""A bare `raise` in `except*` behind a graph break lost the shape of the group: its parts had other tracebacks."""

import pytest

from support.played_programs import difference_of

_MODULE = """
def shape(error):
    if not isinstance(error, BaseExceptionGroup):
        return repr(error)
    inside = [shape(one) for one in error.exceptions]
    return type(error).__name__, error.message, inside, shape(error.__cause__), shape(error.__context__)
def nested():
    last = ExceptionGroup("last", [ValueError(3), ExceptionGroup("inmost", [KeyError(4)])])
    return ExceptionGroup("outer", [ExceptionGroup("inner", [ValueError(1), TypeError(2)]), last])
def step(x):
    try:
        return inner(x)
    except BaseException as error:
        return shape(error)
"""
_PROGRAMS = {
    "the first clause": """
def inner(x):
    try:
        raise nested()
    except* ValueError:
        x.sum().item()
        raise
""",
    "one of several clauses": """
def inner(x):
    try:
        raise nested()
    except* KeyError:
        x.sum().item()
        raise
    except* ValueError:
        print("second")
        raise
""",
    "a clause inside a clause": """
def inner(x):
    try:
        raise nested()
    except* ValueError:
        print("first")
        try:
            raise
        except* ValueError:
            x.sum().item()
            raise
    except* TypeError as part:
        raise KeyError(7) from part
""",
    "a part that is raised by name": """
def inner(x):
    try:
        raise nested()
    except* KeyError as part:
        print("first")
        again = part
        raise again
    except* ValueError as part:
        x.sum().item()
        raise part.exceptions[0]
""",
}


@pytest.mark.parametrize("program", _PROGRAMS)
def test_what_a_bare_raise_leaves(program):
    assert not difference_of(_MODULE + _PROGRAMS[program])
