"""Inputs of a first call that raised lived on in a cycle of frames, until the garbage collector came."""

import contextlib
import gc
import weakref
from collections.abc import Callable, Iterator

import pytest
import torch

import plumbline


class Strict:
    def __getattribute__(self, name: str) -> object:
        return super().__getattribute__(name)


class Later:
    def __getattr__(self, name: str) -> object:
        raise AttributeError(name)


STRICT, LATER = Strict(), Later()


def numbers() -> Iterator[int]:
    yield 1
    raise OSError


def attribute_of_strict(x: torch.Tensor) -> object:
    return STRICT.nothing


def attribute_that_comes_later(x: torch.Tensor) -> object:
    return LATER.nothing


def caught(x: torch.Tensor) -> torch.Tensor:
    try:
        return STRICT.nothing
    except AttributeError:
        return x + 1


def after_a_break(x: torch.Tensor) -> None:
    x.item()
    raise KeyError


def generator(x: torch.Tensor) -> torch.Tensor:
    for number in numbers():
        x = x + number
    return x


def chained(x: torch.Tensor) -> None:
    with torch.no_grad():
        raise ValueError("one") from KeyError("two")


def false_assertion(x: torch.Tensor) -> torch.Tensor:
    assert x.sum() > 100
    return x


def wrong_shapes(x: torch.Tensor) -> torch.Tensor:
    return x @ torch.ones(4)


PROGRAMS = [
    attribute_of_strict,
    attribute_that_comes_later,
    caught,
    after_a_break,
    generator,
    chained,
    false_assertion,
    wrong_shapes,
]


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_inputs_are_gone_when_the_caller_lets_them_go(program: Callable[..., object], backend: str) -> None:
    compiled = plumbline.compile(program, backend=backend)
    compiled_before = plumbline.compile(lambda x: (x.sum() > 0) & (x @ x > 0), backend=backend)
    compiled_before(torch.ones(3))  # what torch imports at first leaves cycles of its own
    for _ in range(3):
        gc.collect()
        gc.disable()
        try:
            x = torch.ones(3)
            watched = weakref.ref(x)
            with contextlib.suppress(Exception):
                compiled(x)
            del x
            assert watched() is None
        finally:
            gc.enable()
