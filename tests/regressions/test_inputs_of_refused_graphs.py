"""A graph that was refused kept the arguments of its first call, in the traceback of the refusal."""

import gc
import weakref

import pytest
import torch

import plumbline


def overlapping(x, memory):
    return torch.add(memory[1:], x, out=memory[:-1])


@pytest.mark.parametrize("sizes", [False, True], ids=["static", "dynamic"])
def test_arguments_are_gone_after_the_call(sizes):
    compiled = plumbline.compile(overlapping, backend="aot_eager", dynamic=sizes)
    given = torch.ones(3) + 1
    watched = weakref.ref(given)
    gc.collect()
    gc.disable()
    try:
        with pytest.raises(RuntimeError):
            compiled(given, torch.zeros(4))
        del given
        assert watched() is None
    finally:
        gc.enable()
