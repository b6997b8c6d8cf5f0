"""Types as users write them: numbers, containers, lazy attributes."""

import math
import operator

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class HasFloor:
    def __floor__(self):
        return 3

    def __ceil__(self):
        return 4

    def __trunc__(self):
        return 5

    def __round__(self, n=None):
        return (6, n)

    def __index__(self):
        return 2

    def __int__(self):
        return 7

    def __float__(self):
        return 1.5

    def __complex__(self):
        return 1j

    def __bool__(self):
        return False

    def __hash__(self):
        return 99

    def __abs__(self):
        return 8

    def __divmod__(self, o):
        return ("dm", o)

    def __rdivmod__(self, o):
        return ("rdm", o)

    def __pow__(self, o, m=None):
        return ("pow", o, m)

    def __rpow__(self, o):
        return ("rpow", o)

    def __len__(self):
        return 5

    def __length_hint__(self):
        return 9

    def __bytes__(self):
        return b"bb"

    def __dir__(self):
        return ["z", "a"]

    def __sizeof__(self):
        return 1


class Node:
    def __init__(self, v, nxt=None):
        self.v, self.nxt = v, nxt

    def __iter__(self):
        n = self
        while n is not None:
            yield n.v
            n = n.nxt

    def __len__(self):
        return sum(1 for _ in self)

    def __bool__(self):
        return True

    def __repr__(self):
        return f"Node({self.v!r})"


class Stack:
    def __init__(self):
        self._d = []

    def push(self, x):
        self._d.append(x)
        return self

    def pop(self):
        return self._d.pop()

    def __len__(self):
        return len(self._d)

    def __getitem__(self, i):
        return self._d[i]

    def __contains__(self, x):
        return x in self._d

    def __enter__(self):
        return self

    def __exit__(self, *e):
        self._d.clear()
        return False

    def __eq__(self, o):
        return isinstance(o, Stack) and self._d == o._d


class Temp:
    def __init__(self, c):
        self.c = c

    @property
    def f(self):
        return self.c * 9 / 5 + 32

    @f.setter
    def f(self, v):
        self.c = (v - 32) * 5 / 9

    def __format__(self, s):
        return f"{self.c:{s or '.1f'}}C"

    def __hash__(self):
        return hash(self.c)

    def __eq__(self, o):
        return self.c == o.c

    def __lt__(self, o):
        return self.c < o.c

    def __float__(self):
        return float(self.c)

    def __index__(self):
        return int(self.c)

    def __round__(self, n=0):
        return Temp(round(self.c, n))


class Lazy:
    def __init__(self, fn):
        self.fn = fn
        self.name = None

    def __set_name__(self, o, n):
        self.name = n

    def __get__(self, i, o=None):
        if i is None:
            return self
        v = i.__dict__[self.name] = self.fn(i)
        return v


class UsesLazy:
    def __init__(self):
        self.calls = 0

    @Lazy
    def val(self):
        self.calls += 1
        return 5


@program(A, graphs=0)
def conversions(a):
    h = HasFloor()
    return (
        a,
        math.floor(h),
        math.ceil(h),
        math.trunc(h),
        round(h),
        round(h, 2),
        [1, 2, 3][h],
        int(h),
        float(h),
        complex(h),
        bool(h),
        hash(h),
        abs(h),
        divmod(h, 1),
        divmod(1, h),
        pow(h, 2),
        pow(h, 2, 5),
        2**h,
        len(h),
        bytes(h),
        dir(h),
        hex(h),
        oct(h),
        bin(h),
        operator.index(h),
        range(h),
        "abc"[h],
        [0] * h,
        list(range(10))[h:],
        math.sqrt(h),
        "%d" % h,
        chr(h),
        dir(h),
    )


@program(A)
def class_with_super(a):
    class X:
        def __init__(self, k):
            self.k = k

        def f(self):
            return self.k

    class Y(X):
        def __init__(self, k):
            super().__init__(k + 1)
            self.z = 1

        def f(self):
            return super().f() * 2

    return a * Y(3).f(), Y(1).z, isinstance(Y(1), X), Y.__mro__[1] is X, Y.__bases__ == (X,)


@program(A)
def linked_list(a):
    n = Node(1, Node(2, Node(3)))
    return (
        a * sum(n),
        len(n),
        list(n),
        repr(n),
        str(n),
        [*n],
        max(n),
        2 in n,
        sorted(n, reverse=True),
        f"{n}",
        f"{n!r:>10}",
    )


@program(A)
def stack(a):
    with Stack() as s:
        s.push(1).push(2).push(3)
        r = s.pop() * s[0], 2 in s, len(s), list(s), list(reversed(s)), s == Stack().push(1).push(2)
    return a * r[0], r, len(s)


@program(A)
def temp(a):
    t = Temp(20.0)
    t.f = 50
    return (
        a * t.c,
        t.f,
        f"{t} {t:.3f}",
        float(t),
        [0] * 20 == [0] * 20,
        range(20)[t],
        round(Temp(1.26), 1).c,
        {Temp(1.0): "x"}[Temp(1.0)],
        sorted([Temp(3.0), Temp(1.0)])[0].c,
        min(Temp(2.0), Temp(1.0)).c,
        len({Temp(1.0), Temp(1.0)}),
    )


@program(A)
def lazy(a):
    u = UsesLazy()
    return a * u.val * u.val, u.calls, vars(u)


@corpus.parametrize()
def test_program(program):
    check(program)
