"""Generators that are handed over: their state can be read and set until plain Python starts them."""

import types

import pytest

from plumbline.compiler.bytecode.instruction import decode
from plumbline.compiler.bytecode.kept_generator import kept_state, new_generator, set_state
from plumbline.compiler.bytecode.resume_chain import Place
from plumbline.compiler.bytecode.resume_code import VALUE, ResumeLayout


def behind_yield(function, stack=(), cells=(), names=()):
    """Return the place behind the first yield."""
    decoded = decode(function.__code__)
    index = next(i.index for i in decoded.instructions if i.name == "YIELD_VALUE") + 1
    return Place(decoded, globals(), ResumeLayout(index, stack, cells, names))


def made(place, *values):
    generator = new_generator("name", "qualified.name")
    set_state(generator, place, values)
    return generator


def careful(log, x):
    try:
        for i in (1, 2, 3):
            try:
                got = yield x + i
                log.append(got)
            except ValueError as error:
                log.append(str(error))
                x += 10
    finally:
        log.append("finally")
    return "end"


@pytest.fixture
def log():
    return []


def at_the_second(log):
    rest = iter((1, 2, 3))
    next(rest)
    return made(behind_yield(careful, (VALUE,), (), ("log", "x")), rest, log, 5)


def test_sends_and_returns(log):
    generator = at_the_second(log)
    assert isinstance(generator, types.GeneratorType)
    assert (generator.__name__, generator.__qualname__) == ("name", "qualified.name")
    assert generator.send("hello") == 7
    assert next(generator) == 8
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"
    assert log == ["hello", None, None, "finally"]


def test_exception_is_thrown_in_where_the_frame_stands(log):
    generator = at_the_second(log)
    assert generator.throw(ValueError("thrown")) == 17
    with pytest.raises(KeyError) as error:
        generator.throw(KeyError("k"))
    assert error.value.__context__ is None
    assert log == ["thrown", "finally"]


def test_close_and_loss_run_what_is_left(log):
    at_the_second(log).close()
    assert log == ["finally"]
    generator = at_the_second(log)
    del generator
    assert log == ["finally", "finally"]


def test_not_started(log):
    decoded = decode(careful.__code__)
    start = Place(decoded, globals(), ResumeLayout(0, (), (), ("log", "x")))
    assert list(made(start, log, 1)) == [2, 3, 4]
    made(start, log, 1).close()
    assert log == [None, None, None, "finally"]


def test_ended():
    assert list(made(None)) == []
    with pytest.raises(ValueError, match="thrown"):
        made(None).throw(ValueError("thrown"))


def test_cells_are_shared():
    def counting():
        n = 0

        def up():
            nonlocal n
            n += 1
            return n

        while n < 3:
            yield up()

    up = next(c for c in counting.__code__.co_consts if isinstance(c, types.CodeType))
    cell = types.CellType(1)
    function = types.FunctionType(up, globals(), "up", None, (cell,))
    assert list(made(behind_yield(counting, (), ("n",), ("up",)), cell, function)) == [2, 3]
    assert cell.cell_contents == 3


def test_stop_iteration_inside_is_an_error():
    def stops():
        yield 1
        raise StopIteration

    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        next(made(behind_yield(stops)))


def test_state_is_readable_until_it_is_started(log):
    generator = at_the_second(log)
    assert kept_state(generator).values[1:] == (log, 5)
    set_state(generator, None, ())
    assert kept_state(generator).place is None
    generator = at_the_second(log)
    next(generator)
    assert kept_state(generator) is None
    assert kept_state(item for item in ()) is None
