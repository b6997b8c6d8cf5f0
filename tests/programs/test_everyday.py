"""Python as it is written every day: configurations, registries, pipelines, small algorithms."""

import abc
import bisect
import dataclasses
import functools
import heapq
import itertools
import types
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


T = TypeVar("T")


@dataclass
class Inner:
    x: int


@dataclass
class Outer:
    inner: Inner
    many: list = field(default_factory=list)
    d: dict = field(default_factory=dict)


@dataclass(eq=False)
class NoEq:
    v: Any = 1


@dataclass(unsafe_hash=True, repr=False)
class H2:
    v: int = 1

    def __repr__(self):
        return f"H2<{self.v}>"


@dataclass
class Base1:
    a: int
    b: int = 2

    def tot(self):
        return self.a + self.b


@dataclass
class Child1(Base1):
    c: int = 3

    def tot(self):
        return super().tot() + self.c


class Config:
    def __init__(self, **kw):
        for k, v in kw.items():
            setattr(self, k, v)

    def to_dict(self):
        return {k: v for k, v in self.__dict__.items() if not k.startswith("_")}

    def get(self, k, d=None):
        return getattr(self, k, d)

    def update(self, **kw):
        self.__dict__.update(kw)
        return self

    def __contains__(self, k):
        return hasattr(self, k)

    def __eq__(self, o):
        return isinstance(o, Config) and self.to_dict() == o.to_dict()

    def __repr__(self):
        return f"{self.__class__.__name__}({', '.join(f'{k}={v!r}' for k, v in self.to_dict().items())})"


class Registry:
    _items = {}

    @classmethod
    def register(cls, name):
        def deco(f):
            cls._items[name] = f
            return f

        return deco

    @classmethod
    def get(cls, name):
        if name not in cls._items:
            raise KeyError(f"unknown {name!r}; have {sorted(cls._items)}")
        return cls._items[name]


def _double(x):
    return x * 2


class Observer:
    def __init__(self):
        self.subs = defaultdict(list)
        self.seen = []

    def on(self, ev):
        return lambda f: self.subs[ev].append(f) or f

    def emit(self, ev, *a):
        return [f(*a) for f in self.subs[ev]]


def acc_fn(x, acc=[]):
    acc.append(x)
    return list(acc)


class GBox(Generic[T]):
    def __init__(self, v: T):
        self.v = v

    def map(self, f):
        return GBox(f(self.v))


class Sh(abc.ABC):
    @property
    @abc.abstractmethod
    def area(self): ...
    def double(self):
        return self.area * 2


class Sq2(Sh):
    def __init__(self, s):
        self.s = s

    @property
    def area(self):
        return self.s**2


@program(A, graphs=0)
def nested_dataclass(a):
    return (
        a,
        dataclasses.asdict(Outer(Inner(1), [Inner(2)], {"k": Inner(3)})),
        Outer(Inner(1)).inner.x,
        repr(Outer(Inner(1))),
    )


@program(A, graphs=0)
def dc_variants(a):
    return (
        a,
        NoEq() == NoEq(),
        hash(H2(1)) == hash(H2(1)),
        {H2(2): "x"}[H2(2)],
        [H2(3)],
        f"{H2(4)}",
        dataclasses.fields(H2)[0].default,
        dataclasses.is_dataclass(H2),
    )


@program(A)
def dc_inherit(a):
    return a * Child1(1).tot(), Child1(1, c=9), Child1(1) == Base1(1), Child1.__match_args__


@program(A)
def config(a):
    c = Config(h=4, act="relu", sub=Config(x=1))
    c.update(h=8)
    return (
        a * c.h,
        c.to_dict()["act"],
        c.get("nope", 3),
        "h" in c,
        c == Config(h=8, act="relu", sub=Config(x=1)),
        repr(c),
        vars(c)["h"],
        sorted(c.to_dict()),
    )


@program(A, state=lambda: Registry._items)
def registry(a):
    Registry.register("double")(_double)
    try:
        Registry.get("nope")
    except KeyError as e:
        m = str(e)
    return Registry.get("double")(a), m


@program(A)
def observer(a):
    o = Observer()

    @o.on("x")
    def h1(v):
        o.seen.append("h1")
        return v + 1

    @o.on("x")
    def h2(v):
        o.seen.append("h2")
        return v * 2

    return o.emit("x", a), o.seen, dict(o.subs).keys() == {"x"}


@program(A)
def pipeline(a):
    def compose(*fs):
        return functools.reduce(lambda f, g: lambda x: g(f(x)), fs)

    return compose(lambda x: x + 1, torch.relu, lambda x: x * 2)(a)


