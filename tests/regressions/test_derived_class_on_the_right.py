"""A tuple was compared with a torch.Size, and a dict with an OrderedDict, from the left: Python asks the derived class.

It shows in the error, and in the order in which elements are asked.
"""

import collections
import operator

import pytest
import torch

import plumbline


class Asked:
    def __init__(self, name, log):
        self.name, self.log = name, log

    def __eq__(self, other):
        self.log.append((self.name, other.name))
        return True

    __hash__ = None


class Items(dict):
    pass


class Row(tuple):
    pass


@pytest.mark.parametrize("compare", [operator.lt, operator.ge, operator.gt, operator.le])
@pytest.mark.parametrize("right", [torch.Size([1]), Row([1]), (1,)])
def test_errors_name_the_operator_that_was_asked(compare, right):
    def step(left, right):
        try:
            return compare(left, right)
        except TypeError as error:
            return str(error)

    assert plumbline.compile(step, backend="eager")(("a",), right) == step(("a",), right)


@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt])
@pytest.mark.parametrize("kind", [dict, Items, collections.OrderedDict])
def test_order_in_which_items_are_asked(compare, kind):
    def step(left, right):
        try:
            return compare(left, right)
        except TypeError as error:
            return str(error)

    def outcome(step):
        log = []
        return step({1: Asked("left", log)}, kind({1: Asked("right", log)})), log

    assert outcome(plumbline.compile(step, backend="eager")) == outcome(step)
