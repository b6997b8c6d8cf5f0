"""Class patterns: `__match_args__` is read again when it has changed, and a metaclass may answer what fits."""

import dataclasses

import pytest
import torch

import plumbline

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture
def spot():
    @dataclasses.dataclass
    class Spot:
        a: int
        b: object = None

    return Spot


def test_changed_positions(spot):
    def step(x):
        match spot(2, [1]):
            case spot(a, b):
                return a, b, x + 1

    compiled = plumbline.compile(step, backend="eager")
    for positions in (("a", "b"), ("b", "a")):
        spot.__match_args__ = positions
        assert compiled(X)[:2] == step(X)[:2]


@pytest.mark.parametrize("positions", [5, ("a", "a"), ("a", 1), ["a"], ("a",), None])
def test_wrong_positions_are_refused_alike(spot, positions):
    spot.__match_args__ = positions

    def step(x):
        match spot(2, [1]):
            case spot(a, b):
                return a, b, x + 1

    words = []
    for function in (step, plumbline.compile(step, backend="eager")):
        with pytest.raises(TypeError) as refusal:
            function(X)
        words.append(str(refusal.value))
    assert words[0] == words[1]


def test_a_metaclass_answers():
    class Numbers(type):
        def __instancecheck__(cls, value):
            return type(value) is int

    class Number(metaclass=Numbers):
        pass

    def step(x, value):
        match value:
            case Number():
                return x + 1
        return x - 1

    compiled = plumbline.compile(step, backend="eager")
    assert torch.equal(compiled(X, 3), X + 1)
    assert torch.equal(compiled(X, "a"), X - 1)
