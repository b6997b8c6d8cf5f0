"""That a closure variable had no value yet was part of the specialisation, and nothing guarded it."""

import torch

import plumbline


def test_a_variable_that_gets_its_value_later():
    def set_late(value):
        nonlocal late
        late = value

    def function(x):
        try:
            return x * late
        except NameError:
            return x - 1

    compiled = plumbline.compile(function, backend="eager")
    assert compiled(torch.ones(1)).item() == 0
    set_late(3)
    assert compiled(torch.ones(1)).item() == 3
    set_late(4)
    assert compiled(torch.ones(1)).item() == 4
    del late  # noqa: F821 - bound by set_late
    assert compiled(torch.ones(1)).item() == 0
    late = 5
    assert compiled(torch.ones(1)).item() == 5
