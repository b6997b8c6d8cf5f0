"""The standard library in captured code: functools, operator, math, inspect, copy, heapq, enum, logging."""

import bisect
import cmath
import copy
import enum
import functools
import heapq
import inspect
import logging
import math
import operator
import pickle
import re
import typing
from collections import ChainMap, UserDict, UserString, deque
from typing import Optional, Union

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


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


class Perm(enum.Flag):
    R = enum.auto()
    W = enum.auto()
    X = enum.auto()
    RW = R | W


class Lvl(enum.IntEnum):
    LOW = 1
    HIGH = 5


class Str(enum.StrEnum):
    A = enum.auto()
    B = "bee"


class IFl(enum.IntFlag):
    P = 1
    Q = 2


class Cls:
    def __init__(self, k):
        self.k = k

    def m(self, x, y=1):
        return self.k * x + y

    pm = functools.partialmethod(m, y=5)

    @functools.cached_property
    def cp(self):
        self.n = getattr(self, "n", 0) + 1
        return self.k * 2

    @functools.lru_cache(maxsize=None)
    def lc(self, v):
        return v * 3

    @functools.singledispatchmethod
    def sd(self, v):
        return "obj"

    @sd.register
    def _(self, v: int):
        return "int"

    @sd.register(list)
    def _(self, v):
        return "list"


@functools.singledispatch
def sdf(v):
    return ("obj", v)


@sdf.register
def _(v: int):
    return ("int", v)


@sdf.register(list)
def _(v):
    return ("list", v)


@sdf.register(torch.Tensor)
def _(v):
    return v * 7


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@functools.cache
def cached(n, k=1):
    return n * k


@functools.total_ordering
class TO:
    def __init__(self, v):
        self.v = v

    def __eq__(self, o):
        return self.v == o.v

    def __lt__(self, o):
        return self.v < o.v


def deco(f):
    @functools.wraps(f)
    def w(*args, **kw):
        return f(*args, **kw) * 2

    w.calls = 0
    return w


@deco
def decorated(x):
    "doc"
    return x + 1


class CopyMe:
    def __init__(self, x):
        self.x = x
        self.l = [1]

    def __eq__(self, o):
        return self.x == o.x


class CopyHook:
    def __init__(self, v):
        self.v = v

    def __copy__(self):
        return CopyHook(self.v + 1)

    def __deepcopy__(self, memo):
        return CopyHook(self.v + 100)


class Scaled:
    factor = 2

    def __init__(self, by):
        self.by = by


class ScaledTwice(Scaled):
    factor = 4


@program(A)
def classes_in_their_order(a):
    kind = type(ScaledTwice(1))
    return a * sum(base.factor for base in inspect.getmro(kind) if hasattr(base, "factor")), inspect.getmro(kind)[1:]


def remembered(cache, *args, **kwargs):
    key = args, pickle.dumps(kwargs), pickle.dumps(args[0])
    return cache.setdefault(key, len(key[1]))


@program(A)
def keys_that_are_pickled(a):
    cache = {}
    return a * remembered(cache, "name"), a + remembered(cache, 2.5), len(cache), pickle.dumps(None)


@program(A, graphs=2, breaks=1)
def pickles_of_more_than_one_object(a):
    b = a + 1
    text = pickle.dumps([1, 2])
    return b * len(text), text


@program(A)
def enumeration(a):
    c = Color.RED
    return (
        a * c.value,
        c.name,
        Color(2),
        Color["GREEN"],
        c.low,
        Color.default(),
        c.twice(),
        [m.name for m in Color],
        len(Color),
        c in Color,
        c is Color.RED,
        c == Color.RED,
        c != Color.GREEN,
        str(c),
        repr(c),
        f"{c}",
        {Color.RED: 1}[c],
        isinstance(c, Color),
        Color.__members__["RED"],
        hash(c) == hash(Color.RED),
        Color._member_names_,
    )


