"""What Python checks of exceptions, and how it links them, was not checked or was linked otherwise."""

import contextlib
import sys

import pytest

import plumbline
from support.as_in_plain_python import chain, difference, told


def groups(x):
    class Own(ExceptionGroup):
        pass

    class Mixed(BaseExceptionGroup, ValueError):
        pass

    def names_message():
        ExceptionGroup("a", [ValueError()]).message = "b"

    interrupted = [ValueError(), KeyboardInterrupt()]
    return [
        told(function)
        for function in (
            lambda: ExceptionGroup("x", [1]),
            lambda: ExceptionGroup("x", ()),
            lambda: ExceptionGroup("x", {1}),
            lambda: ExceptionGroup("x", ValueError()),
            lambda: ExceptionGroup("x", None),
            lambda: ExceptionGroup(1, [ValueError()]),
            lambda: ExceptionGroup("x", interrupted),
            lambda: ExceptionGroup("x", [BaseExceptionGroup("y", interrupted)]),
            lambda: Own("x", interrupted),
            lambda: Mixed("x", interrupted),
            lambda: type(BaseExceptionGroup("x", [ValueError()])).__name__,
            names_message,
        )
    ]


def clauses(x):
    def caught(raised, classes):
        try:
            raise raised
        except* classes:
            pass

    group = ExceptionGroup("x", [ValueError()])
    return [
        told(lambda raised=raised, classes=classes: caught(raised, classes))
        for raised in (OSError(), group)
        for classes in (ExceptionGroup, (TypeError, ExceptionGroup), (ValueError, 5), 5)
    ]


def linked(x):
    def sets(name, value):
        try:
            raise IndexError
        except IndexError as error:
            setattr(error, name, value)

    def of_another():
        try:
            raise IndexError
        except IndexError as error:
            trace = error.__traceback__
        other = BaseException().with_traceback(trace)
        return other.__traceback__ is trace

    names = ("__traceback__", "__cause__", "__context__")
    wrong = [told(lambda name=name: sets(name, 5)) for name in names]
    return wrong, told(lambda: BaseException().with_traceback(5)), of_another()


def cut(x):
    first, second, third = ValueError(1), ValueError(2), ValueError(3)
    try:
        try:
            raise first
        except ValueError:
            try:
                raise second
            except ValueError:
                try:
                    raise third
                except ValueError:
                    plumbline.graph_break()
                    raise first from None
    except ValueError as error:
        return chain(error)


def closed(x):
    try:
        try:
            raise ValueError(1)
        except ValueError as error:
            error.__context__ = error
            raise TypeError(2) from None
    except TypeError as error:
        return chain(error)


@contextlib.contextmanager
def raising(error):
    try:
        yield
    finally:
        raise error


def thrown_on(x):
    try:
        with contextlib.ExitStack() as stack:
            for number in (4, 3, 2):
                stack.enter_context(raising(ValueError(number)))
            raise ValueError(1)
    except ValueError as error:
        return chain(error)


def thrown_while_handled(x):
    def steps():
        try:
            yield
        finally:
            raise ValueError(3)

    generator = steps()
    next(generator)
    try:
        raise ValueError(1)
    except ValueError:
        try:
            generator.throw(ValueError(2))
        except ValueError:
            return chain(sys.exc_info()[1])


def initialised_again(x):
    error = ImportError("text", name="n")
    plumbline.graph_break()
    error.__init__()
    return error.msg, error.name, error.args


@pytest.mark.parametrize(
    "function", [groups, clauses, linked, cut, closed, thrown_on, thrown_while_handled, initialised_again]
)
def test_as_in_plain_python(function):
    assert not difference(function)
