"""What a test replaces in torch or in Python's library, for a while, was not noticed by functions compiled before."""

import collections
import contextlib
import copy
import math
from unittest import mock

import pytest
import torch
from torch.nn import functional

import plumbline
from plumbline.compiler.base.events import Captured, CompilerFailed, recording

X = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
RELU, WHOLE_RELU, FORWARD, ADD = torch.relu, functional.relu, torch.nn.Linear.forward, torch.Tensor.__add__


class Net(torch.nn.Module):
    """A module that calls a module of torch."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x) + 1


class Wider(torch.nn.Linear):
    """A class of the user's that has the methods of torch's."""


layer, net, wider = torch.nn.Linear(2, 2), Net(), Wider(2, 2)
chain = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
norm = torch.nn.LayerNorm(2)


def within(x):
    with contextlib.nullcontext(2) as number:
        return x * number


def by_seven(x, *rest, **named):
    """Stand in for a function of one tensor."""
    return x * 7


def by_seven_of(module, x):
    """Stand in for a method."""
    return x * 7


# name: (program, the place, the name there, what is put there)
PLACES = {
    "a forward": (lambda x: layer(x), torch.nn.Linear, "forward", by_seven_of),
    "a forward inside a module": (net, torch.nn.Linear, "forward", by_seven_of),
    "a forward that a class inherits": (lambda x: wider(x), torch.nn.Linear, "forward", by_seven_of),
    "a forward over an inherited one": (lambda x: wider(x), Wider, "forward", by_seven_of),
    "a forward of one module": (lambda x: layer(x), layer, "forward", by_seven),
    "the call of all modules": (lambda x: layer(x), torch.nn.Module, "__call__", by_seven_of),
    "what the call goes by": (lambda x: layer(x), torch.nn.Module, "_call_impl", by_seven_of),
    "a special method": (lambda x: x * len(chain), torch.nn.Sequential, "__len__", lambda self: 7),
    "a property": (
        lambda x: torch.distributions.Normal(x, x.exp()).stddev,
        torch.distributions.Normal,
        "stddev",
        property(lambda self: X * 7),
    ),
    "a function of a module of torch": (lambda x: functional.gelu(x), functional, "gelu", by_seven),
    "a function that a layer calls": (lambda x: layer(x), functional, "linear", by_seven),
    "a function inside one that graphs hold": (lambda x: functional.relu(x), torch, "relu", by_seven),
    "a function two calls below": (lambda x: norm(x), torch, "layer_norm", by_seven),
    "a function of math": (lambda x: x * math.sqrt(4), math, "sqrt", lambda n: 7),
    "a number of math": (lambda x: x * math.pi, math, "pi", 7),
    "a function of Python's library": (lambda x: x * copy.copy([3])[0], copy, "copy", lambda value: [7]),
    "a class of Python's library": (
        lambda x: x * collections.Counter("aa")["a"],
        collections,
        "Counter",
        lambda text: {"a": 7},
    ),
    "a method of Python's library": (within, contextlib.nullcontext, "__enter__", lambda self: 7),
    "a question about the machine": (
        lambda x: x * (2 if torch.cuda.is_available() else 1),
        torch.cuda,
        "is_available",
        lambda: True,
    ),
    "an operator of tensors": (lambda x: x + 1, torch.Tensor, "__add__", lambda x, other: x * 7),
    "a comparison of tensors": (lambda x: (x < 2) * x, torch.Tensor, "__lt__", lambda x, other: x * 7),
    "indexing": (lambda x: x[0], torch.Tensor, "__getitem__", lambda x, key: x * 7),
    "the length of tensors": (lambda x: x * len(x), torch.Tensor, "__len__", lambda x: 7),
    "the absolute value": (lambda x: abs(x), torch.Tensor, "__abs__", by_seven),
    "a method of tensors": (lambda x: x.tanh(), torch.Tensor, "tanh", by_seven),
    "a method that asks about sizes": (lambda x: x * x.dim(), torch.Tensor, "dim", lambda x: 7),
    "an attribute of tensors": (lambda x: x.T, torch.Tensor, "T", property(lambda x: x * 7)),
}


def assert_alike(program, compiled, patch):
    """Play a program and a compiled form of it, replacing something now and then."""
    with recording() as events:
        for replaced in (False, True, False, True, True, False):
            with patch() if replaced else contextlib.nullcontext():
                assert torch.equal(compiled(X), program(X))
    assert not [event for event in events if isinstance(event, CompilerFailed)]
    return sum(isinstance(event, Captured) for event in events)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", PLACES)
def test_what_is_replaced_counts_for_as_long_as_it_is(name, backend):
    program, place, attribute, replacement = PLACES[name]
    compiled = plumbline.compile(program, backend=backend)
    captured = assert_alike(program, compiled, lambda: mock.patch.object(place, attribute, replacement))
    assert captured == 2  # each form once, and both are kept


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("program", "place", "attribute", "replacement"),
    [
        (lambda x: torch.relu(x), torch, "relu", lambda x: RELU(x) * 3),
        (lambda x: functional.relu(x), functional, "relu", lambda x: WHOLE_RELU(x) * 3),
        (lambda x: RELU(x), torch, "relu", lambda x: RELU(x) * 3),
        (net, torch.nn.Linear, "forward", lambda self, x: FORWARD(self, x) * 3),
        (lambda x: x + 1, torch.Tensor, "__add__", lambda x, other: ADD(x, other) * 3),
    ],
)
def test_a_replacement_that_calls_what_it_replaces(program, place, attribute, replacement, backend):
    compiled = plumbline.compile(program, backend=backend)
    assert_alike(program, compiled, lambda: mock.patch.object(place, attribute, replacement))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("program", "place", "attribute"),
    [
        (lambda x: torch.relu(x) + 1, torch, "relu"),
        (lambda x: functional.relu(x) + 1, torch, "relu"),
        (lambda x: layer(x) + 1, torch.nn.Linear, "forward"),
        (lambda x: layer(x) + 1, layer, "forward"),
        (lambda x: x.relu() + 1, torch.Tensor, "relu"),
        (lambda x: math.sqrt(4) * x, math, "sqrt"),
    ],
)
@pytest.mark.parametrize("autospec", [False, True])
def test_a_mock_is_called_as_often_as_in_eager(program, place, attribute, autospec, backend):
    compiled = plumbline.compile(program, backend=backend)
    given = 3.0 if place is math else X * 9
    for _ in range(2):
        assert torch.equal(compiled(X), program(X))
        for _ in range(2):
            with mock.patch.object(place, attribute, autospec=autospec, return_value=given) as replaced:
                assert torch.equal(compiled(X), program(X))
                assert torch.equal(compiled(X), program(X))
            assert replaced.call_count == 4


def test_functions_of_one_code_with_other_globals():
    def made(scale):
        return eval("lambda x: x * scale", {"scale": scale})

    holder = {"function": made(2)}
    compiled = plumbline.compile(lambda x: holder["function"](x), backend="eager")
    assert torch.equal(compiled(X), X * 2)
    holder["function"] = made(5)
    assert torch.equal(compiled(X), X * 5)