@program(A)
def flag(a):
    p = Perm.R | Perm.W
    return (
        a * p.value,
        p,
        Perm.R in p,
        p & Perm.R,
        p ^ Perm.W,
        ~Perm.R,
        bool(p & Perm.X),
        Perm.RW == p,
        list(p),
        len(p),
        p.name,
        Perm(4),
        str(p),
        repr(Perm(0)),
    )


@program(A)
def intenum(a):
    return (
        a * Lvl.HIGH,
        Lvl.LOW + 1,
        Lvl.HIGH > Lvl.LOW,
        Lvl(1),
        max(Lvl),
        sorted([Lvl.HIGH, Lvl.LOW]),
        [10, 20][Lvl.LOW],
        f"{Lvl.LOW}",
        f"{Lvl.LOW!r}",
        str(Lvl.HIGH),
        Lvl.LOW == 1,
        int(Lvl.HIGH),
        IFl.P | IFl.Q,
        range(Lvl.HIGH),
        -Lvl.LOW,
        Lvl.LOW in (1, 2),
        {1: "x"}[Lvl.LOW],
    )


@program(A, graphs=0)
def strenum(a):
    return (
        a,
        Str.A,
        Str.B.upper(),
        Str.A == "a",
        f"{Str.B}",
        Str("bee"),
        Str.A + "x",
        {"a": 1}[Str.A],
        "x" + Str.B,
        Str.B.startswith("b"),
        len(Str.B),
        "-".join([Str.A, Str.B]),
    )


@program(A, graphs=0)
def enum_inside(a):
    made = enum.Enum("E", "X Y")
    return a, made.X.value


@program(A)
def partials_and_reductions(a):
    add3 = functools.partial(lambda x, y, z=0: x + y * 10 + z, 1)
    p2 = functools.partial(add3, z=5)
    return (
        a * p2(2),
        p2.func is add3.func,
        p2.args,
        p2.keywords,
        functools.reduce(operator.add, [1, 2, 3], 10),
        functools.reduce(lambda x, y: x * y, [a, a]),
    )


@program(A)
def partialmethod(a):
    return Cls(2).pm(a), Cls(3).pm(1)


@program(A)
def cached_property(a):
    c = Cls(2)
    return a * c.cp, c.cp, c.n, c.__dict__["cp"]


@program(A, graphs=0)
def singledispatchmethod(a):
    return a, Cls(1).sd(3), Cls(1).sd([1]), Cls(1).sd("x")


@program(A)
def single_dispatch(a):
    return sdf(a), sdf(1), sdf([1]), sdf("x"), sdf(True), sdf.dispatch(int) is sdf.registry[int]


@program(A)
def lru(a):
    return a * fib(10), cached(3), cached(3, k=4), cached(3), fib.__name__


@program(A)
def lru_inside(a):
    @functools.lru_cache
    def f(x):
        log.append(x)
        return x * 2

    log = []
    return a * f(3) * f(3), log, f(4)


@program(A, graphs=0)
def cache_info(a):
    @functools.cache
    def f(x):
        return x * 2

    f(1)
    f(1)
    return a, f.cache_info(), f.cache_clear()


@program(A, graphs=0)
def total_ordering(a):
    return (
        a,
        TO(1) <= TO(2),
        TO(3) > TO(2),
        TO(2) >= TO(2),
        sorted([TO(3), TO(1)])[0].v,
        max(TO(1), TO(2)).v,
        TO(1) != TO(2),
    )


@program(A)
def wraps(a):
    return decorated(a), decorated.__name__, decorated.__doc__, decorated.__wrapped__(a), decorated.calls


@program(A)
def wraps_inside(a):
    @deco
    def g(x):
        return x - 1

    return g(a), g.__name__, g.__wrapped__(a), g.__module__


@program(A, graphs=0)
def cmp_to_key(a):
    key = functools.cmp_to_key(lambda x, y: x - y)
    return a, key(1) < key(2), sorted([3, 1, 2], key=key), min([3, 1], key=key), key(5).obj


