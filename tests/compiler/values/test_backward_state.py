"""What the backward of an autograd function is found to read, by its Python."""

import enum
import functools
import math
import operator

import pytest
import torch

from plumbline.compiler.values.backward_state import reads_of_backward

NUMBER, WORDS, SHAPE = 2.0, "words", (1, (2, None))
TABLE, TENSOR = {"a": 1}, torch.ones(2)


class Kind(enum.Enum):
    ONE = 1


MEMBER = Kind.ONE


class Settings:
    factor = 2.0

    @staticmethod
    def scaled(value):
        return value * NUMBER

    def bound(self, value):
        return value


SETTINGS = Settings()
METHOD = SETTINGS.bound


def helper(value):
    return value * NUMBER


def helper_with_state(value):
    return value * TABLE["a"]


def reads(backward):
    return reads_of_backward(backward)


def closing_over(value):
    return lambda ctx, gradient: gradient * value


@pytest.mark.parametrize(
    ("backward", "names"),
    [
        (lambda ctx, gradient: gradient * ctx.scale + math.pi, []),
        (lambda ctx, gradient: torch.where(gradient > 0, gradient, torch.tensor(0.0)), []),
        (lambda ctx, gradient: operator.mul(gradient, len([1])), []),
        (lambda ctx, gradient: (gradient * NUMBER, WORDS, SHAPE, MEMBER), ["MEMBER", "NUMBER", "SHAPE", "WORDS"]),
        (lambda ctx, gradient: helper(gradient), ["NUMBER"]),
        (lambda ctx, gradient: Settings.scaled(gradient), ["NUMBER"]),
        (lambda ctx, gradient: [each * NUMBER for each in (gradient,)], ["NUMBER"]),
        (closing_over(3.0), ["value"]),
        (torch.autograd.function.once_differentiable(lambda ctx, gradient: gradient * NUMBER), ["NUMBER"]),
    ],
)
def test_constants(backward, names):
    found = reads(backward)
    assert found.state is None
    assert sorted(each.name for each in found.constants) == names
    assert not any(each.has_changed() for each in found.constants)


@pytest.mark.parametrize(
    ("backward", "name"),
    [
        (lambda ctx, gradient: gradient * TABLE["a"], "TABLE"),
        (lambda ctx, gradient: gradient * TENSOR, "TENSOR"),
        (lambda ctx, gradient: gradient * Settings.factor, "Settings.factor"),
        (lambda ctx, gradient: gradient * SETTINGS.factor, "SETTINGS"),
        (lambda ctx, gradient: METHOD(gradient), "METHOD"),
        (lambda ctx, gradient: helper_with_state(gradient), "TABLE"),
        (closing_over([1]), "value"),
        (closing_over(torch.nn.Linear(1, 1)), "value"),
        (functools.partial(helper, 1), "backward"),
    ],
)
def test_state(backward, name):
    assert reads(backward).state == name


def test_a_constant_that_is_assigned(monkeypatch):
    (found,) = reads(lambda ctx, gradient: gradient * NUMBER).constants
    monkeypatch.setitem(globals(), "NUMBER", 2.0)
    assert not found.has_changed()
    monkeypatch.setitem(globals(), "NUMBER", 2)
    assert found.has_changed()
    monkeypatch.delitem(globals(), "NUMBER")
    assert found.has_changed()
