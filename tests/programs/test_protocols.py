"""The protocols of objects: operators, conversions, attributes, metaclasses, abstract classes."""

import abc
import collections
import numbers
import types
from typing import Optional, Protocol, Union, runtime_checkable

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class V:
    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return V(self.v + (o.v if isinstance(o, V) else o)) if isinstance(o, (V, int, torch.Tensor)) else NotImplemented

    def __radd__(self, o):
        return V(o + self.v)

    def __iadd__(self, o):
        self.v = self.v + o
        return self

    def __sub__(self, o):
        return NotImplemented

    def __rsub__(self, o):
        return ("rsub", o)

    def __mul__(self, o):
        return V(self.v * o)

    __rmul__ = __mul__

    def __matmul__(self, o):
        return ("mm", o)

    def __rmatmul__(self, o):
        return ("rmm", o)

    def __neg__(self):
        return V(-self.v)

    def __pos__(self):
        return self

    def __invert__(self):
        return ("inv",)

    def __eq__(self, o):
        return self.v == o.v if isinstance(o, V) else NotImplemented

    def __hash__(self):
        return hash(self.v)

    def __lt__(self, o):
        return self.v < o.v

    def __contains__(self, x):
        return x == self.v

    def __getitem__(self, k):
        return ("item", k)

    def __setitem__(self, k, v):
        self.last = (k, v)

    def __delitem__(self, k):
        self.last = ("del", k)

    def __len__(self):
        return 3

    def __call__(self, *a, **k):
        return (a, k)

    def __iter__(self):
        yield from range(self.v)

    def __and__(self, o):
        return ("and", o)

    def __ror__(self, o):
        return ("ror", o)

    def __rshift__(self, o):
        return ("rs", o)

    def __truediv__(self, o):
        return ("td", o)

    def __rfloordiv__(self, o):
        return ("rfd", o)

    def __imod__(self, o):
        return ("imod", o)


class W(V):
    def __radd__(self, o):
        return "W-first"

    def __gt__(self, o):
        return "gt"


class Meta(type):
    def __new__(mcs, name, bases, ns, **kw):
        ns["tag"] = name.lower()
        return super().__new__(mcs, name, bases, ns)

    def __init__(cls, name, bases, ns, **kw):
        super().__init__(name, bases, ns)
        cls.kw = kw

    def __len__(cls):
        return 42

    def __getitem__(cls, k):
        return (cls.__name__, k)

    def __iter__(cls):
        return iter([1, 2])

    def __contains__(cls, x):
        return x == 5

    def hello(cls):
        return cls.__name__

    @property
    def prop(cls):
        return "p" + cls.__name__

    def __call__(cls, *a, **k):
        obj = super().__call__(*a, **k)
        obj.stamped = True
        return obj

    def __instancecheck__(cls, o):
        return o == 3

    def __bool__(cls):
        return False

    def __add__(cls, o):
        return ("clsadd", o)

    def __eq__(cls, o):
        return o == "me" or o is cls

    def __hash__(cls):
        return 5


class WithMeta(metaclass=Meta, opt=1):
    def __init__(self, x):
        self.x = x


class Base:
    subs = []

    def __init_subclass__(cls, /, key=None, **kw):
        super().__init_subclass__(**kw)
        cls.key = key
        Base.subs.append(cls.__name__)

    def __class_getitem__(cls, item):
        return f"{cls.__name__}[{item}]"

    def __set_name__(self, o, n):
        pass


class Derived(Base, key="K"):
    pass


class Prop:
    def __init__(self):
        self._x = 1

    @property
    def x(self):
        "docx"
        return self._x

    @x.setter
    def x(self, v):
        self._x = v * 2

    @x.deleter
    def x(self):
        self._x = -1

    ro = property(lambda self: 5)
    wo = property(None, lambda self, v: setattr(self, "_w", v))


class DataD:
    def __set_name__(self, owner, name):
        self.name = name
        self.owner = owner.__name__

    def __get__(self, i, o):
        return (self.name, self.owner) if i is None else i.__dict__.get(self.name, "unset")

    def __set__(self, i, v):
        i.__dict__[self.name] = ("set", v)

    def __delete__(self, i):
        del i.__dict__[self.name]


