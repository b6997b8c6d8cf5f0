"""Every operator on every pair of kinds gives under capture what Python gives: the value, or its own error."""

import collections
import enum
import operator

import pytest
import torch

from support.programs import compiled

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.mod,
    operator.pow,
    operator.matmul,
    operator.and_,
    operator.or_,
    operator.xor,
    operator.lshift,
    operator.iadd,
    operator.imul,
    operator.ior,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.ge,
    operator.contains,
    operator.getitem,
]
QUESTIONS = [
    operator.neg,
    operator.invert,
    operator.index,
    len,
    next,
    abs,
    bool,
    round,
    int,
    float,
    list,
    tuple,
    dict,
    set,
    sorted,
    sum,
    max,
    min,
    repr,
    str,
    chr,
    range,
    enumerate,
    divmod,
    callable,
]


class Plain:
    pass


class Silent:
    def __add__(self, other):
        return NotImplemented

    def __repr__(self):
        return "Silent()"

    __hash__ = None


class Whole(int):
    pass


class Row(list):
    pass


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


def kinds():
    return [
        1,
        True,
        1.5,
        2j,
        "a",
        b"b",
        None,
        [1],
        (1,),
        {1: 2},
        {1},
        frozenset({1}),
        range(3),
        Silent(),
        Whole(3),
        Row([1]),
        Colour.RED,
        Level.LOW,
        collections.deque([1]),
        collections.OrderedDict(a=1),
        {1: 2}.keys(),
        {1: 2}.values(),
    ]


def shown(value):
    plain = isinstance(value, (int, float, complex, str, bytes, type(None)))
    return (type(value).__name__, str(value) if plain else "")


def on_pairs(a, act):
    found = []
    for position in range(len(kinds())):
        for other in kinds():
            try:
                found.append(shown(act(kinds()[position], other)))
            except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
                found.append((type(error).__name__, str(error)))
    return a + 1, found


def on_each(a, act):
    found = []
    for value in kinds():
        try:
            found.append(shown(act(value)))
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
            found.append((type(error).__name__, str(error)))
    return a + 1, found


@pytest.mark.parametrize("act", OPERATORS, ids=lambda act: act.__name__)
def test_operators(act):
    a = torch.ones(2)
    assert on_pairs(a, act)[1] == compiled(on_pairs)(a, act)[1]


@pytest.mark.parametrize("act", QUESTIONS, ids=lambda act: act.__name__)
def test_calls_of_one_argument(act):
    a = torch.ones(2)
    assert on_each(a, act)[1] == compiled(on_each)(a, act)[1]
