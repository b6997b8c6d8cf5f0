"""A function that `functools.wraps` had given the name of NumPy's was left to run outside the graph, as NumPy's are."""

import functools
import math

import numpy
import pytest
import torch

import plumbline


@functools.wraps(numpy.einsum)
def einsum(*arguments):
    return torch.einsum(*arguments)


def of_numpy(x):
    return einsum("i,i->i", x, x)


def of_the_standard_library(x):
    @functools.wraps(functools.reduce)
    def scaled(value):
        return value * math.pi

    return scaled(x)


@pytest.mark.parametrize("function", [of_numpy, of_the_standard_library])
def test_one_graph(function):
    x = torch.ones(2)
    assert torch.equal(plumbline.compile(function, backend="eager", fullgraph=True)(x), function(x))
