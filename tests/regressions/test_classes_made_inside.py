"""Classes made inside compiled code, and attributes of classes: found by CPython's own tests, played compiled."""

import collections
import enum
import os
import sys
import types
from collections.abc import Callable

import pytest
import torch

from plumbline.compiler.api import compile as compile_


def broken() -> None:
    os.getppid()  # nobody knows what it does: the code goes on behind a break


def outcome(function: Callable[[], object]) -> object:
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)


def property_of_a_name_that_types_have():
    class Told:
        __class__ = property(lambda self: int)
        __bases__ = property(lambda self: (int,))
        __name__ = property(lambda self: "told")
        __dict__ = property(lambda self: "hidden")

    broken()
    told = Told()
    return isinstance(told, int), told.__name__, Told.__name__, told.__bases__, Told.__bases__, told.__dict__


def parts_that_types_convert():
    class Base:
        def __init_subclass__(cls):
            cls.seen = cls.__name__

        def __class_getitem__(cls, key):
            return cls.__name__, key

        def __new__(cls, *args):
            return object.__new__(cls)

        def method(self):
            return super().__hash__ is not None, __class__.__name__

    broken()

    class Derived(Base):
        pass

    return Derived.seen, Base[5], Base().__new__(Base).method(), [*vars(Base)][:5]


def classes_that_lead_to_themselves():
    class Node:
        table: dict = {}  # noqa: RUF012 - it is to be shared

        def of(self):
            return self.table, Node

    class Leaf(Node):
        def of(self):
            return *super().of(), Leaf

    Node.table["node"] = Node
    Node.leaf, Leaf.node, Node.one = Leaf, Node, Leaf()
    setattr(Node, "a name with blanks", 5)
    broken()
    table, node, leaf = Node.one.of()
    same = table is Node.table and table["node"] is Node is node and leaf is Leaf is Node.leaf and Leaf.node is Node
    return same, type(Node.one) is Leaf, Node.__subclasses__() == [Leaf], getattr(Node, "a name with blanks")


def derived_classes_that_nobody_holds():
    class First:
        pass

    class Second:
        pass

    class Both(First, Second):
        pass

    class Too(First, Second):
        pass

    class Last(Both, Too):
        pass

    def turn() -> None:
        Both.__bases__ = (Second, First)

    return outcome(turn)[0]


def subclasses_are_those_of_the_program():
    class Parent:
        pass

    broken()
    made = [type(f"Child{number}", (Parent,), {}) for number in range(4)]
    broken()
    return Parent.__subclasses__() == made


def texts_of_properties():
    class Told:
        given = property(lambda self: 1, doc="given")

        @property
        def read(self):
            """Read."""
            return 2

        @read.setter
        def read(self, value):
            """Not this."""

    raw = vars(Told)["read"]
    before = Told.given.__doc__, Told.read.__doc__, raw.fget is Told.read.fget, property(doc="alone").__doc__
    broken()
    return before, Told.given.__doc__, Told.read.__doc__, Told().read


def abstract_properties():
    def method(self):
        return 1

    method.__isabstractmethod__ = [1]

    class Told:
        one = property(method)
        two = property(lambda self: 1)

    return Told.one.__isabstractmethod__, Told.two.__isabstractmethod__


class OnlySet:
    def __set__(self, owner, value):
        owner.__dict__["place"] = value


class Holder:
    place = OnlySet()


def descriptors_that_only_set():
    class Inside:
        place = OnlySet()

    found = []
    for one in (Holder(), Inside()):
        before = one.place is vars(type(one))["place"]
        one.place = 5
        found.append((before, one.place))
    return found


class Describing:
    def __get__(self, owner, kind=None):
        return owner is None, kind.__qualname__.rpartition(".")[2]


class Described:
    __doc__ = Describing()


def descriptors_of_the_program():
    class Inside:
        __doc__ = Describing()
        other = Describing()

    before = Inside.__doc__, Inside().__doc__, Inside.other, Described.__doc__, Described().__doc__
    Inside.later = Describing()
    return before, Inside.later, Inside().later


def methods_in_c_as_attributes():
    class Table(dict):
        fetch = dict.get

    table = Table(a=1)
    before = table.fetch("a"), table.fetch("b", 2)
    broken()
    return before, table.fetch("a"), Table.fetch is dict.get


def init_that_returns_something():
    class Plain:
        def __init__(self):
            return 10

    class Breaking:
        def __init__(self):
            broken()
            return "text"

    return outcome(lambda: Plain()), outcome(lambda: Breaking())


