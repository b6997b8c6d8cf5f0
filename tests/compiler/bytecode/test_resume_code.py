"""Continuations run as the original would have from that instruction on."""

import sys
import types

import pytest

from plumbline.compiler.bytecode.instruction import decode, encode_exception_table, exception_table
from plumbline.compiler.bytecode.liveness import live_locals
from plumbline.compiler.bytecode.resume_code import NULL, VALUE, ResumeLayout, make_resume_function
from plumbline.compiler.bytecode.versions import RUNNING


def middle(function, name, nth=0):
    decoded = decode(function.__code__)
    return decoded, [i for i in decoded.instructions if i.name == name][nth]


def test_exception_table_round_trip():
    def f(x):
        try:
            with x as y:
                return y
        except ValueError:
            return 1
        finally:
            x.close()

    table = f.__code__.co_exceptiontable
    assert encode_exception_table(exception_table(table)) == table


def test_continue_after_a_call():
    def f(a, b):
        c = a + b
        d = len("xyz")
        return c * d + a

    decoded, call = middle(f, "CALL")
    layout = ResumeLayout(call.index + 1, (VALUE,), (), ("a", "c"))
    resume = make_resume_function(decoded, layout, globals())
    assert resume((10, 2, 5)) == 52


def test_continue_inside_try_reaches_the_handler():
    def f(x):
        try:
            y = len(x)
            return 10 // y
        except ZeroDivisionError:
            return "caught"

    decoded, call = middle(f, "CALL")
    resume = make_resume_function(decoded, ResumeLayout(call.index + 1, (VALUE,), (), ("x",)), globals())
    assert resume((0, "")) == "caught"
    assert resume((5, "")) == 2


def test_cells_are_shared_and_null_is_pushed():
    def f(x):
        total = 0

        def add(v):
            nonlocal total
            total += v
            return total

        return max(add(x), len("abc"))

    decoded, call = middle(f, "CALL", 1)
    called = (NULL, VALUE) if RUNNING < (3, 13) else (VALUE, NULL)
    layout = ResumeLayout(call.index + 1, (*called, VALUE, VALUE), ("total",), ())
    resume = make_resume_function(decoded, layout, globals())
    assert resume((max, 1, 9, types.CellType(0))) == 9


def test_function_without_locals():
    def f():
        return len("abc") + int("4")

    decoded, call = middle(f, "CALL")
    resume = make_resume_function(decoded, ResumeLayout(call.index + 1, (VALUE,), (), ()), globals())
    assert resume((100,)) == 104


def test_traceback_names_the_user_line():
    def f(a):
        b = len("x")
        return b // a

    decoded, call = middle(f, "CALL")
    resume = make_resume_function(decoded, ResumeLayout(call.index + 1, (VALUE,), (), ("a",)), globals())
    with pytest.raises(ZeroDivisionError):
        resume((1, 0))
    try:
        resume((1, 0))
    except ZeroDivisionError:
        last = sys.exc_info()[2]
        while last.tb_next:
            last = last.tb_next
        assert last.tb_lineno == f.__code__.co_firstlineno + 2


def test_liveness():
    def f(a, b):
        c = a + b
        print(c)
        for i in range(3):
            c = c + i
        return c

    decoded, call = middle(f, "CALL")
    assert live_locals(decoded)[call.index + 1] == {"c"}
    assert "a" in live_locals(decoded)[0]