class NonData:
    def __get__(self, i, o):
        return ("nd", i is None, o.__name__)


class HasD:
    d = DataD()
    n = NonData()


class Get:
    def __init__(self):
        self.log = []

    def __getattr__(self, n):
        if n.startswith("_"):
            raise AttributeError(n)
        return "dyn_" + n


class GetAll:
    def __getattribute__(self, n):
        return object.__getattribute__(self, n) if n.startswith("_") else "all_" + n


class SetA:
    def __setattr__(self, n, v):
        object.__setattr__(self, n, v * 2 if n != "log" else v)

    def __delattr__(self, n):
        self.__dict__["deleted"] = n
        super().__delattr__(n)


class Slot:
    __slots__ = ("x", "y")

    def __init__(self, x):
        self.x = x


class SlotSub(Slot):
    __slots__ = ("z",)


class SlotDict(Slot):
    pass


class NewO:
    inst = 0

    def __new__(cls, *args):
        self = object.__new__(cls)
        self.made = args
        return self

    def __init__(self, *args):
        self.inited = args


class NewInt:
    def __new__(cls, v):
        return v + 1


class Single:
    _i = None

    def __new__(cls):
        if cls._i is None:
            cls._i = super().__new__(cls)
        return cls._i


class Abs(abc.ABC):
    @abc.abstractmethod
    def f(self): ...
    @property
    @abc.abstractmethod
    def g(self): ...


class Conc(Abs):
    def f(self):
        return 1

    g = 5


class Virt:
    pass


@runtime_checkable
class HasF(Protocol):
    def f(self): ...


class Reg(abc.ABC):
    pass


Reg.register(Virt)


class Attr:
    count = 0
    table = {}


@program(A)
def dunders(a):
    x = V(2)
    y = x
    y += 5
    x[1:2] = 3
    l1 = x.last
    del x[4]
    z = V(3)
    z %= 4
    return (
        (V(1) + a).v,
        (a.sum() * 1 + 0),
        (V(1) + 2).v,
        (3 + V(1)).v,
        V(1) - V(2) if False else (4 - V(1)),
        (V(2) * 3).v,
        (3 * V(2)).v,
        V(1) @ 2,
        2 @ V(1),
        (-V(1)).v,
        (+x) is x,
        ~x,
        V(1) == V(1),
        V(1) == 1,
        V(1) != V(2),
        V(1) < V(2),
        V(2) > V(1),
        7 in x,
        x[0],
        x[1:2, ...],
        l1,
        x.last,
        len(x),
        bool(x),
        x(1, k=2),
        list(V(3)),
        [*V(2)],
        x & 1,
        1 | x,
        x >> 1,
        x / 2,
        9 // x,
        z,
        x is y,
        x.v,
        {V(1): 1}[V(1)],
        sorted([V(2), V(1)])[0].v,
        V(1) + W(2),
        max(V(1), V(3)).v,
    )


@program(A)
def metaclass(a):
    w = WithMeta(2)
    return (
        a * w.x,
        w.stamped,
        WithMeta.tag,
        WithMeta.kw,
        len(WithMeta),
        WithMeta[3],
        list(WithMeta),
        5 in WithMeta,
        WithMeta.hello(),
        WithMeta.prop,
        isinstance(3, WithMeta),
        isinstance(w, WithMeta),
        bool(WithMeta),
        WithMeta + 1,
        WithMeta == "me",
        type(w) is WithMeta,
    )


@program(A, graphs=0)
def init_subclass(a):
    return a, Derived.key, Base.subs, Base[int], Derived["q"]


@program(A)
def properties(a):
    p = Prop()
    p.x = 3
    r = p.x
    del p.x
    p.wo = 9
    out = []
    for f in (lambda: setattr(p, "ro", 1), lambda: delattr(p, "ro"), lambda: p.wo):
        try:
            f()
        except AttributeError as e:
            out.append(str(e))
    p.x += 1
    return a * r, p.x, p._w, out, Prop.x.__doc__, Prop.x.fget(p), isinstance(Prop.x, property), vars(p)


