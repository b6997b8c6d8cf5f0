"""operator.concat adds whatever has items where the standard library is written in Python, and refuses tensors in C."""

import operator

import pytest
import torch

import plumbline


@pytest.mark.parametrize("concatenate", [operator.concat, operator.iconcat])
def test_tensors_are_refused_as_in_python(concatenate):
    def add(x):
        return concatenate(x, x)

    with pytest.raises(TypeError) as expected:
        add(torch.ones(2))
    with pytest.raises(TypeError) as actual:
        plumbline.compile(add, backend="eager")(torch.ones(2))
    assert str(actual.value) == str(expected.value)


def test_sequences_are_concatenated_in_one_graph():
    def join(x):
        return operator.concat([x + 1], [x + 2]), operator.concat("a", "b")

    (one, two), text = plumbline.compile(join, backend="eager", fullgraph=True)(torch.ones(2))
    assert (one.tolist(), two.tolist(), text) == ([2, 2], [3, 3], "ab")