@program(A)
def operators_as_functions(a):
    o = operator
    return (
        a,
        o.itemgetter(1, 0)([5, 6]),
        o.attrgetter("real", "imag")(1j),
        o.methodcaller("upper")("a"),
        o.methodcaller("split", ",", maxsplit=1)("a,b,c"),
        o.concat([1], [2]),
        o.countOf([1, 1], 1),
        o.indexOf([1, 2], 2),
        o.truth([]),
        o.index(5),
        o.inv(3),
        o.abs(-1),
        o.xor(1, 3),
        o.floordiv(7, 2),
        o.mod(7, 3),
        o.lshift(1, 2),
        o.setitem([1], 0, 2),
        o.delitem([1], 0),
        o.getitem([1, 2], slice(0, 1)),
        o.is_(None, None),
        o.not_(1),
        o.iadd([1], [2]),
        o.ior({1}, {2}),
        o.and_(3, 1),
        o.matmul(a, a.T),
        o.neg(a),
        o.add(a, 1),
        o.contains([1], 1),
        o.is_not(1, None),
        o.pow(2, 3),
        o.imatmul,
        o.call(lambda x: x, 5),
    )


@program(A)
def mathematics(a):
    return (
        a * math.sqrt(4),
        math.pi,
        math.floor(2.5),
        math.ceil(2.1),
        math.gcd(12, 18),
        math.prod([1, 2, 3]),
        math.isclose(1, 1 + 1e-12),
        math.log(8, 2),
        math.log2(8),
        math.exp(0),
        math.hypot(3, 4),
        math.comb(5, 2),
        math.factorial(5),
        math.inf,
        math.isnan(math.nan),
        math.fsum([0.1] * 3),
        math.trunc(-2.5),
        math.copysign(1, -0.0),
        math.modf(2.5),
        math.frexp(8),
        math.degrees(math.pi),
        cmath.sqrt(-1),
        cmath.phase(1j),
        math.dist([0, 0], [3, 4]),
        math.lcm(4, 6),
        math.perm(4, 2),
        math.isqrt(17),
        math.pow(2, 3),
    )


@program(A, graphs=0)
def signatures(a):
    def f(x, y=1, *args, k, **kw):
        pass

    s = inspect.signature(f)
    b = s.bind(1, 2, k=3)
    b.apply_defaults()
    return (
        a,
        list(s.parameters),
        s.parameters["y"].default,
        b.arguments["x"],
        b.args,
        b.kwargs,
        str(s),
        s.parameters["k"].kind == inspect.Parameter.KEYWORD_ONLY,
        inspect.isfunction(f),
        inspect.isclass(Cls),
        inspect.ismethod(Cls(1).m),
    )


@program(A)
def chainmap(a):
    c = ChainMap({"a": 1}, {"a": 2, "b": a})
    c["n"] = 3
    d = c.new_child({"q": 1})
    return (
        c["b"] * c["a"],
        len(c),
        sorted(c),
        d["q"],
        d.parents["a"],
        c.maps[0],
        "b" in c,
        c.get("zz", 4),
        dict(c) if False else 0,
        list(c),
        c.pop("n"),
        dict(d.items()) if False else 0,
    )


@program(A, graphs=0)
def chainmap_dict(a):
    return a, dict(ChainMap({"x": 1}, {"y": 2})), list(ChainMap({"x": 1}, {"y": 2}).items())


@program(A)
def userdict(a):
    class U(UserDict):
        def __setitem__(self, k, v):
            super().__setitem__(k, v * 2)

    u = UserDict({"a": a})
    u["b"] = 2
    return (
        u["a"] * u["b"],
        len(u),
        list(u),
        "a" in u,
        u.get("z"),
        dict(u) if False else 0,
        u.data["b"],
        u.pop("b"),
        u.setdefault("k", 1),
        sorted(u.keys()),
    )


@program(A, graphs=0)
def userstring(a):
    return a, UserString("ab").upper(), UserString("a") + "b", len(UserString("abc")), str(UserString("q"))


