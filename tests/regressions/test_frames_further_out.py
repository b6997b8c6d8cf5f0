"""Found by hand: a warning with `stacklevel=2`, and a frame two calls out, named the generated function.

The inlined function that asked became a unit of its own, whose caller was no longer the program's frame.
"""

import inspect
import logging
import sys
import traceback
import warnings

import pytest
import torch

import plumbline


def asking() -> tuple[str, int]:
    return sys._getframe(1).f_code.co_name, sys._getframe(1).f_lineno


def line_of_the_caller(x):
    return asking(), x + 1


def line_in_the_middle(x):
    found = line_of_the_caller(x * 2)
    return found, asking()


def after_a_break(x):
    print(end="")
    return asking(), x + 1


def locals_of_the_caller(x):
    def inner():
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        return frame.f_back.f_locals["y"]

    y = x * 2
    return inner(), y


def frame_that_ended(x):
    def gone():
        return sys._getframe()

    frame = gone()
    return frame.f_code.co_name, frame.f_back is None, x + 1


def frame_kept(x):
    def mine():
        return sys._getframe(1)

    frame = mine()
    return frame.f_code.co_name, frame.f_lineno, x + 1


def whole_stack(x):
    def inner():
        return [(one.function, one.lineno) for one in inspect.stack()[:2]]

    return inner(), x + 1


def extracted(x):
    def inner():
        return [(one.name, one.lineno) for one in traceback.extract_stack()[-2:]]

    return inner(), x + 1


def warned(x):
    def old(value):
        warnings.warn("old", DeprecationWarning, stacklevel=2)
        return value + 1

    return old(x) * 2


def logged(x):
    def said(value):
        logging.getLogger("frames").error("said", stacklevel=2)
        return value + 1

    return said(x) * 2


PROGRAMS = [
    line_of_the_caller,
    line_in_the_middle,
    after_a_break,
    locals_of_the_caller,
    frame_that_ended,
    frame_kept,
    whole_stack,
    extracted,
    warned,
    logged,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_frames_are_those_of_the_program(program, caplog) -> None:
    def seen(function) -> str:
        caplog.clear()
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            result = function(torch.ones(2))
        about = [(str(one.message), one.filename, one.lineno) for one in given]
        return repr((result, about, [(one.funcName, one.lineno) for one in caplog.records]))

    assert seen(plumbline.compile(program, backend="eager")) == seen(program)
