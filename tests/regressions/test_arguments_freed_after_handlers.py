"""An exception that plain Python raises at a break kept the frame that caught it alive, and all arguments with it."""

import gc
import weakref

import pytest
import torch

import plumbline


def refused_in_the_middle(x):
    try:
        return torch.ones(2)[torch.tensor(5)] + x
    except IndexError:
        return x * 2


def refused_and_dropped(x):
    try:
        x[torch.tensor(5)]
    except IndexError as error:
        str(error)
    return x * 2


def refused_in_a_second_part(x):
    log = [str(x.dim()) for _ in range(2)]
    print(log)
    try:
        log.append(len(log) in torch)
    except TypeError:
        log.append("refused")
    return log


@pytest.mark.parametrize(
    "function", [refused_in_the_middle, refused_and_dropped, refused_in_a_second_part], ids=lambda f: f.__name__
)
def test_arguments_are_freed_without_the_collector(function):
    compiled = plumbline.compile(function, backend="eager")
    gc.disable()
    try:
        for _ in range(3):
            argument = torch.ones(2, 3)
            watched = weakref.ref(argument)
            compiled(argument)
            del argument
            assert watched() is None
    finally:
        gc.enable()