@program(A)
def heaps(a):
    h = [5, 1, 4]
    heapq.heapify(h)
    heapq.heappush(h, 0)
    x = heapq.heappop(h)
    return (
        a * x,
        h,
        heapq.nsmallest(2, [3, 1, 2]),
        heapq.nlargest(1, [3, 1]),
        bisect.bisect([1, 3, 5], 3),
        bisect.bisect_left([1, 3], 3),
        bisect.insort(h, 3),
    )


@program(A, graphs=0)
def copies(a):
    row = [1, [2, 3], {"k": [4]}]
    s = copy.copy(row)
    d = copy.deepcopy(row)
    row[1].append(9)
    row[2]["k"].append(8)

    class Plain:
        pass

    return (
        a,
        s,
        d,
        s[1] is row[1],
        d[1] is row[1],
        copy.copy((1, 2)),
        copy.deepcopy({1: {2}}),
        copy.copy({1: 2}),
        copy.copy({3}),
        copy.deepcopy(deque([1])),
    )


@program(A, graphs=0)
def copies_of_objects(a):
    c = CopyMe(a)
    d = copy.copy(c)
    e = copy.deepcopy(CopyMe(2))
    c.l.append(5)
    return (
        d.x,
        d.l,
        e.l,
        e.x,
        type(e).__name__,
        copy.copy(CopyHook(1)).v,
        copy.deepcopy(CopyHook(1)).v,
        copy.deepcopy([CopyHook(1)])[0].v,
    )


@program(A)
def pytree(a):
    from torch.utils import _pytree as p

    t = {"a": a, "b": [a + 1, (a, 3)], "c": None}
    leaves, spec = p.tree_flatten(t)
    m = p.tree_map(lambda x: x * 2 if isinstance(x, torch.Tensor) else x, t)
    n = p.tree_map_only(torch.Tensor, lambda x: x + 1, t)
    return (
        m,
        n,
        len(leaves),
        p.tree_unflatten(leaves, spec),
        p.tree_leaves([1, [2]]),
        p.tree_all(lambda x: True, t),
        spec.num_leaves,
        p.tree_map(lambda x, y: x, [1], [2]),
    )


@program(A, graphs=0)
def pytree_spec_eq(a):
    from torch.utils import _pytree as p

    return a, p.tree_structure([1, 2]) == p.tree_structure([3, 4]), p.tree_structure([1]) == p.tree_structure((1,))


@program(A)
def typing_forms(a):
    return (
        typing.cast("int", a) * 2,
        typing.get_origin(list[int]),
        typing.get_args(dict[str, int]),
        list[int] == list[int],
        Optional[int] == Union[int, None],
        typing.get_type_hints(CopyMe.__init__),
    )


@program(A)
def import_inside(a):
    import math as m
    import os.path
    from collections import OrderedDict

    return a * m.pi, OrderedDict(a=1)["a"], os.path.join("a", "b"), os.path.basename("x/y")


@program(A)
def regex(a):
    m = re.match(r"(\w+)-(\d+)", "abc-12")
    return a * int(m.group(2)), m.group(1), re.sub("a", "b", "aa"), re.findall(r"\d", "1a2")


@program(A, graphs=0)
def regex_compiled(a):
    p = re.compile(r"x(\d)")
    return a, bool(p.search("ax1")), p.sub("y", "x1x2"), p.split("ax1b")


@program(A)
def logging_by_name(a):
    lg = logging.getLogger("some.thing")
    lg.debug("x %s", 1)
    lg.info("y")
    if lg.isEnabledFor(logging.DEBUG):
        lg.debug("q")
    return a + 1


@program(A)
def logging_level(a):
    lg = logging.getLogger("some.thing")
    return a + 1, lg.level, lg.name, lg.getEffectiveLevel(), lg.isEnabledFor(10), logging.getLevelName(10)


@corpus.parametrize()
def test_program(program):
    check(program)
