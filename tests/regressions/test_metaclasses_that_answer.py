"""`isinstance` and `issubclass` answered by the classes alone where a metaclass has an answer of its own."""

import abc
import collections.abc
import numbers
import typing

import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


class ShapeMeta(type):
    def __instancecheck__(cls, thing):
        return isinstance(thing, torch.Tensor) and thing.dim() == cls.dimensions

    def __subclasscheck__(cls, kind):
        return kind is torch.Tensor or issubclass(kind, str)


class Vector(metaclass=ShapeMeta):
    dimensions = 1


class Matrix(metaclass=ShapeMeta):
    dimensions = 2


class Strange(type):
    def __instancecheck__(cls, thing):
        return type(thing) is not int

    def __subclasscheck__(cls, kind):
        return False


class NotNumbers(metaclass=Strange):
    pass


class Own(abc.ABC):  # noqa: B024 - classes are registered with it
    pass


class Sized(abc.ABC):  # noqa: B024 - its hook answers
    @classmethod
    def __subclasshook__(cls, kind):
        return hasattr(kind, "__len__")


@typing.runtime_checkable
class HasData(typing.Protocol):
    data_field: int


@typing.runtime_checkable
class Runs(typing.Protocol):
    def run(self): ...


class Holder:
    def __init__(self):
        self.data_field = 1


class LateRunner:
    def __init__(self):
        self.run = len


class Runner:
    def run(self):
        return 1


class Registered:
    pass


Own.register(Registered)
KINDS = (
    Vector,
    Matrix,
    NotNumbers,
    Own,
    Sized,
    HasData,
    Runs,
    torch.nn.Buffer,
    torch.nn.Parameter,
    torch.Tensor,
    torch.FloatTensor,
    torch.IntTensor,
    torch.BoolStorage,
    torch.nn.Module,
    collections.abc.Iterable,
    collections.abc.Hashable,
    numbers.Number,
    typing.SupportsFloat,
    int,
    (str, Vector),
    int | Matrix,
    (Strange, Holder, tuple),
)
THINGS = {
    "vector": torch.ones(2),
    "matrix": torch.ones(2, 2),
    "numbers": torch.ones(2, dtype=torch.int32),
    "parameter": torch.nn.Parameter(torch.ones(2)),
    "buffer": torch.nn.Buffer(torch.ones(2)),
    "int": 3,
    "float": 0.5,
    "text": "a",
    "list": [1],
    "tuple": (1,),
    "dict": {},
    "holder": Holder(),
    "late runner": LateRunner(),
    "runner": Runner(),
    "registered": Registered(),
    "module": torch.nn.Linear(1, 1),
    "class": Vector,
    "size": torch.Size([1]),
    "function": len,
}


def asked(question, *args):
    try:
        return question(*args)
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("thing", THINGS)
def test_instances(thing, backend):
    def function(x, made):
        return [asked(isinstance, made, kind) for kind in KINDS], [asked(isinstance, x + 1, kind) for kind in KINDS]

    made, x = THINGS[thing], torch.ones(2)
    assert plumbline.compile(function, backend=backend)(x, made) == function(x, made)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("thing", THINGS)
def test_subclasses(thing, backend):
    def function(x, kind):
        return [asked(issubclass, kind, other) for other in KINDS], x + 1

    kind, x = type(THINGS[thing]), torch.ones(2)
    assert plumbline.compile(function, backend=backend)(x, kind)[0] == function(x, kind)[0]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_metaclass_makes_no_break(backend):
    def function(x):
        return x + 1 if isinstance(x, Vector) and not isinstance(x, Matrix) else x - 1

    assert plumbline.compile(function, backend=backend, fullgraph=True)(torch.ones(1)).item() == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_registration_of_tensors_is_seen(backend):
    class Late(abc.ABC):  # noqa: B024 - tensors are registered with it
        pass

    compiled = plumbline.compile(lambda x: x + 1 if isinstance(x, Late) else x - 1, backend=backend)
    assert compiled(torch.ones(1)).item() == 0
    Late.register(torch.Tensor)
    assert compiled(torch.ones(1)).item() == 2
