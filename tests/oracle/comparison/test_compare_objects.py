"""Objects in the output and in the state after the call: any difference is found, and none in a sound program."""

import collections
import dataclasses

import numpy
import pytest
import torch

from plumbline.oracle import VerdictKind, check

X = torch.linspace(-2, 2, 24).reshape(4, 6)


@dataclasses.dataclass
class Result:
    value: torch.Tensor
    name: str = "r"


Pair = collections.namedtuple("Pair", "left right")


class State:
    level = 1

    def __init__(self):
        self.log = []
        self.table = {"a": 1}
        self.count = 0


def remember(state, x):
    state.log.append(x)
    state.table["b"] = 2
    state.count += 1
    State.level = 2


@pytest.mark.parametrize(
    "make",
    [
        lambda y: [y, (y, {"k": y})],
        lambda y: Pair(y, 1),
        lambda y: Result(y),
        lambda y: collections.OrderedDict(b=y, a=y),
        lambda y: {y.shape, "text"},
        lambda y: (None, True, 3, 2.5, "s", torch.float32, y.device),
        lambda y: numpy.asarray([1, 2]),
        lambda y: y.sum().item(),
    ],
)
def test_any_tree_of_outputs_is_equal_to_itself(make):
    assert check(lambda x: make(x * 2), (X,), compiled=lambda x: make(x * 2)).kind is VerdictKind.EQUAL


@pytest.mark.parametrize(
    ("eager", "compiled", "words"),
    [
        (lambda y: [y, y], lambda y: (y, y), "is a tuple, eager gives a list"),
        (lambda y: Pair(y, 1), lambda y: Pair(y, 2), "output.right is 2, eager gives 1"),
        (lambda y: Result(y), lambda y: Result(y, "q"), "output.name is 'q'"),
        (lambda y: {"a": y}, lambda y: {"a": y, "b": y}, "eager does not have it"),
        (lambda y: {"a": y, "b": 1}, lambda y: {"b": 1, "a": y}, "in another order"),
        (lambda y: [y, y], lambda y: [y, y + 0], "does not share memory"),
        (lambda y: y, lambda y: y.double(), "dtype is torch.float64"),
        (lambda y: y, lambda y: y[None], "shape is (1, 4, 6)"),
        (lambda y: True, lambda y: 1, "is 1 (int), eager gives True (bool)"),
        (lambda y: y.sum().item(), lambda y: y.sum().item() + 1, "eager gives"),
        (lambda y: numpy.arange(3), lambda y: numpy.arange(3) + 1, "output"),
        (lambda y: numpy.arange(3), lambda y: numpy.arange(3.0), "float64[3]"),
        (lambda y: torch.nn.Parameter(y), lambda y: y.detach().requires_grad_(), "class is Tensor"),
    ],
)
def test_any_difference_of_the_output_tree_is_wrong(eager, compiled, words):
    verdict = check(lambda x: eager(x * 2), (X,), compiled=lambda x: compiled(x * 2))
    assert verdict.kind is VerdictKind.WRONG
    assert words in str(verdict)


@pytest.mark.parametrize(
    ("planted", "where"),
    [
        (lambda state, x: None, "state.log"),
        (lambda state, x: (remember(state, x), state.log.append(x)), "state.log[1]"),
        (lambda state, x: (remember(state, x), state.table.update(b=3)), "state.table['b']"),
        (lambda state, x: (remember(state, x), setattr(state, "count", 7)), "state.count"),
        (lambda state, x: (remember(state, x), setattr(State, "level", 9)), "State.level"),
        (lambda state, x: (remember(state, x), setattr(state, "log", list(state.log))), "state.log"),
    ],
)
def test_state_after_the_call_is_compared(planted, where):
    State.level = 1
    state = State()
    good = check(lambda state, x: remember(state, x), (state, X), compiled=lambda state, x: remember(state, x))
    assert good.kind is VerdictKind.EQUAL
    State.level = 1
    bad = check(remember, (State(), X), compiled=lambda state, x: planted(state, x) and None)
    assert bad.kind is VerdictKind.WRONG
    assert any(finding.where == where and finding.aspect == "python" for finding in bad.findings), str(bad)


def test_closures_and_globals_after_the_call_are_compared():
    total = 0

    def eager(x):
        nonlocal total
        total += 1
        return x

    assert check(eager, (X,), compiled=lambda x: x).findings[0].where == "total"


def numpy_total(x):
    return numpy.float64(x.numpy().sum())


def python_total(x):
    return 1.0 / 3


@pytest.mark.parametrize(("factor", "kind"), [(1 + 1e-12, VerdictKind.NO_REFERENCE), (1 + 1e-6, VerdictKind.WRONG)])
def test_a_number_of_numpy_may_be_rounded_otherwise_and_no_more(factor, kind):
    numbers = torch.rand(7, dtype=torch.float64)
    assert check(numpy_total, (numbers,), compiled=lambda x: numpy_total(x) * factor).kind is kind


def test_a_number_of_python_that_no_tensor_gave_is_exact():
    assert check(python_total, (torch.rand(7),), compiled=lambda x: 1.0 / 3 + 1e-12).kind is VerdictKind.WRONG
