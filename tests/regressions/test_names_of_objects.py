"""A `__dir__` that calls the one of `object` called itself, until the stack of the capture was full."""

import typing

import torch

import plumbline
from support.played_programs import difference_of


class Deep:
    def __init__(self):
        self.own = 1

    def __dir__(self):
        return [*super().__dir__(), "extra"]


class Deeper(Deep):
    level = 1

    def __dir__(self):
        return [*super().__dir__(), "more"]


deeper = Deeper()


def test_names_are_asked_for_in_one_graph():
    def step(x):
        return dir(deeper), deeper.__dir__(), object.__dir__(deeper), dir(typing.List[int]), x + 1  # noqa: UP006 - it has a __dir__

    compiled = plumbline.compile(step, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2))[:4] == step(torch.ones(2))[:4]


def test_names_that_the_call_gives_a_class():
    assert not difference_of(
        """
class Plain:
    pass
plain = Plain()
def step(x):
    Plain.fresh = 3
    plain.own = 4
    return "fresh" in dir(plain), "own" in dir(plain), "fresh" in dir(Plain), plain.__dir__(), x + 1
"""
    )
