"""Specialisations that were used where they no longer fitted: what was read without a guard."""

import abc
import collections
import functools
import gc
import inspect
import weakref

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Captured, recording

X = torch.ones(2)


class Upper:
    """A parent whose members change."""

    def base(self):
        return 1.0

    @staticmethod
    def fixed():
        return 1.0


class Lower(Upper):
    """A child that calls its parent."""

    def __init__(self):
        self.gain = 1.0

    def through(self):
        return super().base()


def marked():
    """Be a function with attributes."""


line = collections.deque([1.0, 2.0])
READS = {
    "super_reads_a_replaced_method": (
        lambda x, o: x * o.through(),
        lambda m: m.setattr(Upper, "base", lambda self: 3.0),
    ),
    "a_method_between_super_and_base": (
        lambda x, o: x * o.fixed(),
        lambda m: m.setattr(Lower, "fixed", staticmethod(lambda: 3.0), raising=False),
    ),
    "a_property_over_an_attribute": (
        lambda x, o: x * o.gain,
        lambda m: m.setattr(Lower, "gain", property(lambda self: 3.0), raising=False),
    ),
    "a_truth_method_added": (
        lambda x, o: x * (1.0 if o else 3.0),
        lambda m: m.setattr(Lower, "__bool__", lambda self: False, raising=False),
    ),
    "a_getattr_added": (
        lambda x, o: x * (3.0 if hasattr(o, "absent") else 1.0),
        lambda m: m.setattr(Lower, "__getattr__", lambda self, name: 1.0, raising=False),
    ),
    "a_getattribute_added": (
        lambda x, o: x * o.gain,
        lambda m: m.setattr(Lower, "__getattribute__", lambda self, name: 3.0, raising=False),
    ),
    "an_attribute_set_on_a_function": (
        lambda x, o: x * (3.0 if hasattr(marked, "extra") else 1.0),
        lambda m: m.setattr(marked, "extra", 1, raising=False),
    ),
    "a_flag_of_torch_backends": (
        lambda x, o: x * (1.0 if torch.backends.mkldnn.enabled else 3.0),
        lambda m: m.setattr(torch.backends.mkldnn, "enabled", False),
    ),
    "another_length_of_a_deque": (
        lambda x, o: (line.append(3.0), x * line[0])[1],
        lambda m: m.setitem(globals(), "line", collections.deque([1.0, 2.0], maxlen=2)),
    ),
}


@pytest.mark.parametrize("name", READS)
def test_a_change_is_seen(name, monkeypatch):
    body, change = READS[name]
    globals()["line"] = collections.deque([1.0, 2.0])
    run, thing = plumbline.compile(body, backend="eager"), Lower()
    assert torch.equal(run(X, thing), body(X, thing))
    change(monkeypatch)
    kept = collections.deque(line, line.maxlen)
    expected = body(X, thing)
    globals()["line"] = kept
    assert torch.equal(run(X, thing), expected)


def test_a_renamed_class_with_other_bases():
    class Middle(Upper):
        """Another parent."""

    class Moved(Upper):
        """Gets another name and another parent."""

    def body(x, o):
        return x * len(type(o).__name__) * (3.0 if isinstance(o, Middle) else 1.0)

    run = plumbline.compile(body, backend="eager")
    assert torch.equal(run(X, Moved()), X * 5)
    Moved.__name__ = "Removed"
    assert torch.equal(run(X, Moved()), X * 7)
    Moved.__bases__ = (Middle,)
    assert torch.equal(run(X, Moved()), X * 21)


def test_a_class_registered_with_an_abstract_one():
    class Walks(abc.ABC):
        """Something to register with."""

        @abc.abstractmethod
        def walk(self):
            """Walk."""

    class Duck:
        """Something that is registered."""

    run = plumbline.compile(lambda x, o: x * (3.0 if isinstance(o, Walks) else 1.0), backend="eager")
    assert torch.equal(run(X, Duck()), X)
    Walks.register(Duck)
    assert torch.equal(run(X, Duck()), X * 3)


def test_a_cleared_cache_that_was_filled_again():
    scale = 2

    @functools.lru_cache
    def table(n):
        return n * scale

    run = plumbline.compile(lambda x, n: x * table(n), backend="eager")
    assert torch.equal(run(X, 3), X * 6)
    scale = 5
    table.cache_clear()
    table(4), table(5)
    assert torch.equal(run(X, 3), X * 15)
    with recording() as events:
        assert torch.equal(run(X, 3), X * 15)
    assert not [event for event in events if isinstance(event, Captured)]


def test_the_absence_of_a_slot_does_not_compile_every_time():
    class Slotted:
        """An object with a slot that may be empty."""

        __slots__ = ("extra",)

    run = plumbline.compile(lambda x, o: x * (3.0 if hasattr(o, "extra") else 1.0), backend="eager")
    thing = Slotted()
    assert torch.equal(run(X, thing), X)
    with recording() as events:
        assert torch.equal(run(X, thing), X)
    assert not [event for event in events if isinstance(event, Captured)]
    thing.extra = 1
    assert torch.equal(run(X, thing), X * 3)


def test_defaults_and_code_of_the_compiled_function_itself():
    def body(x, k=2.0, *, by=1.0):
        return x * k + by

    def other(x, k=3.0, *, by=1.0):
        return x - k - by

    run = plumbline.compile(body, backend="eager")
    assert torch.equal(run(X), X * 3)
    body.__defaults__ = (4.0,)
    assert torch.equal(run(X), X * 5)
    assert torch.equal(run(X, 2.0), X * 3)
    body.__kwdefaults__ = {"by": 6.0}
    assert torch.equal(run(X), X * 10)
    body.__code__ = other.__code__
    assert torch.equal(run(X), body(X))
    assert torch.equal(run(X, by=1.0, k=1.0), X * -1)
    body.__defaults__ = None
    with pytest.raises(TypeError, match="'k'"):
        run(X)


def test_defaults_and_code_of_a_function_called_at_a_break():
    def part(x, k=2.0):
        plumbline.graph_break()
        return x * k

    def other(x, k=2.0):
        return x - k

    run = plumbline.compile(lambda x: part(x) + 1, backend="eager")
    assert torch.equal(run(X), X * 3)
    part.__defaults__ = (4.0,)
    assert torch.equal(run(X), X * 5)
    part.__code__ = other.__code__
    assert torch.equal(run(X), X * -2)


def test_the_signature_is_still_the_users():
    def body(x, k=2.0, /, *rest, by=1.0, **named):
        return x

    assert str(inspect.signature(plumbline.compile(body, backend="eager"))) == str(inspect.signature(body))


def test_functions_called_at_a_break_are_not_kept_alive():
    gone = []

    def body(x):
        def part(y):
            plumbline.graph_break()
            return y * 2

        gone.append(weakref.ref(part))
        print(end="")
        return part(x)

    run = plumbline.compile(body, backend="eager")
    for _ in range(3):
        assert torch.equal(run(X), X * 2)
    gc.collect()
    assert [ref() for ref in gone] == [None] * 3
