"""Frames that called one another go on as the originals would have."""

import types

import pytest

from plumbline.compiler.bytecode.instruction import decode
from plumbline.compiler.bytecode.resume_chain import Place, make_chain_function
from plumbline.compiler.bytecode.resume_code import VALUE, ResumeLayout


def after_call(function, stack=(), cells=(), names=(), nth=0, pushes=False):
    """Return the place after the nth call of a function; pushes: the result of that call is given."""
    decoded = decode(function.__code__)
    call = [i for i in decoded.instructions if i.name in ("CALL", "CALL_KW")][nth]
    return Place(decoded, globals(), ResumeLayout(call.index + 1, stack + (VALUE,) * pushes, cells, names))


def inner(a):
    b = len(a)
    return 10 // b


def outer(a, b):
    return b + inner(a) * b


def careful(a, b):
    try:
        b = b + inner(a)
    except ZeroDivisionError as error:
        return b, str(error)
    return b


def outermost(a):
    done = []
    try:
        return outer(a, 3), done
    except ZeroDivisionError:
        return "caught outside"
    finally:
        done.append("finally")


def test_result_is_pushed_on_the_callers_stack():
    run = make_chain_function((after_call(inner, pushes=True), after_call(outer, (VALUE,), names=("b",))))
    assert run([(5, 100, 7)]) == 100 + 2 * 7


def test_exception_goes_to_the_handler_around_the_call():
    run = make_chain_function((after_call(inner, pushes=True), after_call(careful, (VALUE,), names=("b",))))
    assert run([(0, 4, 4)])[0] == 4
    assert run([(2, 4, 4)]) == 9


def test_frames_without_a_handler_are_left():
    between, outside = after_call(outer, (VALUE,), names=("b",)), after_call(outermost, names=("done",))
    run, done = make_chain_function((after_call(inner, pushes=True), between, outside)), []
    assert run([(0, 1, 2, done)]) == "caught outside"
    assert done == ["finally"]
    assert run([(5, 1, 2, done)]) == (5, ["finally", "finally"])


def test_exception_without_a_handler_leaves_the_chain_with_its_context():
    run = make_chain_function((after_call(inner, pushes=True), after_call(outer, (VALUE,), names=("b",))))
    with pytest.raises(ZeroDivisionError) as caught:
        run([(0, 1, 2)])
    assert caught.value.__context__ is None


def test_handler_leaves_no_exception_behind():
    def raises_after(a):
        try:
            inner(a)
        except ZeroDivisionError:
            a = "after"
        raise ValueError(a)

    run = make_chain_function((after_call(inner, pushes=True), after_call(raises_after)))
    with pytest.raises(ValueError, match="after") as caught:
        run([(0,)])
    assert caught.value.__context__ is None


def test_cells_are_those_of_each_frame():
    def counted(x):
        total = x

        def add(n):
            nonlocal total
            len("any")
            total += n
            return total

        return add(1) + total

    add = next(c for c in counted.__code__.co_consts if isinstance(c, types.CodeType))
    decoded = decode(add)
    call = next(i for i in decoded.instructions if i.name == "CALL")
    inside = Place(decoded, globals(), ResumeLayout(call.index + 1, (VALUE,), ("total",), ("n",)))
    cell = types.CellType(10)
    run = make_chain_function((inside, after_call(counted, cells=("total",))))
    assert run([(3, cell, 5, cell)]) == 15 + 15