@program(A)
def memo_dict(a):
    memo = {}

    def fib(n):
        if n in memo:
            return memo[n]
        memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)
        return memo[n]

    return a * fib(15), len(memo)


@program(A, graphs=0)
def bisect_key(a):
    return (
        a,
        bisect.bisect([(1, "a"), (3, "b")], (2,)),
        heapq.nsmallest(2, [(3, "x"), (1, "y")], key=lambda p: p[0]),
        heapq.heappushpop([1, 2], 0),
        list(heapq.merge([1, 4], [2, 3])),
    )


@program(A, graphs=0)
def string_ops2(a):
    s = "conv1.weight"
    return (
        a,
        s.split(".")[0][-1].isdigit(),
        s.replace("conv", "bn"),
        s.endswith((".weight", ".bias")),
        f"{s:<15}|{s:>15}|{s:^15}|",
        s[:3] + s[3:].upper(),
        " ".join(reversed(s.split("."))),
        s.partition("."),
        "".join(c for c in s if c.isalpha()),
        s.encode().hex()[:4],
        s.count("n"),
        "%-8s|%8.3e|%+d" % ("ab", 12345.678, 5),
        "{:,.2f} {:>+8} {:#b} {:e}".format(1234567.891, 5, 5, 0.00012),
        f"{3.0:g} {1e10:g} {255:02x} {7:03o} {-5:=+5d} {True!s:>6} {None!r}",
    )


@program(A, graphs=0)
def int_methods(a):
    return (
        a,
        (10).bit_count(),
        (-7) // 2,
        -7 % 3,
        divmod(-7, 3),
        (7).__add__(3),
        (3.7).__floor__(),
        int("-0b11", 2),
        round(1234.5678, -2),
        round(-0.5),
        10**-2,
        5 / 2,
        1e308 * 10,
        float("nan") != float("nan"),
        -0.0 == 0.0,
        str(-0.0),
        0.1 + 0.2,
        (3).__class__,
        (1).real,
        (2.5).is_integer(),
        int(1e20),
        hash(1.0) == hash(1),
        True + True,
        not 0,
        ~True,
        1 if True else 2,
        0b101,
        0o17,
        0xFF,
        1_000,
    )


@program(A, graphs=0)
def complex_unpack(a):
    (x, (y, *z)), *rest, last = [(1, (2, 3, 4)), 5, 6, 7]
    d = {"p": 1, "q": 2}
    k1, k2 = d
    ((v1, v2),) = [d.values()]
    return a, x, y, z, rest, last, k1, k2, v1, v2, [*range(2), *"ab", *{3}], {**d, **{"q": 9}}, (*[], *(1,))


@program(A)
def scope_tricks(a):
    x = 1

    def f():
        x = 2

        def g():
            nonlocal x
            x += 1
            return x

        return g() + x

    ys = [lambda: x for _ in range(2)]
    x = 10
    return a * f(), [y() for y in ys], [(lambda q=q: q)() for q in range(2)]


@program(A, graphs=0)
def default_mutable(a):
    def f(x, acc=[]):
        acc.append(x)
        return acc

    f(1)
    return a, f(2), f.__defaults__


@program(A, state=lambda: acc_fn.__defaults__[0], graphs=0)
def default_mutable_outer(a):
    return a, acc_fn(1)


@program(A)
def kwonly_outer(a, *, scale=2.0, **kw):
    return a * scale, kw


@program(make=lambda: (torch.ones(2), 2, 3))
def star_args_fn(*args, **kw):
    return args[0] * len(args), kw


@program(A, graphs=0)
def is_chain(a):
    e1, e2 = [], []
    empty = ()
    return a, e1 is e2, e1 == e2, e1 is e1, empty is empty, None is None, a is a, [a][0] is a, (a,)[0] is a


@program(A, graphs=0)
def sentinel_obj(a):
    mark = object()

    def f(x=mark):
        return "default" if x is mark else x

    return a, f(), f(None), mark == mark, mark != object(), bool(mark), {mark: 1}[mark]


@program(A)
def class_cache_attr(a):
    class C:
        cache = {}

        def get(self, k):
            if k not in self.cache:
                self.cache[k] = k * 2
            return self.cache[k]

    return a * C().get(3), C.cache, C().get(3)


@program(A, graphs=0)
def ctx_exception_flow(a):
    log = []

    class C:
        def __init__(self, n, sup):
            self.n, self.sup = n, sup

        def __enter__(self):
            log.append(("in", self.n))
            return self

        def __exit__(self, t, v, tb):
            log.append(("out", self.n, t and t.__name__))
            return self.sup

    def f():
        with C(1, False), C(2, True):
            raise ValueError
        return "after"

    def g():
        for i in range(3):
            with C(i, True):
                if i == 1:
                    continue
                if i == 2:
                    return i
                raise KeyError(i)

    return a, f(), g(), log


