"""Sets under capture have the layout of real ones: the order of iteration, and what pop takes."""

import operator

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from support.programs import compiled

NUMBERS = st.integers(0, 40)
CHANGES = st.one_of(
    st.tuples(st.sampled_from(["add", "discard"]), NUMBERS),
    st.tuples(
        st.sampled_from(["update", "difference_update", "intersection_update", "symmetric_difference_update"]),
        st.lists(NUMBERS, max_size=4).map(tuple),
    ),
    st.tuples(st.sampled_from(["|", "&", "-", "^", "dict"]), st.lists(NUMBERS, max_size=6).map(tuple)),
    st.tuples(st.sampled_from(["pop", "copy", "frozen", "clear"]), st.just(0)),
)


OPERATORS = {"|": operator.or_, "&": operator.and_, "-": operator.isub, "^": operator.xor}


def changed(a, start, changes):
    members = set(start)
    taken = []
    for name, operand in changes:
        if name == "pop":
            taken.append(members.pop() if members else None)
        elif name == "copy":
            members = members.copy()
        elif name == "frozen":
            members = set(frozenset(members))
        elif name == "dict":
            members = set(dict.fromkeys([*members, *operand], 0))
        elif name in OPERATORS:
            members = OPERATORS[name](members, set(operand))
        elif name == "clear":
            members.clear()
        else:
            getattr(members, name)(operand)
    return a + len(members), list(members), taken, sorted(members), {m % 5 for m in members} == {0}


@settings(max_examples=60, deadline=None)
@given(st.lists(NUMBERS, max_size=8).map(tuple), st.lists(CHANGES, max_size=8).map(tuple))
def test_order_is_that_of_eager(start, changes):
    a = torch.ones(2)
    expected, actual = changed(a, start, changes), compiled(changed, fullgraph=True)(a, start, changes)
    assert torch.equal(expected[0], actual[0])
    assert expected[1:] == actual[1:]


def ordered(a, members):
    return a + 1, list(members)


def test_order_of_a_set_from_outside_is_guarded():
    run = compiled(ordered)
    a = torch.ones(2)
    for members in ({7, 15}, {15, 7}, {8, 0}, {0, 8}, {"x", "y"}, frozenset({3, 1})):
        assert run(a, members)[1] == list(members)


def shown(a, members):
    members.discard(7)
    members.add(5)
    return a + 1, list(members)


def test_order_after_a_change_is_not_guessed():
    expected, actual = {7, 15}, {7, 15}
    a = torch.ones(2)
    assert shown(a, expected)[1] == compiled(shown)(a, actual)[1]
