"""A compiled graph whose inputs are given for good: when they are kept whole, when they go, what a failure then is."""

from __future__ import annotations

import weakref

import pytest
import torch

from plumbline.compiler.codegen.host_call import Compiled, GraphFallback, HostProgram, bind
from plumbline.compiler.graph.owned_inputs import spending
from plumbline.compiler.graph.promises import MetadataDeparture, going_on

TEXT = """def run(given):
    x, *rest = given
    given.clear()
    watch(x)
    y = x + 1
    del x
    return after(y, *rest)
"""


class Watched:
    """A host of one input, which it frees before its last step; `then` says what that step does."""

    def __init__(self, sizes: int = 0) -> None:
        self.seen: list[weakref.ref[torch.Tensor]] = []
        self.freed: list[bool] = []
        self.then: object = None
        self.rescued = 0
        objects = {"watch": self.watch, "after": self.after}
        host = HostProgram(TEXT, objects, "lambda *all: True", {}, torch.device("cpu"), 0, True, True, False, sizes)
        self.call: Compiled = bind(host, [], GraphFallback(self.op_by_op, False, lambda error, inputs: None))

    def watch(self, x: torch.Tensor) -> None:
        self.seen.append(weakref.ref(x))

    def after(self, y: torch.Tensor, *rest: object) -> tuple[object, ...]:
        self.freed.append(self.seen[-1]() is None)
        if isinstance(self.then, Exception):
            raise self.then
        return (y, *rest)

    def op_by_op(self, *inputs: object) -> tuple[object, ...]:
        self.rescued += 1
        return inputs


def spend(host: Watched, *rest: object) -> object:
    run = spending(host.call)
    assert run is not None
    return run([torch.ones(3), *rest])


def test_the_first_call_keeps_its_inputs_and_later_ones_free_them() -> None:
    host = Watched()
    for _ in range(3):
        spend(host)
    assert host.freed == [False, True, True]


def test_each_dynamic_size_has_a_first_call() -> None:
    host = Watched(sizes=1)
    for size in (4, 4, 5, 5, 4):
        spend(host, size)
    assert host.freed == [False, True, False, True, True]


def test_a_call_with_arguments_frees_nothing() -> None:
    host = Watched()
    x = torch.ones(3)
    for _ in range(2):
        host.call(x)
    assert host.freed == [False, False]


def test_a_failure_of_the_first_call_runs_op_by_op_and_no_later_call_gives_its_inputs_away() -> None:
    host = Watched()
    host.then = ValueError("planted")
    spend(host)
    host.then = None
    spend(host)
    assert host.rescued == 1
    assert host.freed == [False, False]


def test_a_failure_without_inputs_is_raised() -> None:
    host = Watched()
    spend(host)
    host.then = ValueError("planted")
    with pytest.raises(ValueError, match="planted"):
        spend(host)
    assert host.rescued == 0


def test_a_departure_of_the_first_call_leaves_the_inputs_to_the_graph() -> None:
    host = Watched()
    host.then = MetadataDeparture("call", "float32", "bfloat16")
    run = spending(going_on(host.call, lambda *inputs: ("op by op", *inputs)))
    assert run is not None
    assert run([torch.ones(3)])[0] == "op by op"
    assert run([torch.ones(3)])[0] == "op by op"
    assert len(host.freed) == 1


def test_nothing_is_known_of_a_callable_without_weak_references() -> None:
    assert spending(len) is None
    assert spending(int.__add__) is None
