"""A descriptor whose class gets `__set__` between two calls goes before what the instance holds: it went unnoticed."""

import torch

import plumbline


def test_a_setter_that_comes_and_goes():
    class Five:
        def __get__(self, instance, owner=None):
            return 5.0

    class Holder:
        value = Five()

    def scaled(holder, x):
        return x * holder.value

    holder, x, compiled = Holder(), torch.ones(1), plumbline.compile(scaled)
    vars(holder)["value"] = 2.0
    assert compiled(holder, x).item() == 2
    Five.__set__ = lambda self, instance, value: None
    assert compiled(holder, x).item() == 5
    del Five.__set__
    assert compiled(holder, x).item() == 2
