"""Exceptions whose C class does more than keep its arguments: capture took every class for a plain BaseException."""

import pytest
import torch

import plumbline

MADE = {
    "an OSError is of the class of its number": lambda: type(OSError(17, "there already")),
    "an OSError takes its arguments apart": lambda: OSError(2, "no such file", "f.txt").filename,
    "a name as keyword": lambda: AttributeError("m", name="n").name,
    "what cannot be decoded": lambda: UnicodeDecodeError("utf8", b"a", 0, 1, "bad").reason,
    "the exit code": lambda: SystemExit(3).code,
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE.keys())
def test_fields_are_those_of_eager(make):
    compiled = plumbline.compile(lambda x: (x + 1, make()), backend="eager")
    assert compiled(torch.ones(1))[1] == make()


def test_an_exception_that_leaves_the_function_is_whole():
    """It was made by `__new__` alone, which leaves StopIteration without its value and ImportError without words."""
    kept = []

    def keeps(x):
        kept.extend([StopIteration(4), SystemExit(3), ImportError("words")])
        return x + 1

    plumbline.compile(keeps, backend="eager")(torch.ones(1))
    assert (kept[0].value, kept[1].code, str(kept[2])) == (4, 3, "words")


def test_an_error_of_python_itself_tells_what_was_looked_up():
    def function(x):
        try:
            return x.shape.nothing
        except AttributeError as error:
            return x + 1, error.name, type(error.obj).__name__

    assert plumbline.compile(function, backend="eager")(torch.ones(1))[1:] == ("nothing", "Size")
