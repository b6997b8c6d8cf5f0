"""The text of a group that `except*` makes around a single exception named a list in place of a tuple."""

import pytest

from support.played_programs import difference_of

PROGRAMS = {
    "except star": """
def step(x):
    log = []
    try:
        try:
            raise ExceptionGroup('e', [ValueError(1), KeyError(2)])
        except* ValueError as e:
            log.append(repr(e))
            raise TypeError('t')
    except* KeyError as e:
        log.append(('k', repr(e)))
    except* TypeError as e:
        log.append(('t', repr(e), repr(e.exceptions[0].__context__)))
    return x * 2, log
""",
    "except star nested in": """
def step(x):
    log = []
    try:
        try:
            1 / 0
        except ZeroDivisionError as z:
            raise ExceptionGroup('e', [ValueError(1), z]) from z
        finally:
            log.append('fin')
    except* ZeroDivisionError as e:
        log.append((repr(e), repr(e.__cause__), repr(e.__context__)))
        try:
            raise KeyError(3)
        except KeyError as k:
            log.append(repr(k.__context__))
    except* ValueError as e:
        try:
            log.append('v')
        finally:
            log.append('vf')
    return x * 2, log
""",
    "except star plain": """
def step(x):
    log = []
    try:
        try:
            raise ValueError(1)
        except* ValueError as e:
            log.append((repr(e), repr(e.__context__)))
            raise
    except* ValueError as e:
        log.append(repr(e))
    for i in range(3):
        try:
            if i == 1:
                raise KeyError(i)
            if i == 2:
                raise ExceptionGroup('x', [KeyError(2), ExceptionGroup('y', [TypeError(3)])])
        except* KeyError as k:
            log.append(len(k.exceptions))
        except* TypeError as t:
            log.append(repr(t))
        else:
            log.append('else')
        finally:
            log.append('fin')
    return x * 2, log
""",
    "except star escape": """
def step(x):
    log = []
    try:
        try:
            raise ExceptionGroup('e', [ValueError(1), KeyError(2)])
        except* ValueError:
            try:
                raise OSError(3)
            except OSError as o:
                log.append(str(o))
            log.append('v')
    except ExceptionGroup as e:
        log.append(repr(e))
    return x * 2, log
""",
    "except star break": """
def step(x):
    log = []
    try:
        try:
            print('a')
            raise ExceptionGroup('e', [ValueError(1), KeyError(2)])
        finally:
            log.append('f')
    except* ValueError as e:
        print('b')
        log.append(repr(e))
    except* KeyError as e:
        try:
            print('c')
            raise IndexError(4)
        except IndexError as i:
            log.append(repr(i.__context__))
    return x * 2, log
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_does_as_plain_python_does(name):
    module, _, history = PROGRAMS[name].partition("#--\n")
    statements = tuple(history.splitlines())
    assert (difference_of(module, statements) if statements else difference_of(module)) == ""
