"""One tuple that reached capture by two ways was taken for two: `is` gave False, and nothing guarded it."""

import torch

import plumbline


def test_a_tuple_given_twice_is_one():
    compiled = plumbline.compile(lambda a, b, x: (a is b, x + 1), backend="eager")
    one, other = (1, 2), tuple([1, 2])  # noqa: C409 - a literal would be the same object
    x = torch.ones(1)
    assert compiled(one, other, x)[0] is False
    assert compiled(one, one, x)[0] is True
    assert compiled(one, other, x)[0] is False


def test_a_tuple_stays_one_across_a_break():
    def function(x):
        first = second = (1, x)
        shape = same_shape = x.shape
        plumbline.graph_break()
        return first is second, shape is same_shape, tuple() is tuple([])  # noqa: C408, C409 - not folded

    assert plumbline.compile(function, backend="eager")(torch.ones(1)) == (True, True, True)
