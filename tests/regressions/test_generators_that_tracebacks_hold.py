"""A generator that only a traceback holds ended at the next break, or never, instead of where its handler ends."""

import pytest

from support.played_programs import difference_of

_MODULE = """
import contextlib
def tidy(n, log):
    try:
        for i in range(n):
            yield i
    finally:
        log.append("shut")
def raising_inside(log):
    source = tidy(1, log)
    next(source)
    raise LookupError
def managed(log):
    with tidied(log) as number:
        yield number
@contextlib.contextmanager
def tidied(log):
    try:
        yield 5
    finally:
        log.append("t")
window = bytearray()
def step(x):
    log = []
"""
_END = """
    log.append("end")
    return log, x + 1
"""


def _plays_alike(body: str) -> bool:
    return not difference_of(_MODULE + body + _END)


@pytest.mark.parametrize("name", ["", " as error"])
@pytest.mark.parametrize("inside", ["window[1:1]", "pass", "print(end='')", "for number in managed(log): break"])
def test_the_end_of_a_handler(name: str, inside: str):
    assert _plays_alike(
        f"""
    for _ in range(2):
        try:
            raising_inside(log)
        except LookupError{name}:
            {inside}
            log.append("handled")
        log.append("after")
"""
    )


def test_an_exception_that_is_kept():
    assert _plays_alike(
        """
    try:
        raising_inside(log)
    except LookupError as error:
        kept = error
        print(end="")
        log.append("handled")
    log.append("after")
    print(end="")
    log.append("later")
    del kept
    log.append("gone")
"""
    )


def test_an_exception_that_goes_on():
    assert _plays_alike(
        """
    try:
        try:
            raising_inside(log)
        finally:
            print(end="")
            log.append("finally")
    except LookupError:
        log.append("handled")
    log.append("after")
"""
    )


def test_an_exception_that_leaves_the_function():
    program = _MODULE + "    log = LOG\n    print(end='')\n    raising_inside(log)\n"
    caller = """
LOG = []
def call(function, x):
    try:
        function(x)
    except LookupError:
        LOG.append("handled")
    LOG.append("after")
"""
    assert not difference_of(program + caller, ("r0 = call(step, x0)", "r1 = LOG"))


def test_an_exception_behind_another():
    assert _plays_alike(
        """
    try:
        try:
            raising_inside(log)
        except LookupError as error:
            print(end="")
            raise ValueError from error
    except ValueError as other:
        log.append("handled")
        print(end="")
        log.append("handled")
    log.append("after")
"""
    )


def test_an_exception_behind_a_member_of_a_group():
    assert _plays_alike(
        """
    try:
        raise TypeError
    except TypeError:
        try:
            raising_inside(log)
        except LookupError as error:
            try:
                missing
            except* NameError as group:
                group.exceptions
        log.append("handled")
    log.append("after")
"""
    )
