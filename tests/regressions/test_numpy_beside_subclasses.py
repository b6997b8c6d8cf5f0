"""A comparison of a NumPy type with an instance of a subclass is left to NumPy: it asks for the class."""

import collections

import numpy
import pytest
import torch

import plumbline

Row = collections.namedtuple("Row", "a b", defaults=[1])
DTYPE = numpy.dtype("int32")


class Listed(list):
    pass


def row(x):
    return Row(len) < DTYPE


def listed(x):
    return Listed([1]) > DTYPE


def counter(x):
    return collections.Counter() < DTYPE


@pytest.mark.parametrize("function", [row, listed, counter])
def test_a_comparison_that_is_refused_names_the_operands(function):
    def caught(x):
        try:
            return function(x + 1)
        except TypeError as error:
            return str(error)

    x = torch.ones(2)
    assert plumbline.compile(caught, backend="eager")(x) == caught(x)
