"""A later argument that equals the first one, and is not the same, got the answer that the first one had."""

import datetime
from collections import Counter, OrderedDict, deque
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest
import torch

import plumbline


class Number(IntEnum):
    """An enumeration whose members equal numbers."""

    ONE = 1


HOUR = datetime.timedelta(hours=1)
NOON = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)

EQUALS = {
    "ranges": [range(0, 3, 2), range(0, 4, 2)],
    "ranges of nothing": [range(0), range(5, 5)],
    "slices": [slice(1), slice(1.0), slice(True)],
    "slices to zero": [slice(None, 0.0), slice(None, -0.0)],
    "decimals": [Decimal("1.0"), Decimal("1.00"), 1],
    "decimal zeros": [Decimal("0"), Decimal("-0")],
    "fractions": [Fraction(1), 1, True, 1.0, Number.ONE],
    "instants": [NOON, NOON.astimezone(datetime.timezone(HOUR)), NOON.replace(fold=1)],
    "complex zeros": [complex(0, 0), complex(-0.0, 0), complex(0, -0.0), 0, -0.0],
    "tuples": [(0.0,), (-0.0,), (0,), (False,), torch.Size([0])],
    "sets": [frozenset([0.0]), frozenset([-0.0]), frozenset([0]), {False}],
    "keys": [{0.0: 1}, {-0.0: 1}, {0: 1}, {range(0, 3, 2): 1}, {range(0, 4, 2): 1}],
    "dictionaries": [OrderedDict(a=1, b=2), OrderedDict(b=2, a=1), {"a": 1, "b": 2}, {"b": 2, "a": 1}],
    "counters": [Counter(a=1), Counter(a=1, b=0), {"a": 1}],
    "bytes": [b"a", bytearray(b"a")],
    "deques": [deque([1], 2), deque([1]), deque([1], 3)],
}


@pytest.mark.parametrize("values", EQUALS.values(), ids=EQUALS)
def test_each_is_shown_as_it_is(values):
    def function(value, x):
        return repr(value), type(value).__name__, x + 1

    compiled, x = plumbline.compile(function, backend="eager"), torch.ones(1)
    for value in (*values, *reversed(values)):
        assert compiled(value, x)[:2] == (repr(value), type(value).__name__)
