"""What torch's symbols know no form of (`sin`, `abs`, `%`) is computed at entry: it needed a graph for each float."""

import math
import operator
import random

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Captured, recording

ONE = [
    abs,
    operator.neg,
    math.sin,
    math.cos,
    math.tanh,
    math.atan,
    math.exp,
    math.expm1,
    math.log,
    math.log1p,
    math.sqrt,
    math.erf,
    math.radians,
    math.floor,
    math.fabs,
    math.cbrt,
]
TWO = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    math.hypot,
    math.atan2,
    math.copysign,
    math.fmod,
    max,
    min,
]
NUMBERS = (1.5, 2.5, 0.75, 3.25, 9.5, 4.125)
X = torch.arange(1.0, 4.0, dtype=torch.float64)


def graphs_of(program, numbers, backend):
    compiled = plumbline.compile(program, backend=backend)
    with recording() as events:
        for number in numbers:
            try:
                expected = str(program(X, number).tolist())
            except (ArithmeticError, ValueError, TypeError) as error:
                with pytest.raises(type(error)):
                    compiled(X, number)
            else:
                assert str(compiled(X, number).tolist()) == expected
    return sum(isinstance(event, Captured) for event in events)


@pytest.mark.parametrize("function", ONE, ids=lambda one: one.__name__)
def test_one_graph_for_a_function_of_one(function):
    assert graphs_of(lambda x, number: x * function(number), NUMBERS, "eager") <= 2


@pytest.mark.parametrize("function", TWO, ids=lambda one: one.__name__)
def test_one_graph_for_a_function_of_two(function):
    assert graphs_of(lambda x, number: x * function(number, 1.75), NUMBERS, "eager") <= 3
    assert graphs_of(lambda x, number: x * function(1.75, number), NUMBERS, "eager") <= 3


def test_quotient_and_rest_and_digits():
    assert graphs_of(lambda x, number: x * sum(divmod(number, 0.7)) + round(number, 1), NUMBERS, "inductor") <= 3


def test_a_schedule():
    def program(x, step):
        return x * (0.5 * (1 + math.cos(math.pi * step / 10.3)))

    assert graphs_of(program, NUMBERS, "inductor") <= 2


def test_the_logarithm_of_a_size():
    def program(x, number):
        return x * (math.log(x.shape[0] * 1.0) + number)

    compiled = plumbline.compile(program, backend="inductor", dynamic=True)
    for rows in (3, 5, 8):
        x = torch.arange(1.0, rows + 1, dtype=torch.float64)
        torch.testing.assert_close(compiled(x, 2.5), program(x, 2.5), rtol=1e-15, atol=0)


def made_expression(draw, depth):
    kind = draw.random()
    if depth == 0 or kind < 0.2:
        made = draw.choice(NUMBERS)
        return (lambda number: number) if draw.random() < 0.7 else (lambda number: made)
    if kind < 0.6:
        inner, function = made_expression(draw, depth - 1), draw.choice(ONE)
        return lambda number: function(inner(number))
    left, right, function = made_expression(draw, depth - 1), made_expression(draw, depth - 1), draw.choice(TWO)
    return lambda number: function(left(number), right(number))


@pytest.mark.parametrize("seed", range(60))
def test_drawn_expressions(seed):
    draw = random.Random(seed)
    expression = made_expression(draw, 3)
    numbers = [draw.choice((draw.uniform(-3, 3), draw.uniform(0, 50), 1.0, 0.0, -0.0, 2.0, 1e-3)) for _ in range(5)]
    graphs_of(lambda x, number: x + expression(number), numbers, "eager")


LISTS = {
    "floats": lambda x, s: torch.tensor([s, 2 * s]),
    "sizes": lambda x, s: torch.tensor([x.shape[0], x.shape[1]]),
    "rows": lambda x, s: torch.tensor([(s, 1.0), [2, x.shape[0]]]),
    "of a dtype": lambda x, s: torch.as_tensor([s, 3.75], dtype=torch.int32),
    "with a truth": lambda x, s: torch.tensor([x.shape[0], True]),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", LISTS)
def test_a_tensor_of_a_list_of_numbers_that_vary(name, backend):
    compiled = plumbline.compile(LISTS[name], backend=backend)
    with recording() as events:
        for size in range(3, 9):
            x, number = torch.ones(size, size + 1), size / 4
            actual, expected = compiled(x, number), LISTS[name](x, number)
            assert actual.dtype == expected.dtype
            assert torch.equal(actual, expected)
    assert sum(isinstance(event, Captured) for event in events) == 2


@pytest.mark.parametrize("numbers", [lambda n: [[n], 1], lambda n: [n, 2**70], lambda n: [n, None], lambda n: [n, "a"]])
def test_a_list_that_is_no_tensor(numbers):
    def program(x):
        return torch.tensor(numbers(x.shape[0]))

    compiled = plumbline.compile(program, backend="eager")
    for size in (3, 4, 5):
        with pytest.raises((ValueError, TypeError, RuntimeError)) as expected:
            program(torch.ones(size))
        with pytest.raises(expected.type) as actual:
            compiled(torch.ones(size))
        assert str(actual.value) == str(expected.value)
