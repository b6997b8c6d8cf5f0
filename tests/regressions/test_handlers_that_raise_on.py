"""What a handler raises leaves it: behind compiled code no exception is being handled any more."""

import sys

import pytest
import torch

import plumbline


class Thing:
    pass


def tidied():
    try:
        yield 1
    finally:
        pass


def raising_with_a_generator():
    source = tidied()
    next(source)
    raise LookupError


def raising_behind_a_break(x, thing):
    try:
        raising_with_a_generator()
    except LookupError:
        plumbline.graph_break()
        raise ValueError from None


def raising_on(x, thing):
    try:
        raising_with_a_generator()
    except LookupError:
        plumbline.graph_break()
        raise


def deleting(x, thing):
    try:
        raising_with_a_generator()
    except LookupError as error:
        del thing.nothing
        return error


def nested(x, thing):
    try:
        raising_with_a_generator()
    except LookupError:
        try:
            raising_with_a_generator()
        except LookupError:
            plumbline.graph_break()
            raise KeyError from None


def in_a_finally(x, thing):
    try:
        raising_with_a_generator()
    finally:
        plumbline.graph_break()
        thing.nothing  # noqa: B018  # it raises


def under_a_manager(x, thing):
    with torch.no_grad():
        try:
            raising_with_a_generator()
        except LookupError:
            plumbline.graph_break()
            raise ValueError from None


PROGRAMS = [raising_behind_a_break, raising_on, deleting, nested, in_a_finally, under_a_manager]


def handled_after(run):
    """Return what is being handled behind a call, and the kind of its error, in a frame whose state ends with it."""
    try:
        run(torch.ones(1), Thing())
    except Exception as error:
        kind, context = type(error), error.__context__
    yield sys.exc_info()[0], kind, type(context)


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_handled_behind_the_call(program):
    compiled = plumbline.compile(program, backend="eager")
    for _ in range(2):
        assert next(handled_after(compiled)) == next(handled_after(program))
        assert next(handled_after(compiled))[0] is None
