import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.compiler.autograd.flow_network import INFINITE, FlowNetwork


def network(count, edges):
    flow = FlowNetwork()
    for _ in range(count):
        flow.add_node()
    for start, end, capacity in edges:
        flow.add_edge(start, end, capacity)
    return flow


def cut_value(side, edges):
    return sum(capacity for start, end, capacity in edges if start in side and end not in side)


NODE = st.integers(0, 6)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(NODE, NODE, st.sampled_from([0, 1, 2, 3, 7, 10**15])), max_size=16))
def test_the_cut_is_the_least_of_all_cuts(edges):
    value, side = network(7, edges).minimum_cut(0, 6)
    inner = range(1, 6)
    cuts = [{0, *some} for size in range(6) for some in itertools.combinations(inner, size)]
    least = min(cut_value(cut, edges) for cut in cuts)
    assert value == least
    assert 0 in side
    assert 6 not in side
    assert cut_value(side, edges) == least
    assert len(side) == max(len(cut) for cut in cuts if cut_value(cut, edges) == least)


def test_an_uncuttable_pair_is_an_error():
    with pytest.raises(ValueError, match="may not be cut"):
        network(2, [(0, 1, INFINITE)]).minimum_cut(0, 1)


def test_negative_capacity_is_an_error():
    with pytest.raises(ValueError, match="negative"):
        network(2, [(0, 1, -1)])


def test_a_long_chain_needs_no_deep_stack():
    count = 20_000
    value, side = network(count, [(i, i + 1, 5 if i != 777 else 4) for i in range(count - 1)]).minimum_cut(0, count - 1)
    assert (value, len(side)) == (4, 778)
