"""A tensor that a graph has read may be let go of: what is remembered of it is no reference of the program's."""

import torch

import plumbline
from plumbline.compiler.base.events import Captured, RanEagerly, recording


def demand(weight):
    low = weight.sum() < 0
    if not low and weight.max() < 0:
        raise ValueError


def inner(x, weight):
    y = x.tanh()
    demand(weight)
    z = y * 2
    demand(weight)
    return z.sin()


def outer(x, weight):
    return inner(x, weight + 1) + 1


def test_a_function_is_captured_to_its_end_where_it_lets_go_of_a_tensor_that_a_graph_has_read():
    x, weight = torch.randn(3, 3, requires_grad=True), torch.ones(3, 3)
    with recording() as events:
        result = plumbline.compile(outer, backend="aot_eager")(x, weight)
    assert not [event for event in events if isinstance(event, RanEagerly)]
    assert sum(isinstance(event, Captured) for event in events) == 3
    torch.testing.assert_close(result, outer(x, weight), rtol=0, atol=0)
