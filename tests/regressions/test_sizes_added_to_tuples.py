"""`tuple + torch.Size` is a torch.Size in plain Python: the class derives from tuple and answers from the right."""

import collections
import operator

import pytest
import torch

import plumbline

Pair = collections.namedtuple("Pair", "a b")


class Own(tuple):
    __slots__ = ()


TUPLES = [(), (1, 2), (1.5, "x"), Pair(1, 2), Pair(1, "x"), Own((1, 2)), Own("ab")]
SIZES = [torch.Size(), torch.Size([1, 2]), torch.Size([3])]
OTHERS = [[1, 2], 2, True, "a", None]
OPERATORS = "add mul lt le eq ne gt ge iadd imul concat contains".split()
METHODS = "__add__ __mul__ __rmul__ __eq__ __lt__ __contains__ count".split()


def outcomes(left, right):
    shown = []
    for name in OPERATORS:
        try:
            result = getattr(operator, name)(left, right)
            shown.append((name, type(result), result))
        except Exception as error:
            shown.append((name, repr(error)))
    for name in METHODS:
        try:
            result = getattr(left, name)(right)
            shown.append((name, type(result), result))
        except Exception as error:
            shown.append((name, repr(error)))
    return shown


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_operator(size):
    compiled = plumbline.compile(outcomes, backend="eager")
    for other in TUPLES + SIZES + OTHERS:
        assert compiled(other, size) == outcomes(other, size)
        assert compiled(size, other) == outcomes(size, other)


def test_sums_and_sizes_of_tensors():
    def run(x):
        shape = (1,)
        shape += x.shape
        return shape, sum([(2,), x.shape], ()), (3, *x.shape), x.reshape((1,) + x.shape)  # noqa: RUF005  # it is the point

    x = torch.ones(2, 3)
    results, expected = plumbline.compile(run, backend="eager")(x), run(x)
    assert [type(one) for one in results] == [type(one) for one in expected]
    assert results[:3] == expected[:3]
    assert results[3].shape == expected[3].shape
