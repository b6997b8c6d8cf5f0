"""The `__class__` of an array that NumPy has made while capturing was taken for a method of it."""

import numpy
import pytest
import torch

import plumbline


def facts_of_an_array(x):
    array = numpy.arange(3)
    kind = array.__class__
    return type(kind), kind is numpy.ndarray, array.__class__.__name__, isinstance(array, kind), x + 1


def facts_of_a_number(x):
    number = numpy.float32(3)
    kind = number.__class__
    return type(kind), kind is numpy.float32, kind.__name__, isinstance(number, kind), x + 1


@pytest.mark.parametrize("function", [facts_of_an_array, facts_of_a_number])
def test_it_is_a_class(function):
    expected = function(torch.ones(1))
    actual = plumbline.compile(function, backend="eager")(torch.ones(1))
    assert actual[:4] == expected[:4]
