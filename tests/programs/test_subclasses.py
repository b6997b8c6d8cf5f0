"""Subclasses of builtin types, made inside and given as arguments."""

import dataclasses
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from typing import Any

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class TupleSub(tuple):
    def __new__(cls, x, y):
        return super().__new__(cls, (x, y))

    @property
    def w(self):
        return self[1] - self[0]


class FloatSub(float):
    def __new__(cls, v, unit="C"):
        self = super().__new__(cls, v)
        self.unit = unit
        return self

    def f(self):
        return self * 2


class IntSub(int):
    def __add__(self, o):
        return IntSub(int(self) + o + 100)

    def big(self):
        return self > 3


class StrSub(str):
    def shout(self):
        return self.upper() + "!"


class DictSub(dict):
    def __getattr__(self, n):
        return self[n]

    def __missing__(self, k):
        return "miss_" + k


class DictSet(dict):
    def __setitem__(self, k, v):
        super().__setitem__(k, v * 2)


class SetSub(set):
    def both(self, o):
        return self & o


class ODSub(OrderedDict):
    def first(self):
        return next(iter(self))


class DDSub(defaultdict):
    pass


class DequeSub(deque):
    def peek(self):
        return self[0]


class FSet(frozenset):
    pass


@dataclass
class Out(OrderedDict):
    a: Any = None
    b: Any = None

    def __post_init__(self):
        for f in dataclasses.fields(self):
            v = getattr(self, f.name)
            if v is not None:
                self[f.name] = v

    def __getitem__(self, k):
        return dict(self.items())[k] if isinstance(k, str) else self.to_tuple()[k]

    def to_tuple(self):
        return tuple(self[k] for k in self.keys())


class Multi(dict):
    def __getattr__(self, k):
        try:
            return self[k]
        except KeyError as e:
            raise AttributeError(k) from e

    def __setattr__(self, k, v):
        self[k] = v

    def __delattr__(self, k):
        del self[k]


class LSum(list):
    def total(self):
        return sum(self[1:], self[0])


@program(A)
def tuple_sub(a):
    t = TupleSub(1, 4)
    return (
        a * t.w,
        t,
        t[0],
        len(t),
        t + (1,),
        t == (1, 4),
        list(t),
        isinstance(t, tuple),
        hash(t) == hash((1, 4)),
        type(t).__name__,
    )


@program(A)
def float_sub(a):
    f = FloatSub(2.5)
    return (
        a * f,
        f.unit,
        f.f(),
        f + 1,
        type(f + 1),
        f == 2.5,
        FloatSub(1, "K").unit,
        repr(f),
        int(f),
        f"{f:.1f}",
        isinstance(f, float),
        round(f),
    )


@program(A)
def int_sub(a):
    i = IntSub(3)
    return (
        a * i,
        i + 1,
        type(i + 1).__name__,
        i.big(),
        i * 2,
        [1, 2, 3, 4][i],
        range(i),
        IntSub("7"),
        i == 3,
        {3: "x"}[i],
    )


@program(A, graphs=0)
def str_sub(a):
    s = StrSub("ab")
    return (
        a,
        s.shout(),
        s + "c",
        s == "ab",
        len(s),
        {"ab": 1}[s],
        s[0],
        f"{s}",
        s.upper(),
        type(s.upper()),
        s.join(["x", "y"]),
    )


@program(A)
def dict_sub(a):
    d = DictSub(x=a, y=2)
    e = DictSet()
    e["k"] = 3
    e.update(z=1)
    d.setdefault("n", 5)
    return (
        d.x * d["y"],
        d["qq"],
        e,
        dict(e),
        e["k"],
        list(d),
        d.get("nope"),
        "x" in d,
        len(d),
        d == {"x": 1} if False else 0,
        {**e},
        e | {"a": 1},
        type(e.copy()),
        d.pop("y"),
        list(d.items())[1:],
        type(d).__name__,
    )


@program(A)
def set_sub(a):
    s = SetSub([1, 2, 3])
    s.add(7)
    return (
        a * len(s),
        s.both({1, 2}),
        s | {9},
        type(s | {9}).__name__,
        1 in s,
        sorted(s),
        s == {1, 2, 3, 7},
        FSet([1]) == {1},
    )


@program(A, graphs=0)
def od_sub(a):
    o = ODSub()
    o["z"] = 1
    o["a"] = a
    o.move_to_end("z")
    d = DDSub(list)
    d["q"].append(1)
    q = DequeSub([1, 2], maxlen=3)
    q.append(5)
    return o["a"], o.first(), list(o), d, q.peek(), q, type(q)


@program(A)
def model_output(a):
    o = Out(a=a, b=a + 1)
    return o.a * 2, o["b"], o[0], len(o), list(o.keys()), o.to_tuple()[1]


@program(A)
def hf_model_output(a):
    from transformers.modeling_outputs import BaseModelOutput

    o = BaseModelOutput(last_hidden_state=a)
    o.hidden_states = (a,)
    return (
        o.last_hidden_state * 2,
        o[0],
        len(o),
        list(o.keys()),
        o.to_tuple(),
        "attentions" in o,
        o.get("attentions"),
        dict(o),
    )


@program(A)
def attrdict(a):
    m = Multi(x=1)
    m.y = a
    m["z"] = 3
    del m.x
    return (
        m.y * m.z,
        hasattr(m, "x"),
        sorted(m),
        getattr(m, "nope", 9),
        len(m),
        m.get("z"),
        "y" in m,
        list(m.values())[1],
        dict(m)["z"],
    )


@program(make=lambda: (torch.ones(2), Multi(k=1)))
def attrdict_arg(a, m):
    m.new = 5
    m["w"] = a
    m.pop("k")
    return m.new * a, m


@program(make=lambda: (LSum([torch.ones(2), 2, 3]),), graphs=0)
def list_sub_arg(row):
    row.append(4)
    row[0] = 9
    row.extend([1])
    del row[1]
    return row.total() * 2, row


@program(make=lambda: (defaultdict(list, k=[1]), Counter("xxy"), deque([1, 2], maxlen=3), OrderedDict(a=1, b=2)))
def ddict_arg(d, c, q, o):
    d["n"].append(3)
    c["x"] += 2
    q.append(7)
    q.popleft()
    o.move_to_end("a")
    o["z"] = 1
    return torch.ones(2) * len(d), d["n"], c.most_common(1), list(q), list(o)


@program(make=lambda: (torch.ones(2), {1, 2, 3}, frozenset([3])))
def set_arg(a, s, f):
    s.add(9)
    s.discard(1)
    s |= {4}
    return a * len(s), sorted(s), s, 3 in f, f | {1}, len(f - {3})


@corpus.parametrize()
def test_program(program):
    check(program)
