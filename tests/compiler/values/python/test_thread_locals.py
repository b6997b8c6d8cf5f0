"""`threading.local()` in captured code: each thread reads and writes what is its own, in one graph."""

import threading

import pytest
import torch

import plumbline

HELD = threading.local()


def by_dict(x):
    return x + HELD.__dict__.get("number", 1)


def by_default(x):
    return x + getattr(HELD, "number", 1)


def by_question(x):
    return x + (HELD.number if hasattr(HELD, "number") else 1)


def told(x):
    try:
        return HELD.number + x
    except AttributeError as error:
        return str(error), x + 1


def written(x):
    HELD.number = HELD.__dict__.get("number", 1) + 1
    return x + HELD.number


def deleted(x):
    HELD.__dict__.setdefault("number", 1)
    del HELD.number
    return x + len(HELD.__dict__)


@pytest.fixture(autouse=True)
def _nothing_is_held():
    HELD.__dict__.clear()
    yield
    HELD.__dict__.clear()


@pytest.mark.parametrize("function", [by_dict, by_default, by_question, told, written, deleted])
def test_each_thread_has_its_own(function):
    compiled = plumbline.compile(function, backend="eager", fullgraph=True)
    x, found = torch.ones(2), {}

    def calls(name, program, number):
        if number is not None:
            HELD.number = number
        found[name] = str([program(x), program(x)]), dict(HELD.__dict__)

    for number in (None, 5):
        for name, program in (("eager", function), ("compiled", compiled)):
            thread = threading.Thread(target=calls, args=(name, program, number))
            thread.start()
            thread.join()
        assert found["compiled"] == found["eager"]
    assert str(compiled(x)) == str((HELD.__dict__.clear(), function(x))[1])
