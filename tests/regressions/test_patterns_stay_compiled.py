"""A warning while a function was captured made `re` forget the program's patterns, so that the next was another."""

import re
import warnings

import torch

import plumbline


def step(x):
    warnings.warn("a word", stacklevel=1)
    return x + 1


def test_a_pattern_is_the_same_object():
    pattern = re.compile("a+b?c")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plumbline.compile(step, backend="eager")(torch.ones(1))
    assert re.compile("a+b?c") is pattern
