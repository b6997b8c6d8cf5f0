"""A graph whose operations warn, and that fails: its warnings came, and came again from the program's own code."""

import warnings

import pytest
import torch
from torch.nn import functional

import plumbline


def played(function, *args, filters="always"):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter(filters)
        try:
            result = repr(function(*args))
        except Exception as error:
            result = repr(error)
    return result, [(one.category, str(one.message)) for one in shown]


def alone(x):
    return functional.softmax(x)


def twice(x):
    return [functional.softmax(x), functional.log_softmax(x)]


def between_breaks(x):
    y = x + 1
    print(end="")
    y = functional.softmax(y)
    print(end="")
    return y * 2


def handled(x):
    try:
        return functional.softmax(x)
    except (NotImplementedError, UserWarning) as error:
        return type(error).__name__


def writing(x):
    kept = x + 1
    kept.add_(1)
    x.add_(1)
    try:
        return functional.softmax(x), kept, x
    except UserWarning:
        return kept, x


PROGRAMS = [alone, twice, between_breaks, handled, writing]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("filters", ["always", "default", "error"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.float32], ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_warnings_come_as_often_as_in_eager(program, dtype, filters, backend):
    compiled = plumbline.compile(program, backend=backend)
    for _ in range(2):
        expected = played(program, torch.ones(3, dtype=dtype), filters=filters)
        assert played(compiled, torch.ones(3, dtype=dtype), filters=filters) == expected
