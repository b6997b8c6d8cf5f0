"""Each `compile()` call captured for itself, though another had compiled the same code under the same settings."""

import gc
import weakref

import torch
from torch import nn

import plumbline
from plumbline.compiler.base.events import Captured, RanEagerly, recording


def captured(run):
    """Return how many graphs something captures."""
    with recording() as events:
        run()
    assert not [event for event in events if isinstance(event, RanEagerly)]
    return sum(isinstance(event, Captured) for event in events)


class Block(nn.Module):
    def __init__(self, size=4):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return self.linear(x).relu() + x


class Scaled(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = str(factor)

    def forward(self, x):
        return x * float(self.factor)


@torch.no_grad()
def test_blocks_of_one_class_are_captured_once():
    blocks = [plumbline.compile(Block(), backend="eager") for _ in range(6)]
    x = torch.ones(2, 4)
    assert captured(lambda: [block(x) for block in blocks]) == 1
    assert all(torch.equal(block(x), block._orig_mod(x)) for block in blocks)


def test_compiling_in_a_loop_captures_once():
    def function(x):
        return x.sin() + 1

    assert captured(lambda: [plumbline.compile(function, backend="eager")(torch.ones(2)) for _ in range(4)]) == 1
    module = Block()
    assert captured(lambda: [plumbline.compile(module, backend="eager")(torch.ones(2, 4)) for _ in range(4)]) == 1


def test_other_backends_and_settings_capture_for_themselves():
    def function(x):
        return x.sin() + 1

    def own(graph, inputs):
        return graph.forward

    settings = [{}, {"fullgraph": True}, {"dynamic": True}, {"options": {"recompile_limit": 3}}, {"recompile_limit": 3}]
    settings = [{"backend": "eager"} | some for some in settings] + [{"backend": own}, {"backend": lambda g, i: g}]
    for some in settings:
        assert captured(lambda some=some: plumbline.compile(function, **some)(torch.ones(2))) == 1, some
        assert captured(lambda some=some: plumbline.compile(function, **some)(torch.ones(2))) == 0, some


def test_many_objects_of_one_class_have_each_the_whole_limit():
    modules = [Scaled(factor) for factor in range(100)]
    for module in modules:
        compiled = plumbline.compile(module, backend="eager")
        assert captured(lambda compiled=compiled: compiled(torch.ones(2))) == 1
        assert torch.equal(compiled(torch.ones(2)), module(torch.ones(2)))


def test_nothing_that_was_compiled_is_held():
    def make():
        parts = [torch.ones(1000)]

        def function(x):
            return x + parts[0][:2]

        module = Block()
        plumbline.compile(function, backend="eager")(torch.ones(2))
        plumbline.compile(module, backend="eager")(torch.ones(2, 4))
        return weakref.ref(function), weakref.ref(parts[0]), weakref.ref(module), weakref.ref(module.linear.weight)

    kept = make()
    gc.collect()
    assert [one() for one in kept] == [None] * 4


def test_wrappers_of_one_function_are_objects_of_their_own():
    def function(x):
        return x + 1

    first, second = (plumbline.compile(function, backend="eager") for _ in range(2))
    first.mark = 1
    assert first is not second
    assert not hasattr(second, "mark")


def test_code_that_is_equal_but_not_the_same_does_not_call_itself():
    calls = [plumbline.compile(torch.sin, backend="eager") for _ in range(2)]
    assert all(torch.equal(call(torch.ones(2)), torch.ones(2).sin()) for call in calls)