def odd_constructors():
    class Any:
        def __new__(cls, given):
            if isinstance(given, str):
                return [given]
            return object.__new__(Derived if isinstance(given, int) else cls)

    class Derived(Any):
        def __init__(self, given):
            self.given = given

    class Bound:
        @classmethod
        def __new__(*args):
            return args

    one = Any(1)
    return Any("a"), Derived("b"), type(one) is Derived, one.given, Derived(None).given, Bound(7) == (Bound, Bound, 7)


def arguments_of_descriptors():
    calls = (
        lambda: super(int, int, int),
        lambda: classmethod(len, kw=1),
        lambda: staticmethod(),
        lambda: property(1, 2, 3, 4, 5),
        lambda: property(odd=1),
    )
    return [outcome(call) for call in calls]


def names_of_a_class_body():
    kept = 42

    class Body:
        one = 1
        names = sorted(name for name in locals() if not name.startswith("__"))
        listed = " ".join(dir())

        def method(self):
            return kept

    class Overriding:
        locals()["kept"] = 43
        found = kept

    return Body.names, Body.listed, Overriding.found


def odd_namespaces():
    def cell():
        class Odd:
            __classcell__ = 42

    def name():
        class Odd:
            __qualname__ = object()

    def slots():
        class Odd:
            __slots__ = iter(["a", "b"])

        return [key for key in vars(Odd) if key in "ab"]

    return outcome(cell)[0], outcome(name), outcome(slots)


def metaclasses_that_are_no_classes():
    marker = object()

    def make(*args, **kwargs):
        return marker

    class Made(metaclass=make):
        pass

    return Made is marker


def class_methods_in_c():
    class Number(float):
        def __new__(cls, value):
            return float.__new__(cls, value + 1)

    made = Number.fromhex((1.5).hex())
    return type(made) is Number, made


def objects_made_of_a_class():
    class Slotted:
        __slots__ = ("a",)

    pair = collections.namedtuple("pair", "left right")
    place, lists, either, generic = Slotted.a, list[Slotted], Slotted | None, pair[int, int]
    broken()
    one = Slotted()
    place.__set__(one, 5)
    made = type(generic(1, 2)) is pair and generic.__origin__ is pair
    return one.a, lists.__args__[0] is Slotted, either.__args__[0] is Slotted, made


class Texts(tuple, enum.Enum):
    first = (1, "a")
    second = (2, "b")


def members_that_are_tuples():
    first = Texts.first
    broken()
    return first is Texts.first, first.value, first == (1, "a"), type(first) is Texts


class Asked(types.ModuleType):
    asked: list = []  # noqa: RUF012 - it is to be shared

    def __getattribute__(self, name):
        Asked.asked.append(name)
        return types.ModuleType.__getattribute__(self, name)


class Proxy:
    def __init__(self, inside):
        self._inside = inside

    def __getattribute__(self, name):
        if name == "_inside":
            return object.__getattribute__(self, name)
        return getattr(self._inside, name)


def attributes_only_the_program_asks():
    del Asked.asked[:]
    module = Asked("asked")
    module.value = 12
    value = module.value
    broken()
    return value, module.value, Asked.asked


def proxies_across_breaks():
    proxy = Proxy([1, 2])
    broken()
    return isinstance(proxy, list), type(proxy) is Proxy, proxy.copy()


def class_methods_in_class_methods():
    class Chained:
        @classmethod
        @classmethod
        def kind(cls):
            return cls

    return Chained.kind() is Chained if sys.version_info < (3, 13) else True


PROGRAMS = [
    property_of_a_name_that_types_have,
    parts_that_types_convert,
    classes_that_lead_to_themselves,
    derived_classes_that_nobody_holds,
    subclasses_are_those_of_the_program,
    texts_of_properties,
    abstract_properties,
    descriptors_that_only_set,
    descriptors_of_the_program,
    methods_in_c_as_attributes,
    init_that_returns_something,
    odd_constructors,
    arguments_of_descriptors,
    names_of_a_class_body,
    odd_namespaces,
    metaclasses_that_are_no_classes,
    class_methods_in_c,
    objects_made_of_a_class,
    members_that_are_tuples,
    attributes_only_the_program_asks,
    proxies_across_breaks,
    class_methods_in_class_methods,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: Callable[[], object]) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, object]:
        return x + 1, program()

    expected = repr(program())
    compiled = compile_(function, backend="eager")
    for _ in range(2):
        tensor, given = compiled(torch.ones(1))
        assert (tensor.tolist(), repr(given)) == ([2.0], expected)
