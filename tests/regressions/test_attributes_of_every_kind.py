"""Whether an object has an attribute was answered differently by each kind of value, and often wrongly.

`hasattr(generator, "anything")` was true, `hasattr([1], "__call__")` too (the metaclass has it), and `getattr` with a
default raised. For every kind of object and name, compiled code gives Python's answer.
"""

import array
import collections
import contextlib
import dataclasses
import decimal
import enum
import fractions
import functools
import itertools
import operator
import pathlib
import re
import threading
import types
import weakref

import numpy
import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]

NAMES = (
    "a value __len__ __call__ __dict__ __name__ __qualname__ __module__ __class__ __doc__ __self__ __func__ __iter__ "
    "__next__ __hash__ __eq__ __add__ __radd__ __index__ __float__ __int__ __bool__ __enter__ __exit__ __getitem__ "
    "__setitem__ __contains__ __reversed__ __mro__ __bases__ __subclasses__ __slots__ __wrapped__ __code__ "
    "__get__ __set__ __array__ __torch_function__ __members__ __await__ __getattr__ __abstractmethods__ __missing__ "
    "__length_hint__ mro shape append keys items start func real close send __nothing__"
).split()


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Flags(enum.Flag):
    ONE = 1


@dataclasses.dataclass
class Data:
    a: int = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    a: int = 1


class Empty:
    pass


class Slots:
    __slots__ = ("a",)


class Fallback:
    def __getattr__(self, name):
        if name == "a":
            return 3
        raise AttributeError(name)


class Callable:
    def __call__(self):
        return 1


class Meta(type):
    value = 4

    def __call__(cls, *args):
        return super().__call__(*args)


class OfMeta(metaclass=Meta):
    pass


class Property:
    @property
    def a(self):
        raise AttributeError("not yet")


class OwnList(list):
    pass


class OwnDict(dict):
    a = 3


class OwnInt(int):
    pass


class OwnText(str):
    pass


class Iterates:
    def __iter__(self):
        return iter((1,))


class Point(collections.namedtuple("Point", "a b")):
    pass


def plain_function():
    return 1


def generator_function():
    yield 1


async def coroutine_function():
    return 1


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.value = torch.nn.Parameter(torch.ones(1))


class WithMethods:
    def method(self):
        return 1

    @classmethod
    def made(cls):
        return 1

    @staticmethod
    def apart():
        return 1


NAMED_TUPLE = collections.namedtuple("NAMED_TUPLE", "a b")

