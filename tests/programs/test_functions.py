"""Calls of Python functions: closures, defaults, keywords, stars, recursion, partials, decorators, methods, classes."""

import functools
import operator
from collections import namedtuple
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
STATE = {"count": 0}
COUNTER = 0
HISTORY = []


def double(x):
    return x * 2


def scaled(x, factor=2.0, *, offset=1.0):
    return x * factor + offset


def variadic(*args, **kwargs):
    return sum(args) + kwargs.get("bias", 0)


def traced(function):
    @functools.wraps(function)
    def inner(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return inner


@traced
def decorated(x, y=1):
    return x * y


def factorial(x, n):
    return x if n <= 1 else factorial(x, n - 1) * n


class Affine:
    count = 0
    factor = 3.0

    def __init__(self, weight, bias=0.0):
        self.weight = weight
        self.bias = bias

    def __call__(self, x):
        return x * self.weight + self.bias

    def shifted(self, by):
        return Affine(self.weight, self.bias + by)

    @property
    def total(self):
        return self.weight + self.bias

    @total.setter
    def total(self, value):
        self.bias = value - self.weight

    @staticmethod
    def plain(x):
        return x + 1

    @classmethod
    def of(cls, x):
        return cls(x, cls.factor)

    def __add__(self, other):
        return Affine(self.weight + other.weight, self.bias + other.bias)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return self.weight * index

    def __eq__(self, other):
        return isinstance(other, Affine) and self.bias == other.bias

    def __hash__(self):
        return 1


class Child(Affine):
    def __init__(self, weight):
        super().__init__(weight, bias=5.0)

    def __call__(self, x):
        return super().__call__(x) - 1


class Fallback:
    def __init__(self):
        self.known = 2.0

    def __getattr__(self, name):
        if name.startswith("dyn_"):
            return float(len(name))
        raise AttributeError(name)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a


@dataclass
class Settings:
    scale: float = 2.0
    names: list = field(default_factory=list)

    def __post_init__(self):
        self.twice = self.scale * 2


class Color(Enum):
    RED = 1
    BLUE = 2


Pair = namedtuple("Pair", ["first", "second"])


class Typed(NamedTuple):
    x: torch.Tensor
    y: int = 3

    def total(self):
        return self.x + self.y


@program(A)
def calls_a_function(a):
    return double(double(a)) + 1


@program(A)
def defaults_and_keywords(a):
    return scaled(a) + scaled(a, 3.0, offset=2.0) + scaled(offset=0.5, x=a)


@program(A)
def star_calls(a):
    args, kwargs = [a, a], {"bias": 2}
    return variadic(*args, **kwargs) + variadic(a, *args, bias=1)


@program(A)
def decorated_function(a):
    return decorated(a, y=3)


@program(A)
def recursive_function(a):
    return factorial(a, 4)


@program(A)
def lambda_and_closure(a):
    k = 3.0
    f = lambda x: x * k  # noqa: E731 - lambdas are what is tested
    k = 4.0
    return f(a)


@program(A)
def nonlocal_counter(a):
    n = 0

    def bump():
        nonlocal n
        n += 1
        return n

    bump()
    return a * bump() + n


@program(A)
def nested_closures(a):
    def outer(k):
        def inner(x):
            return x * k + a

        return inner

    return outer(2)(a) + outer(3)(a)


@program(A)
def returned_closure_is_called_later(a):
    y = a * 2

    def later(x):
        return x + y

    return y, later(a)


@program(A)
def partial_application(a):
    f = functools.partial(scaled, factor=4.0)
    return f(a, offset=0.0) + functools.partial(torch.add, a)(a)


@program(A)
def reduce_and_operator(a):
    return functools.reduce(operator.add, [a, a, a]) + operator.mul(a, 2)


@program(A)
def makes_an_object(a):
    layer = Affine(2.0)
    layer.bias = 3.0
    return layer(a) + layer.shifted(1.0)(a) + layer.total


@program(make=lambda: (A.clone(), Affine(2.0)), changed=lambda: (A.clone(), Affine(3.0)))
def reads_attributes_of_an_argument(a, layer):
    return layer(a)


@program(make=lambda: (A.clone(), Affine(2.0)))
def writes_attributes_of_an_argument(a, layer):
    layer.weight = a.sum()
    layer.new = [1, a]
    del layer.bias
    return a


@program(make=lambda: (A.clone(), Affine(2.0)))
def property_setter(a, layer):
    layer.total = 10.0
    return a * layer.bias


@program(A)
def inheritance_and_super(a):
    return Child(2.0)(a)


@program(A)
def static_and_class_methods(a):
    return Affine.plain(a) + Affine.of(2.0)(a) + Child.plain(a)


@program(A)
def special_methods(a):
    both = Affine(1.0, 2.0) + Affine(3.0, 4.0)
    return both(a) + len(both) + both[2]


@program(A)
def user_defined_equality(a):
    return a + 1 if Affine(1.0) == Affine(2.0) and Affine(1.0) != Affine(1.0, 2.0) else a - 1


@program(make=lambda: (A.clone(), Fallback()))
def getattr_fallback(a, f):
    return a * f.known + f.dyn_abc + (1 if hasattr(f, "nothing") else 2)


@program(A)
def slots(a):
    s = Slotted(a)
    s.b = 2
    return s.a * s.b


@program(make=lambda: (Slotted(A.clone()),))
def slots_of_an_argument(s):
    s.b = s.a + 1
    return s.b * 2


@program(A)
def dataclass_instances(a):
    s = Settings(3.0)
    s.names.append("x")
    return a * s.scale + s.twice + len(s.names)


@program(make=lambda: (A.clone(), Settings()))
def dataclass_argument(a, s):
    s.names.append("seen")
    return a * s.scale


@program(A)
def returns_a_new_object(a):
    return Affine(a * 2, bias=a.sum())


@program(A, Color.RED, changed=lambda: (A.clone(), Color.BLUE))
def enum_argument(a, color):
    return a + 1 if color is Color.RED else a * color.value


@program(A)
def named_tuples(a):
    p = Pair(a, second=2)
    q = p._replace(first=a + 1)
    x, n = q
    return x * n + p.first, q, Typed(a).total(), Typed(a, 4)


@program(make=lambda: (Pair(A.clone(), 3),))
def named_tuple_argument(p):
    return p.first * p.second


@program(A)
def getattr_setattr_hasattr(a):
    s = Settings()
    s.extra = 4.0
    return a * s.extra + getattr(s, "missing", 1.0) + int(hasattr(s, "scale"))


@program(A)
def isinstance_checks(a):
    kinds = (isinstance(a, torch.Tensor), isinstance(3, (int, str)), isinstance([], dict), issubclass(Child, Affine))
    return a * sum(kinds), type(a) is torch.Tensor, callable(double)


@program(A, state=lambda: STATE)
def mutates_a_global_dict(a):
    STATE["count"] += 1
    STATE["last"] = a.sum()
    return a * STATE["count"]


@program(A, state=lambda: HISTORY)
def appends_to_a_global_list(a):
    HISTORY.append(a.shape[0])
    return a + len(HISTORY)


@program(A, state=lambda: [COUNTER], stable=False)
def assigns_a_global(a):
    global COUNTER
    COUNTER = COUNTER * 0 + 7
    return a + COUNTER


@program(A)
def function_with_mutable_default(a):
    def collect(x, seen=[]):  # noqa: B006 - what is tested
        seen.append(x)
        return len(seen)

    collect(a)
    return a * collect(a)


@program(make=lambda: (A.clone(), double), changed=lambda: (A.clone(), factorial.__wrapped__ if 0 else abs_plus))
def function_argument(a, f):
    return f(a)


def abs_plus(x):
    return x.abs() + 1


@program(make=lambda: (A.clone(), lambda x: x + 1))
def lambda_argument(a, f):
    return f(a) * 2


@program(make=lambda: (A.clone(), Affine(2.0).shifted))
def bound_method_argument(a, method):
    return method(1.0)(a)


@program(A)
def keyword_only_and_positional_only(a):
    def f(x, /, y, *, z=1):
        return x + y * z

    return f(a, 2) + f(a, y=3, z=2)


@program(A)
def wrong_call_is_caught(a):
    try:
        double(a, a)
    except TypeError:
        return a + 1
    return a


@program(A)
def max_min_sorted_with_keys(a):
    words = ["aaa", "b", "cc"]
    return a * len(max(words, key=len)) + len(min(words, key=len)) + len(sorted(words, key=len, reverse=True)[0])


@program(A)
def strings(a):
    name = f"{a.shape[0]}-{3.14159:.2f}-{'x'!r}"
    parts = name.upper().split("-")
    return a * len(name), name, "_".join(parts), "%s:%d" % ("k", 3), f"{2}"


@corpus.parametrize()
def test_program(program):
    check(program)
