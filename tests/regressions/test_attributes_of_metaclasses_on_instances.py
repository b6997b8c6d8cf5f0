"""That an instance lacks an attribute was guarded by asking its class, which answers for its metaclass too."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Recompiled, recording

A = torch.ones(2)
NAMES = ["__annotations__", "mro", "__abstractmethods__", "__subclasses__", "missing"]


@pytest.mark.parametrize("name", NAMES)
def test_an_instance_lacks_what_only_the_metaclass_has(name):
    class Plain:
        pass

    def ask(x):
        return x + 1, hasattr(Plain(), name), getattr(Plain(), name, 1)

    run = plumbline.compile(ask, backend="eager")
    with recording() as events:
        for _ in range(3):
            assert run(A)[1:] == (False, 1)
    assert not [event for event in events if isinstance(event, Recompiled)]
    assert name not in vars(Plain)


def test_an_attribute_that_the_class_gets_is_seen():
    class Plain:
        pass

    def ask(x):
        return x + 1, getattr(Plain(), "added", 1)

    run = plumbline.compile(ask, backend="eager")
    assert run(A)[1] == 1
    Plain.added = 2
    assert run(A)[1] == 2
