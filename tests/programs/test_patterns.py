"""The match statement: every kind of pattern."""

import collections
import enum
import types
from collections import ChainMap, OrderedDict, UserList, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class Pt:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


def _match(v):
    match v:
        case 0 | 1:
            return "small"
        case -1.5:
            return "neg"
        case "a" | "b":
            return "letter"
        case None:
            return "none"
        case True:
            return "true"
        case []:
            return "empty"
        case [x]:
            return ("one", x)
        case [1, *rest]:
            return ("rest", rest)
        case (x, y, *_):
            return ("two+", x, y)
        case {"k": k, "n": {"m": [q]}, **rest}:
            return ("deep", k, q, rest)
        case {"k": k, **rest}:
            return ("map", k, rest)
        case Pt(0, y):
            return ("pt0", y)
        case Pt(x=x, y=y) if x == y:
            return ("diag", x)
        case Pt(x, y) as p:
            return ("pt", x, y, p.x)
        case int(n) if n > 100:
            return ("big", n)
        case float() | complex():
            return "num"
        case str(s):
            return s
        case bytes():
            return "bytes"
        case {}:
            return "emptymap"
        case set():
            return "set"
        case _:
            return "other"


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def low(self):
        return self.name.lower()

    @classmethod
    def default(cls):
        return cls.GREEN

    def twice(self):
        return self.value * 2


class NT(NamedTuple):
    p: int
    q: int = 5

    def tot(self):
        return self.p + self.q

    @property
    def dbl(self):
        return self.p * 2

    @classmethod
    def mk(cls, v):
        return cls(v, v)


@dataclass
class DC:
    x: int
    y: Any = 3
    z: list = field(default_factory=list)


@program(A, graphs=0)
def patterns_of_all_kinds(a):
    return (
        a,
        [
            _match(v)
            for v in (
                0,
                1,
                -1.5,
                "a",
                "zz",
                None,
                True,
                [],
                [5],
                [1, 2, 3],
                (7, 8, 9),
                {"k": 1, "n": {"m": [2]}, "z": 3},
                {"k": 1, "b": 2},
                Pt(0, 1),
                Pt(2, 2),
                Pt(1, 2),
                500,
                50,
                1.25,
                2j,
                b"x",
                {},
                {"q": 1},
                {1},
                a.shape,
            )
        ],
        _match([a]),
        _match({"k": a}),
    )


@program(A)
def match_objs(a):
    def f(v):
        match v:
            case nn.Linear():
                return 1
            case torch.Tensor():
                return 2
            case collections.OrderedDict():
                return 3
            case deque([1, 2]):
                return 4
            case range(start=0):
                return 5
            case types.SimpleNamespace(a=1):
                return 6
            case Color.RED:
                return 7
            case NT(p, q):
                return 8 + p + q
            case _:
                return 0

    return (
        a * f(a),
        f(OrderedDict()),
        f(range(3)),
        f(types.SimpleNamespace(a=1)),
        f(Color.RED),
        f(Color.GREEN),
        f(NT(1, 2)),
        f(DC(1, 2)),
    )


@program(A)
def match_dc(a):
    match DC(1, a):
        case DC(x=1, y=t):
            return t * 3


@program(A)
def match_userdict(a):
    class M(dict):
        pass

    m = M(k=1, z=2)
    match m:
        case {"k": v, **rest}:
            return a * v, rest


@program(A)
def match_seq_user(a):
    ud = UserList([1, 2])
    match ud:
        case [x, y]:
            return a * (x + y)


@program(A)
def match_chainmap(a):
    match ChainMap({"a": 1}, {"b": 2}):
        case {"b": v}:
            return a * v


@corpus.parametrize()
def test_program(program):
    check(program)
