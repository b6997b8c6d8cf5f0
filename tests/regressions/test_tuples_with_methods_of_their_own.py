"""A class derived from tuple was read as its elements, whatever its own methods said: `+` gave a longer tuple."""

from collections import namedtuple
from typing import NamedTuple

import pytest

import plumbline


class Shifted(namedtuple("Pair", "a b")):
    def __add__(self, other):
        return Shifted(self.a + other.a, self.b + other.b)

    def __radd__(self, other):
        return "from the right"

    def __mul__(self, other):
        return Shifted(self.a * other, self.b * other)

    def __neg__(self):
        return Shifted(-self.a, -self.b)

    def __eq__(self, other):
        return "equal"

    def __lt__(self, other):
        return "less"

    __hash__ = tuple.__hash__


class Odd(tuple):
    __slots__ = ()

    def __len__(self):
        return 7

    def __bool__(self):
        return False

    def __iter__(self):
        return iter("xyz")

    def __getitem__(self, place):
        return "item"

    def __contains__(self, item):
        return True


class Typed(NamedTuple):
    a: int

    def __sub__(self, other):
        return self.a - other.a


SHIFTED, ODD, EMPTY = Shifted(1, 2), Odd((1, 2)), ()
STEPS = {
    "operators": lambda: (Shifted(1, 2) + Shifted(3, 4), EMPTY + Shifted(1, 2), Shifted(1, 2) * 3, -Shifted(1, 2)),
    "comparisons": lambda: (Shifted(1, 2) == Shifted(1, 2), Shifted(1, 2) < 3),
    "from outside": lambda: (SHIFTED + SHIFTED, -SHIFTED, SHIFTED < SHIFTED, SHIFTED * 2, SHIFTED.a),
    "typed": lambda: Typed(3) - Typed(1),
    "reading": lambda: (len(Odd((1, 2))), bool(Odd((1,))), list(Odd((1,))), Odd((1,))[0], 5 in Odd((1,))),
    "reading from outside": lambda: (len(ODD), bool(ODD), list(ODD), ODD[0], 5 in ODD),
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_their_methods_are_asked(step):
    assert plumbline.compile(step, backend="eager")() == step()