@program(A, graphs=0)
def finally_order(a):
    log = []

    def f():
        try:
            try:
                log.append(1)
                raise ValueError("x")
            finally:
                log.append(2)
        except ValueError as e:
            log.append(str(e))
            return "r"
        else:
            log.append("no")
        finally:
            log.append(3)

    return a, f(), log


@program(A, graphs=0)
def exc_chain_walk(a):
    try:
        try:
            try:
                raise KeyError(1)
            except KeyError as e:
                raise ValueError(2) from e
        except ValueError:
            raise TypeError(3)
    except TypeError as e:
        out = []
        x = e
        while x is not None:
            out.append((type(x).__name__, x.args))
            x = x.__cause__ or x.__context__
    return a, out


@program(A, graphs=0)
def custom_exc_str(a):
    class E(Exception):
        def __init__(self, **kw):
            super().__init__(kw)
            self.kw = kw

        def __str__(self):
            return f"E{self.kw}"

    try:
        raise E(x=1)
    except E as e:
        return a, str(e), repr(e), e.args, f"{e}", e.kw


@program(A, graphs=0)
def module_level_types(a):
    return (
        a,
        isinstance(acc_fn, types.FunctionType),
        isinstance(Config(), Config),
        type(Config.get),
        type(Config().get),
        isinstance(len, types.BuiltinFunctionType),
        types.FunctionType is type(lambda: 0),
    )


@program(A)
def operator_inplace(a):
    row = [1]
    d = {"a": 1}
    s = {1}
    n = 5
    t = (1,)
    st = "a"
    row += [2]
    row *= 2
    d |= {"b": 2}
    s |= {2}
    s -= {1}
    n **= 2
    n //= 3
    n <<= 1
    n ^= 3
    t += (2,)
    st += "b"
    st *= 2
    return a * n, row, d, s, t, st


@program(A)
def matrix_like(a):
    class Mat:
        def __init__(self, r):
            self.r = r

        def __getitem__(self, ij):
            i, j = ij
            return self.r[i][j]

        def __setitem__(self, ij, v):
            i, j = ij
            self.r[i][j] = v

        def __matmul__(self, o):
            return Mat([[sum(x * y for x, y in zip(row, col)) for col in zip(*o.r)] for row in self.r])

        def __iter__(self):
            return iter(self.r)

    m = Mat([[1, 2], [3, 4]])
    m[0, 1] = 5
    return a * (m @ m)[1, 1], [list(r) for r in m], m[0, 1]


@program(A)
def graph_walk(a):
    g = {"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}
    seen, order, stack = set(), [], ["a"]
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        order.append(n)
        stack.extend(reversed(g[n]))
    q, dist = deque(["a"]), {"a": 0}
    while q:
        n = q.popleft()
        for m in g[n]:
            if m not in dist:
                dist[m] = dist[n] + 1
                q.append(m)
    return a * dist["d"], order, dist, sorted(seen)


@program(A)
def topk_counts(a):
    words = "the cat the dog a cat the".split()
    c = Counter(words)
    return (
        a * c["the"],
        c.most_common(2),
        {w: words.count(w) for w in dict.fromkeys(words)},
        sorted(c, key=lambda w: (-c[w], w)),
        [(k, len(list(g))) for k, g in itertools.groupby(sorted(words))],
    )


@program(A)
def generic_outer(a):
    return GBox[torch.Tensor](a).map(lambda x: x * 2).v, isinstance(GBox(1), GBox), GBox[int] == GBox[int]


@program(A)
def abstract_prop(a):
    class S(abc.ABC):
        @property
        @abc.abstractmethod
        def area(self): ...
        def double(self):
            return self.area * 2

    class Sq(S):
        def __init__(self, s):
            self.s = s

        @property
        def area(self):
            return self.s**2

    return a * Sq(3).double(), isinstance(Sq(1), S)


@program(A)
def abstract_outer(a):
    return a * Sq2(3).double(), isinstance(Sq2(1), Sh)


@program(A, graphs=0)
def mixin(a):
    class J:
        def to(self):
            return {k: v for k, v in vars(self).items()}

    class Cmp:
        def __lt__(self, o):
            return self.key() < o.key()

    class It(J, Cmp):
        def __init__(self, n):
            self.n = n

        def key(self):
            return -self.n

    return a, [i.n for i in sorted([It(1), It(3), It(2)])], It(5).to(), It.__mro__[1].__name__


@corpus.parametrize()
def test_program(program):
    check(program)
