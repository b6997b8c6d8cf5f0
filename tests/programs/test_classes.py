"""Classes as users write them: super, properties, descriptors, special methods, dataclasses, enums, subclasses."""

import abc
import collections
import enum
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from dataclasses import astuple, dataclass, field, fields, replace
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
T = TypeVar("T")


class Base:
    kind = "base"
    made: ClassVar[dict] = {"count": 0}

    def __init__(self, k=1.0):
        self.k = k

    def go(self, x):
        return x * self.k

    def twice(self, x):
        return self.go(self.go(x))

    @classmethod
    def build(cls, k):
        return cls(k)

    @staticmethod
    def add(x, y):
        return x + y

    @property
    def half(self):
        return self.k / 2

    @half.setter
    def half(self, value):
        self.k = value * 2

    @half.deleter
    def half(self):
        self.k = 0.0


class Left(Base):
    kind = "left"

    def go(self, x):
        return super().go(x) + 1


class Right(Base):
    def go(self, x):
        return super(Right, self).go(x) * 10

    @classmethod
    def build(cls, k):
        return super().build(k + 1)

    @property
    def half(self):
        return super().half + 100


class Diamond(Left, Right):
    pass


class Typed:
    """A data descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name, 0.0)

    def __set__(self, instance, value):
        setattr(instance, self.name, float(value))


class Doubling:
    """A descriptor without __set__: instances may hide it."""

    def __init__(self, value):
        self.value = value

    def __get__(self, instance, owner):
        return self.value * 2


class Described:
    size = Typed()
    rate = Doubling(4.0)


class Vector:
    def __init__(self, *xs):
        self.xs = list(xs)

    def __add__(self, other):
        return Vector(*[x + y for x, y in zip(self.xs, other.xs)]) if isinstance(other, Vector) else NotImplemented

    def __radd__(self, other):
        return Vector(*[other + x for x in self.xs])

    def __mul__(self, k):
        return Vector(*[x * k for x in self.xs])

    def __neg__(self):
        return self * -1

    def __iadd__(self, other):
        self.xs = [x + other for x in self.xs]
        return self

    def __getitem__(self, i):
        return self.xs[i]

    def __setitem__(self, i, value):
        self.xs[i] = value

    def __delitem__(self, i):
        del self.xs[i]

    def __len__(self):
        return len(self.xs)

    def __bool__(self):
        return bool(self.xs)

    def __contains__(self, x):
        return any(x is y for y in self.xs)

    def __eq__(self, other):
        return isinstance(other, Vector) and len(self) == len(other)

    def __lt__(self, other):
        return len(self) < len(other)

    def __hash__(self):
        return len(self.xs)

    def __call__(self, f):
        return Vector(*map(f, self.xs))

    def __repr__(self):
        return f"Vector({len(self.xs)})"

    def __format__(self, how):
        return f"<{how}{len(self.xs)}>"

    def __int__(self):
        return len(self.xs)

    def __index__(self):
        return len(self.xs)

    def __matmul__(self, other):
        return sum(x * y for x, y in zip(self.xs, other.xs))


class Proxy:
    def __init__(self, inner):
        object.__setattr__(self, "inner", inner)

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __setattr__(self, name, value):
        setattr(self.inner, name, value)


class Guarded:
    def __getattribute__(self, name):
        if name == "secret":
            return 42.0
        return object.__getattribute__(self, name)


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...

    def describe(self):
        return f"{type(self).__name__} {self.area()}"


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2


class Runs(Protocol):
    def go(self, x): ...


class Box(Generic[T]):
    def __init__(self, item: T):
        self.item = item


class Meta(type):
    def __new__(mcls, name, bases, namespace):
        namespace["added"] = 3.0
        return super().__new__(mcls, name, bases, namespace)


class WithMeta(metaclass=Meta):
    pass


class Plugin:
    registry: ClassVar[list] = []

    def __init_subclass__(cls, /, factor=1.0):
        cls.factor = factor
        Plugin.registry.append(cls.__name__)


class Tripler(Plugin, factor=3.0):
    pass


class Single:
    held = None

    def __new__(cls, x):
        made = super().__new__(cls)
        made.tag = "new"
        return made

    def __init__(self, x):
        self.x = x


@dataclass(frozen=True)
class Frozen:
    x: int
    y: float = 2.0


@dataclass(order=True)
class Ranked:
    rank: int
    name: str = field(compare=False, default="")


@dataclass(slots=True)
class Slim:
    value: torch.Tensor
    n: int = 1


@dataclass
class Parent:
    a: torch.Tensor
    more: dict = field(default_factory=dict)


@dataclass
class Kid(Parent):
    b: float = 1.0

    def __post_init__(self):
        self.more["made"] = self.b


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 5

    @property
    def next(self):
        return Level.HIGH

    @classmethod
    def default(cls):
        return cls.LOW


class Flags(enum.Flag):
    READ = 1
    WRITE = 2


class Name(str, enum.Enum):  # noqa: UP042 - the older form is in use
    RELU = "relu"
    GELU = "gelu"


class Row(NamedTuple):
    first: torch.Tensor
    second: int = 2

    @property
    def product(self):
        return self.first * self.second


class AttributeDict(dict):
    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name, value):
        self[name] = value


class Default(dict):
    def __missing__(self, key):
        self[key] = len(self)
        return self[key]


class Stack(list):
    def push(self, x):
        self.append(x)
        return self

    @property
    def top(self):
        return self[-1]


class Interval(tuple):
    __slots__ = ()

    def __new__(cls, low, high):
        return super().__new__(cls, (low, high))

    @property
    def width(self):
        return self[1] - self[0]


class Celsius(float):
    def fahrenheit(self):
        return self * 9 / 5 + 32


@program(A)
def diamond_inheritance(a):
    return Diamond(2.0).go(a), [kind.__name__ for kind in Diamond.__mro__]


@program(make=lambda: (A.clone(), Diamond(2.0)))
def super_on_an_argument(a, d):
    return d.twice(a) + d.half


@program(A)
def super_in_class_methods(a):
    return Right.build(1.0).go(a) + Left.build(2.0).go(a)


@program(make=lambda: (A.clone(), Base(2.0), Left(3.0)), changed=lambda: (A.clone(), Left(2.0), Left(3.0)))
def method_of_each_argument_type(a, x, y):
    return x.go(a) + y.go(a)


@program(make=lambda: (A.clone(), Base(3.0)))
def property_get_set_delete(a, b):
    b.half = 4.0
    x = a * b.k
    del b.half
    return x + b.k


@program(make=lambda: (A.clone(), Described()))
def data_descriptor(a, d):
    d.size = 3
    d.size += 1
    return a * d.size, d.rate, type(Described.size).__name__


@program(make=lambda: (A.clone(), Described()))
def non_data_descriptor_is_hidden(a, d):
    before = d.rate
    d.rate = 1.0
    return a * before + d.rate


@program(A)
def arithmetic_of_user_objects(a):
    v = Vector(a, a + 1)
    w = -(v + v) * 2
    w += 1
    u = sum([v, v], 0)
    return w[0], w @ v, u[1], len(w), Vector() or "empty"


@program(A)
def container_methods_of_user_objects(a):
    v = Vector(a, 1.0, 2.0)
    v[1] = a * 2
    del v[2]
    return v[0] + v[1], a in v, 5.0 in v, v == Vector(1, 2), v < Vector(), sorted([v, Vector()])[0].xs


@program(A)
def conversions_of_user_objects(a):
    v = Vector(1, 2)
    return a * int(v), repr(v), str(v), f"{v:x}", f"{v!r}", [0, 1, 2, 3][v], {v: 1}[Vector(3, 4)], bool(Vector())


@program(A)
def calling_user_objects(a):
    return Vector(a, a)(lambda x: x * 2).xs


@program(A)
def not_implemented_falls_back(a):
    try:
        Vector(1) + 2
    except TypeError as error:
        return a + 1, str(error)


@program(make=lambda: (A.clone(), Proxy(Base(2.0))))
def proxy_object(a, p):
    p.extra = 5.0
    return p.go(a) + p.extra, p.kind, hasattr(p, "nothing")


@program(make=lambda: (A.clone(), Guarded()))
def custom_getattribute(a, g):
    return a * g.secret


@program(A)
def abstract_base_class(a):
    s = Square(3)
    try:
        Shape()
    except TypeError:
        return a * s.area(), s.describe(), isinstance(s, Shape)


@program(A)
def generic_class(a):
    return Box[torch.Tensor](a).item * 2 + Box(a).item


@program(A)
def class_with_a_metaclass(a):
    return a * WithMeta.added + WithMeta().added, type(WithMeta).__name__


@program(A)
def init_subclass_hook(a):
    return a * Tripler.factor, Plugin.registry


@program(A)
def user_new(a):
    s = Single(a)
    return s.x * 2, s.tag


@program(A, state=lambda: Base.made)
def class_attribute_holds_state(a):
    Base.made["count"] += 1
    Left().made["left"] = 2
    return a * Base.made["count"]


@program(make=lambda: (A.clone(), Base(1.0)), graphs=0)
def instance_attribute_hides_the_class(a, b):
    b.kind = "own"
    first = b.kind
    del b.kind
    return a, first, b.kind


@program(make=lambda: (A.clone(), Base(1.0)))
def dict_of_an_instance(a, b):
    b.__dict__["k"] = 4.0
    b.__dict__.update(new=1)
    return a * b.k, vars(b), "new" in b.__dict__


@program(A)
def method_assigned_to_an_instance(a):
    b = Base(2.0)
    b.go = lambda x: x - 1
    return b.twice(a)


@program(A)
def frozen_dataclass(a):
    f = Frozen(3)
    try:
        f.x = 4
    except AttributeError:
        a = a + 1
    return a * f.x, replace(f, y=5.0), f == Frozen(3), hash(f) == hash(Frozen(3)), {f: 1}[Frozen(3)]


@program(make=lambda: (A.clone(), Frozen(3)), changed=lambda: (A.clone(), Frozen(4)))
def frozen_dataclass_argument(a, f):
    return a * f.x + f.y


@program(A, graphs=0)
def ordered_dataclasses(a):
    ranks = sorted([Ranked(2, "b"), Ranked(1, "a")])
    return a, ranks[0].name, Ranked(1) == Ranked(1, "x"), repr(Ranked(1, "z")), max(ranks).rank


@program(make=lambda: (Slim(A.clone(), 2),))
def dataclass_with_slots(s):
    s.n += 1
    return s.value * s.n, Slim(s.value + 1)


@program(A)
def inherited_dataclass(a):
    k = Kid(a * 2, b=3.0)
    return k.a + k.more["made"], [f.name for f in fields(k)], k


@program(A, graphs=0)
def dataclass_helpers(a):
    return a, astuple(Frozen(1)), Frozen.__dataclass_fields__["y"].default, Frozen.__match_args__


@program(A, Level.LOW, changed=lambda: (A.clone(), Level.HIGH))
def int_enum(a, level):
    return a * level + level.value, level.name, level < Level.HIGH, Level(5) is Level.HIGH, level.next


@program(A)
def enum_iteration_and_lookup(a):
    return a * len(Level), [m.name for m in Level], Level["LOW"], Level.default(), Flags.READ | Flags.WRITE


@program(A, Name.RELU, changed=lambda: (A.clone(), Name.GELU))
def string_enum_chooses(a, name):
    if name == "relu":
        return torch.relu(a), name.upper()
    return {Name.GELU: torch.nn.functional.gelu}[name](a), name.value


@program(A)
def named_tuple_class(a):
    r = Row(a, second=3)
    first, second = r
    return r.product, r._replace(second=4).product, r._fields, first * second, r._asdict()["second"], r


@program(make=lambda: (Row(A.clone()),))
def named_tuple_class_argument(r):
    return r.product + r[1], isinstance(r, tuple)


@program(make=lambda: (AttributeDict(x=A.clone(), n=3),))
def dict_subclass_with_attributes(d):
    d.y = d.x * d.n
    d["z"] = 1
    return d.y + d.z, list(d), len(d)


@program(A)
def dict_subclass_made_inside(a):
    d = Default(x=a)
    d["new"]
    return d["x"] * d["new"], d, d.get("none")


@program(make=lambda: (Stack([A.clone()]),))
def list_subclass_argument(s):
    s.push(s.top * 2).push(3)
    return s[1] + s.top, len(s)


@program(A)
def list_subclass_made_inside(a):
    s = Stack([1, 2]).push(a)
    return s.top * sum(s[:2]), s


@program(A)
def tuple_and_float_subclasses(a):
    return a * Interval(1, 4).width, Interval(1, 2), a + Celsius(10.0).fahrenheit()


@program(A)
def counter(a):
    c = Counter("abca")
    c.update({"b": 2})
    c["z"] += 1
    return a * c["a"] + c["none"], c.most_common(1), sum(c.values()), dict(c)


@program(A)
def chain_map_and_user_containers(a):
    m = ChainMap({"x": 1}, {"x": 2, "y": 3})
    u, v = UserDict(k=2), UserList([1, 2])
    u["j"] = 3
    v.append(4)
    return a * m["x"] + m["y"] + u["j"] + len(v)


@program(make=lambda: (A.clone(), OrderedDict(x=1, y=2)))
def ordered_dict_argument(a, d):
    d.move_to_end("x")
    d["z"] = d.pop("y")
    return a * d["x"], list(d), d.popitem(last=False)


@program(make=lambda: (A.clone(), defaultdict(list)))
def default_dict_argument(a, d):
    d["k"].append(a)
    d["k"].append(2)
    return a * len(d["k"]), len(d["none"]), "other" in d


@program(A)
def default_dict_with_a_lambda(a):
    d = defaultdict(lambda: a * 2)
    return d["x"] + d["y"], len(d)


@program(A)
def bounded_deque(a):
    d = deque([1, 2, 3], maxlen=3)
    d.append(4)
    d.extendleft([9])
    return a * d[0], list(d), d.maxlen, d.count(2)


@program(make=lambda: (A.clone(), {1, 2, 3}, frozenset({2})))
def set_algebra(a, s, f):
    s.add(7)
    s.discard(1)
    return a * len(s | {9}), s & f, s - f, s ^ {3}, f <= s, s.isdisjoint({0}), s.union([5]), 2 in f


@program(make=lambda: (A.clone(), {"x": 1, "y": 2}))
def dict_views(a, d):
    keys, values, items = d.keys(), d.values(), d.items()
    d["z"] = 3
    return a * sum(values), list(keys), ("z", 3) in items, keys & {"x"}, len(items), "q" in keys


@program(A)
def dict_methods(a):
    d = dict(x=1) | {"y": 2}
    d |= {"z": 3}
    popped, default = d.pop("x"), d.pop("q", None)
    d.setdefault("w", []).append(1)
    e = dict.fromkeys("ab", 0)
    d.update(e, c=1)
    return a * popped, default, d, d.copy() == d, d.popitem(), list(reversed(d))


@program(A)
def named_tuple_factory_inside(a):
    pair = collections.namedtuple("pair", "x y", defaults=[2])
    return pair(a).x * pair(a).y


Pair = namedtuple("Pair", ["x", "y"], defaults=[2])


@program(A)
def named_tuple_with_defaults(a):
    p = Pair(a)
    return p.x * p.y, p == Pair(a, 2) if False else p.index(2) if False else p[1], Pair._make([1, 2])


@program(A)
def class_identity_and_type_calls(a):
    b = Left(2.0)
    return (
        type(b)(3.0).go(a),
        type(b) is Left,
        b.__class__.__name__,
        isinstance(b, (Right, Base)),
        issubclass(Left, Base),
    )


@program(A)
def attributes_by_name(a):
    b = Base()
    for name, value in {"p": 1.0, "q": 2.0}.items():
        setattr(b, name, value)
    delattr(b, "p")
    return a * getattr(b, "q"), getattr(b, "p", None), hasattr(b, "go"), hasattr(b, "nope"), getattr(Base, "kind")


@program(A)
def unbound_and_class_calls(a):
    b = Base(2.0)
    return Base.go(b, a) + Base.add(a, 1) + b.add(a, 2), Base.half.fget(b)


@corpus.parametrize()
def test_program(program):
    check(program)
