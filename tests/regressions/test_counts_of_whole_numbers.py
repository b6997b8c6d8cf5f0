"""Found by `fuzz programs`: `itertools.count(natural, 1)` asked `__add__` of a class that derives from int.

CPython counts in steps of one with a number of C, whatever class start and step are of.
"""

import itertools

import torch

import plumbline


class Whole(int):
    def __add__(self, other):
        return Whole()


def counted(x, natural):
    given = [
        itertools.count(natural, 1),
        itertools.count(natural),
        itertools.count(natural, True),
        itertools.count(natural, 2),
        itertools.count(1, natural),
        itertools.count(natural, natural),
        itertools.count(True, 2),
        itertools.count(True),
        itertools.count(2**63 - 2),
        itertools.count(2**64, True),
        itertools.count(1.5),
        itertools.count(x.shape[0]),
    ]
    return x + 1, [[(type(one), one) for one in itertools.islice(count, 3)] for count in given]


def test_whole_numbers_are_counted_as_in_c() -> None:
    for dynamic in (False, True):
        compiled = plumbline.compile(counted, backend="eager", dynamic=dynamic)
        for start in (3, 1):
            x = torch.ones(4)
            assert compiled(x, Whole(start))[1] == counted(x, Whole(start))[1]
