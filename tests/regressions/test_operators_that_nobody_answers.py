"""Where both operands have the operator in Python and neither answers, each was asked twice."""

import torch

import plumbline


class Asked:
    def __init__(self, name):
        self.name = name
        self.times = 0

    def __add__(self, other):
        self.times += 1
        return NotImplemented

    __iadd__ = __radd__ = __add__


class AskedToo(Asked):
    pass


def added(x, left, right):
    try:
        left + right
    except TypeError:
        return x + 1
    return x


def added_in_place(x, left, right):
    try:
        left += right
    except TypeError:
        return x + 1
    return x


def test_each_operand_is_asked_as_often_as_in_eager():
    for function in (added, added_in_place):
        compiled = plumbline.compile(function, backend="eager", fullgraph=True)
        for kinds in ((Asked, AskedToo), (AskedToo, Asked), (Asked, Asked)):
            times = []
            for run in (function, compiled):
                left, right = (kind("operand") for kind in kinds)
                assert run(torch.ones(2), left, right).tolist() == [2, 2]
                times.append((left.times, right.times))
            assert times[0] == times[1]
