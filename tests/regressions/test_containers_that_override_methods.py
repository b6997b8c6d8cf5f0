"""A container of the program's whose methods raise is read by the methods of Python's own classes."""

import collections

import torch

from plumbline.oracle.harness.session import JudgeSession


class Pair(tuple):
    def __len__(self):
        raise NotImplementedError

    def __iter__(self):
        raise NotImplementedError


class Names(list):
    def __iter__(self):
        raise NotImplementedError

    def clear(self):
        raise NotImplementedError


class Table(dict):
    def items(self):
        raise NotImplementedError

    __iter__ = values = items


class Members(set):
    def __iter__(self):
        raise NotImplementedError


class Queue(collections.deque):
    def __iter__(self):
        raise NotImplementedError


class Holder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pair, self.names, self.table = Pair((2.0, 3)), Names([4]), Table(a=5)
        self.members, self.queue = Members({6}), Queue([7])

    def forward(self, x):
        self.names.append(1)
        self.table["b"] = 2
        return x * self.pair[0] + self.queue[0]


def test_a_call_beside_such_containers_is_judged():
    session = JudgeSession(compiler="plumbline", backend="eager")
    module = Holder()
    with session:
        assert module(torch.ones(3)).tolist() == [9.0] * 3
    assert [call.verdict.kind.value for call in session.calls] == ["EQUAL"]
    assert list.__len__(module.names) == 2
    assert dict.__getitem__(module.table, "b") == 2
