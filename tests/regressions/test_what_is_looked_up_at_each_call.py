"""A class's `__call__`, `_missing_` of an enumeration, `__globals__` of a function, hooks that are always called."""

import enum

import pytest
import torch
from torch import nn

import plumbline


def test_a_class_is_given_another_call():
    class Adding:
        def __call__(self, x):
            return x + 1

    compiled = plumbline.compile(Adding(), backend="eager")
    x = torch.tensor([1.0])
    assert compiled(x).tolist() == [2.0]
    Adding.__call__ = lambda self, x: x + 100
    assert compiled(x).tolist() == [101.0]


def test_missing_members_are_asked_for_at_each_call():
    asked = []

    class Kind(enum.Enum):
        KNOWN = 1

        @classmethod
        def _missing_(cls, value):
            asked.append(value)
            return cls.KNOWN

    def step(x, value):
        return Kind(value).name, x + 1

    compiled = plumbline.compile(step, backend="eager")
    for value in (7, 7, 8, 1):
        assert compiled(torch.ones(1), value)[0] == "KNOWN"
    assert asked == [7, 7, 8]


def test_the_globals_of_a_function_are_those_of_its_module():
    scope = {}
    exec(
        "factor = 1\n"
        "def helper(): pass\n"
        "def step(x):\n"
        "    helper.__globals__['factor'] = 5\n"
        "    return x * factor, helper.__globals__ is globals()\n",
        scope,
    )
    result, same = plumbline.compile(scope["step"], backend="eager")(torch.ones(1))
    assert (result.tolist(), same, scope["factor"]) == ([5.0], True, 5)


def test_hooks_that_are_always_called():
    called = []
    module = nn.Linear(1, 1)
    compiled = plumbline.compile(module, backend="eager")
    compiled(torch.ones(2, 1))
    module.register_forward_hook(lambda *_: called.append("hook"), always_call=True)
    with pytest.raises(RuntimeError):
        compiled(torch.ones(2, 2))
    compiled(torch.ones(2, 1))
    assert called == ["hook", "hook"]
