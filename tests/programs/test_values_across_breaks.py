"""Values of Python across a break: classes, exceptions, sets, subclasses and functions made before it."""

import contextlib
import enum
import functools
import itertools
import operator
import types
from collections import OrderedDict, defaultdict, deque

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class IntS(int):
    def big(self):
        return self > 3


class TS(tuple):
    def tot(self):
        return sum(self)


class DS(dict):
    def __setitem__(self, k, v):
        super().__setitem__(k, v * 2)


class SetS(set):
    def both(self, o):
        return self & o


class DQ(deque):
    pass


class OD(OrderedDict):
    pass


class DD(defaultdict):
    pass


class STR(str):
    pass


class H:
    n = 0


class Color(enum.Enum):
    R = 1


@program(A, graphs=0, breaks=0, eager=1)
def set_layout_break(a):
    s = {7, 15}
    s.discard(7)
    s.add(5)
    print("x")
    return a, list(s)


@program(A, graphs=1, breaks=1, stable=False)
def class_then_break(a):
    class K:
        tag = 3

        def __init__(self, v):
            self.v = v

        def go(self):
            return self.v * self.tag

    k = K(a)
    print("x")
    return k.go(), K.tag, isinstance(k, K)


@program(A, graphs=1, breaks=1, stable=False)
def class_super_then_break(a):
    class K:
        def f(self):
            return 1

    class J(K):
        def f(self):
            return super().f() + 1

    print("x")
    return a * J().f()


@program(A, graphs=0, breaks=0, eager=1)
def cache_then_break(a):
    log = []

    @functools.cache
    def f(x):
        log.append(x)
        return x

    f(1)
    f(1)
    print("x")
    return a * f(1), log


@program(A, graphs=0, breaks=2, stable=False)
def id_across_break(a):
    row = [1]
    i = id(row)
    print("x")
    return a, i == id(row)


@program(A, graphs=1, breaks=1, stable=False)
def prop_break(a):
    class P:
        def __init__(self):
            self._v = 2

        @property
        def v(self):
            print("got")
            return self._v

        @v.setter
        def v(self, x):
            self._v = x

    p = P()
    r = p.v
    p.v = 7
    return a * r, p._v


@program(A, graphs=0, breaks=1)
def proxy_break(a):
    d = {"a": 1}
    m = types.MappingProxyType(d)
    print("x")
    d["b"] = 2
    return a, len(m), m["b"]


@program(A, graphs=0, breaks=1)
def globals_break(a):
    g = globals()
    print("x")
    return a, g is globals(), "globals_break" in g


@program(A, graphs=0, breaks=1, eager=1)
def locals_break(a):
    x = 5
    y = 6
    print("x")
    z = x
    return a, sorted(locals())


@program(A, graphs=0, breaks=1)
def exc_break(a):
    try:
        try:
            raise KeyError("k")
        except KeyError as e:
            raise ValueError("v") from e
    except ValueError as e:
        err = e
    print("x")
    return a, str(err), type(err.__cause__).__name__, err.args


@program(A, graphs=1, breaks=1)
def exc_break_inside(a):
    try:
        raise ValueError("v", 3)
    except ValueError as e:
        print("x")
        r = e.args[1]
    return a * r


@program(A, graphs=0, breaks=2)  # the parts have the traceback, the cause and the notes of the group: Python makes them
def group_break(a):
    g = ExceptionGroup("g", [ValueError(1), TypeError(2)])
    print("x")
    m, r = g.split(ValueError)
    return a, len(m.exceptions), str(r)


@program(A, graphs=0, breaks=2)
def oserror_break(a):
    e = OSError(2, "no", "f")
    print("x")
    return a, e.errno, e.filename, type(e).__name__, str(e)


@program(A, graphs=1, breaks=2)
def subs_break(a):
    i, t, d, s, q, o, dd, st = IntS(5), TS((1, 2)), DS(), SetS([1, 2]), DQ([1, 2], 3), OD(a=1), DD(list), STR("ab")
    d["k"] = 3
    dd["x"].append(1)
    i.attr = 7
    st.z = 1
    o["b"] = 2
    print("x")
    return (
        a * i,
        i.big(),
        i.attr,
        t.tot(),
        d,
        dict(d),
        s,
        s.both({1}),
        q,
        q.maxlen,
        o,
        dd,
        type(dd).__name__,
        st,
        st.z,
        type(st).__name__,
    )


@program(A, graphs=2, breaks=1)
def cm_break(a):
    log = []

    @contextlib.contextmanager
    def cm():
        log.append("in")
        try:
            yield 3
        finally:
            log.append("out")

    with cm() as k:
        a = a * k
        print("x")
        a = a + 1
    return a, log


@program(A, graphs=1, breaks=1)
def exitstack_break(a):
    log = []
    with contextlib.ExitStack() as s:
        s.callback(log.append, "cb")
        print("x")
        a = a + 1
    return a, log


@program(A, graphs=1, breaks=2, stable=False)
def partial_break(a):
    f = functools.partial(torch.add, alpha=3)
    g = operator.methodcaller("split", ",", maxsplit=1)
    h = functools.cmp_to_key(lambda x, y: y - x)
    print("x")
    return f(a, a), g("a,b,c"), sorted([1, 3, 2], key=h)


@program(A, graphs=1, breaks=1)
def func_attrs_break(a):
    def f(x, y=2, *, k=3):
        return x * y * k

    f.tag = 5
    f.__dict__["more"] = 6
    print("x")
    return f(a), f.tag, f.more, f.__kwdefaults__, f.__defaults__


@program(A, graphs=1, breaks=1)
def groupby_break(a):
    it = itertools.groupby([1, 1, 2])
    k, g = next(it)
    print("x")
    return a * k


@program(A, graphs=1, breaks=1)
def metaclass_break(a):
    print(type(H).__name__)
    return a * len(Color), Color["R"]


@program(A, graphs=3, breaks=2)
def callee_break(a):
    def helper(x, *, kind):
        r = {"sum": x.sum, "mean": x.mean}[kind]()
        print(kind)
        return r

    return helper(a, kind="sum") + helper(a, kind="mean")


@corpus.parametrize()
def test_program(program):
    check(program)