# Each is called outside and passed in, and called inside compiled code.
MAKERS = {
    "int": lambda x: 3,
    "float": lambda x: 0.5,
    "bool": lambda x: True,
    "complex": lambda x: 1j,
    "text": lambda x: "text",
    "bytes": lambda x: b"text",
    "bytearray": lambda x: bytearray(b"text"),
    "None": lambda x: None,
    "Ellipsis": lambda x: ...,
    "NotImplemented": lambda x: NotImplemented,
    "list": lambda x: [1],
    "list of tensors": lambda x: [x],
    "tuple": lambda x: (1, 2),
    "tuple of tensors": lambda x: (x,),
    "named tuple": lambda x: NAMED_TUPLE(1, 2),
    "subclass of a named tuple": lambda x: Point(1, 2),
    "dict": lambda x: {"a": 1},
    "set": lambda x: {1},
    "frozenset": lambda x: frozenset({1}),
    "deque": lambda x: collections.deque([1]),
    "defaultdict": lambda x: collections.defaultdict(list),
    "OrderedDict": lambda x: collections.OrderedDict(a=1),
    "Counter": lambda x: collections.Counter("aa"),
    "ChainMap": lambda x: collections.ChainMap({"a": 1}),
    "mappingproxy": lambda x: types.MappingProxyType({"a": 1}),
    "keys": lambda x: {"a": 1}.keys(),
    "values": lambda x: {"a": 1}.values(),
    "items": lambda x: {"a": x}.items(),
    "range": lambda x: range(3),
    "slice": lambda x: slice(1, 2),
    "iterator over a list": lambda x: iter([1]),
    "iterator over a dict": lambda x: iter({"a": 1}),
    "iterator over a set": lambda x: iter({1}),
    "iterator over a range": lambda x: iter(range(2)),
    "zip": lambda x: zip([1], [x], strict=True),
    "map": lambda x: map(str, [1]),
    "filter": lambda x: filter(None, [1]),
    "enumerate": lambda x: enumerate([x]),
    "reversed": lambda x: reversed([1]),
    "count": lambda x: itertools.count(),
    "chain": lambda x: itertools.chain([1]),
    "generator": lambda x: generator_function(),
    "generator expression": lambda x: (n for n in [x]),
    "function": lambda x: plain_function,
    "lambda": lambda x: lambda: x,
    "generator function": lambda x: generator_function,
    "builtin function": lambda x: len,
    "method of a list": lambda x: [1].append,
    "method of a text": lambda x: "a".join,
    "method of a dict": lambda x: {}.get,
    "method of a tensor": lambda x: x.sum,
    "bound method": lambda x: WithMethods().method,
    "class method": lambda x: WithMethods.made,
    "static method": lambda x: WithMethods.apart,
    "method of a class": lambda x: list.append,
    "operator": lambda x: operator.add,
    "itemgetter": lambda x: operator.itemgetter(0),
    "partial": lambda x: functools.partial(plain_function),
    "partial over a tensor": lambda x: functools.partial(torch.add, x),
    "cached function": lambda x: functools.lru_cache(plain_function),
    "class": lambda x: Empty,
    "builtin class": lambda x: list,
    "class with a metaclass": lambda x: OfMeta,
    "enum class": lambda x: Color,
    "module class": lambda x: torch.nn.Linear,
    "tensor class": lambda x: torch.Tensor,
    "generic alias": lambda x: list[int],
    "union": lambda x: int | str,
    "enum member": lambda x: Color.RED,
    "number enum member": lambda x: Level.LOW,
    "flag": lambda x: Flags.ONE,
    "object": lambda x: object(),
    "instance": lambda x: Empty(),
    "instance of a metaclass's class": lambda x: OfMeta(),
    "data class": lambda x: Data(),
    "frozen data class with slots": lambda x: Slotted(),
    "empty slots": lambda x: Slots(),
    "own __getattr__": lambda x: Fallback(),
    "callable instance": lambda x: Callable(),
    "property that raises": lambda x: Property(),
    "own iterator": lambda x: Iterates(),
    "own list": lambda x: OwnList([1]),
    "own dict": lambda x: OwnDict(),
    "own int": lambda x: OwnInt(1),
    "own text": lambda x: OwnText("a"),
    "exception": lambda x: ValueError("a"),
    "StopIteration": lambda x: StopIteration(3),
    "tensor": lambda x: x,
    "computed tensor": lambda x: x + 1,
    "parameter": lambda x: torch.nn.Parameter(torch.ones(2)),
    "size": lambda x: x.shape,
    "dtype": lambda x: x.dtype,
    "device": lambda x: x.device,
    "layout": lambda x: x.layout,
    "return type": lambda x: x.max(0),
    "torch function": lambda x: torch.sin,
    "torch module": lambda x: torch.nn.functional,
    "linear": lambda x: torch.nn.Linear(1, 1),
    "own module": lambda x: Own(),
    "sequential": lambda x: torch.nn.Sequential(torch.nn.ReLU()),
    "module list": lambda x: torch.nn.ModuleList([torch.nn.ReLU()]),
    "parameter list": lambda x: torch.nn.ParameterList([torch.ones(1)]),
    "generator of numbers": lambda x: torch.Generator(),
    "finfo": lambda x: torch.finfo(torch.float32),
    "no_grad": lambda x: torch.no_grad(),
    "array": lambda x: numpy.ones(2),
    "array of a tensor": lambda x: x.numpy(),
    "numpy number": lambda x: numpy.float32(1),
    "numpy dtype": lambda x: numpy.dtype("float32"),
    "numpy function": lambda x: numpy.sin,
    "python module": lambda x: re,
    "pattern": lambda x: re.compile("a"),
    "match": lambda x: re.match("a", "a"),
    "path": lambda x: pathlib.PurePath("a"),
    "fraction": lambda x: fractions.Fraction(1, 2),
    "decimal": lambda x: decimal.Decimal(1),
    "namespace": lambda x: types.SimpleNamespace(a=1),
    "weak reference": lambda x: weakref.ref(plain_function),
    "lock": lambda x: threading.Lock(),
    "local": lambda x: threading.local(),
    "null context": lambda x: contextlib.nullcontext(1),
    "machine array": lambda x: array.array("i", [1]),
}


def answers(made):
    found = []
    for name in NAMES:
        found.append((name, hasattr(made, name)))
        found.append((name, getattr(made, name, NAMES) is NAMES))
        found.append((name, callable(getattr(made, name, None))))
    found.append(("callable", callable(made)))
    return found


def different(expected, ours):
    return [
        f"{name}: {theirs}, compiled {mine}"
        for (name, theirs), (_, mine) in zip(expected, ours, strict=True)
        if theirs != mine
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", MAKERS)
def test_of_an_argument(kind, backend):
    made = MAKERS[kind](torch.ones(2))
    ours = plumbline.compile(lambda x, made: (x + 1, answers(made)), backend=backend)(torch.ones(2), made)[1]
    assert different(answers(made), ours) == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", MAKERS)
def test_of_what_was_made_inside(kind, backend):
    make = MAKERS[kind]
    ours = plumbline.compile(lambda x: (x + 1, answers(make(x))), backend=backend)(torch.ones(2))[1]
    assert different(answers(make(torch.ones(2))), ours) == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("first", "second"), [(2, 5), (0.5, 0.75)])
def test_of_numbers_that_vary(first, second, backend):
    compiled = plumbline.compile(lambda x, n: (x * n, answers(n)), backend=backend)
    compiled(torch.ones(2), first)
    assert different(answers(second), compiled(torch.ones(2), second)[1]) == []