@program(A, graphs=0)
def descriptors(a):
    h = HasD()
    r = [h.d, h.n, HasD.d, HasD.n]
    h.d = 1
    r.append(h.d)
    del h.d
    r.append(h.d)
    h.n = 2
    r.append(h.n)
    h.__dict__["d"] = 3
    r.append(h.d)
    return a, r


@program(A, graphs=0)
def getattr_hooks(a):
    g = Get()
    s = SetA()
    s.q = 3
    del s.q
    s.r = 4
    return (
        a,
        g.foo,
        getattr(g, "bar"),
        hasattr(g, "_x"),
        getattr(g, "_x", 5),
        GetAll().zip,
        vars(s),
        s.r,
        g.log,
        hasattr(g, "log"),
    )


@program(A)
def slotted(a):
    s = Slot(2)
    out = []
    for f in (lambda: s.y, lambda: setattr(s, "q", 1), lambda: delattr(s, "y")):
        try:
            f()
        except AttributeError as e:
            out.append(str(e))
    s.y = 5
    t = SlotSub(1)
    t.z = a
    u = SlotDict(3)
    u.w = 1
    del s.x
    return t.z * s.y, out, hasattr(s, "x"), hasattr(s, "__dict__"), u.__dict__, u.x, Slot.__slots__


@program(A, graphs=0)
def own_new(a):
    return a, NewO(1).made, NewO(2).inited, NewInt(4)


@program(A, graphs=0)
def singleton(a):
    return a, Single() is Single()


@program(A, graphs=0)
def abstract_classes(a):
    try:
        Abs()
    except TypeError as e:
        m = str(e)
    return (
        a,
        m,
        Conc().f(),
        isinstance(Conc(), Abs),
        issubclass(Conc, Abs),
        isinstance([], collections.abc.Sequence),
        isinstance({}, collections.abc.Mapping),
        isinstance(iter([]), collections.abc.Iterator),
        isinstance(len, collections.abc.Callable),
        isinstance(1, numbers.Number),
        isinstance(1.0, numbers.Real),
        issubclass(int, numbers.Integral),
        isinstance(Conc(), collections.abc.Hashable),
        isinstance(a, collections.abc.Iterable),
        isinstance((x for x in ()), collections.abc.Generator),
        isinstance({1}, collections.abc.Set),
        isinstance({}.keys(), collections.abc.KeysView),
        isinstance("a", (str, bytes)),
        isinstance(1, int | str),
        isinstance(None, Optional[int]),
        isinstance(1, Union[int, str]),
    )


@program(A, graphs=0)
def protocol(a):
    return (
        a,
        isinstance(Conc(), HasF),
        isinstance(Virt(), HasF),
        isinstance(Virt(), Reg),
        issubclass(Virt, Reg),
        issubclass(Conc, HasF),
    )


@program(A)
def attr_builtins(a):
    m = types.SimpleNamespace(x=1, y=2)
    setattr(m, "z", a)
    delattr(m, "y")
    return (
        m.z * m.x,
        hasattr(m, "y"),
        getattr(m, "q", None),
        vars(m).keys(),
        sorted(m.__dict__),
        m == types.SimpleNamespace(x=1, z=a) if False else 1,
        repr(types.SimpleNamespace(b=1)),
        types.SimpleNamespace(**{"u": 3}).u,
    )


@program(A, graphs=0)
def simplens_eq(a):
    return a, types.SimpleNamespace(x=1) == types.SimpleNamespace(x=1), types.SimpleNamespace(x=1) == 5


@program(A, graphs=0)
def type_calls(a):
    return (
        a,
        type(a) is torch.Tensor,
        type(1),
        type([]) is list,
        type(type),
        type(Attr()).__name__,
        type(a).__name__,
        int.__name__,
        isinstance(Attr, type),
        type(None),
        type(NotImplemented).__name__,
        Attr().__class__ is Attr,
        type(lambda: 1).__name__,
    )


@corpus.parametrize()
def test_program(program):
    check(program)
