"""Loops that go on after a break, and iteration over sets from outside."""

import torch
from torch import nn

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
ONES = torch.ones(2, 3)


class Stack(nn.Module):
    def __init__(self, count=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(count))


def stack():
    torch.manual_seed(0)
    return Stack(), ONES.clone()


@program(make=stack, graphs=2, breaks=1)
def break_in_the_first_turn(model, x):
    for index, layer in enumerate(model.layers):
        x = layer(x).sin()
        if index == 0:
            print("once")
    return x


@program(make=stack, graphs=4, breaks=3)
def break_in_every_turn(model, x):
    for layer in model.layers:
        x = layer(x).sin()
        if x.sum() > 0:
            x = x + 1
    return x


def _many():
    torch.manual_seed(0)
    return Stack(30), ONES.clone()


@program(make=_many, graphs=2, breaks=2)  # the turns share their specialisations, whatever their number
def break_in_every_one_of_many_turns(model, x):
    for layer in model.layers:
        x = layer(x).sin()
        if x.sum() > 100:
            x = x + 1
    return x


@program([1, 2, 3, 4], torch.ones(3), graphs=2, breaks=1)
def break_over_a_list(numbers, x):
    for number in numbers:
        x = x * number
        if number == 1:
            print("once")
    return x


@program([1, 2, 3, 4, 5], torch.ones(3), graphs=4, breaks=4)
def break_over_a_list_that_grows(numbers, x):
    for number in numbers:
        x = x * number
        if number == 1:
            print("once")
        if len(numbers) < 8:
            numbers.append(number + 7)
    return x


@program(torch.ones(3), graphs=2, breaks=2)
def one_iterator_over_several_breaks(x):
    left = iter((1, 2, 3, 4))
    print("a")
    x = x * next(left) + next(left)
    print("b")
    for number in left:
        x = x + number
    return x, list(left)


def iterator_argument():
    return iter([torch.ones(2), torch.zeros(2), torch.ones(2)]), torch.ones(2)


@program(make=iterator_argument)
def iterator_from_outside_is_moved(tensors, x):
    return x + next(tensors) + next(tensors)


@program(make=lambda: (iter((1, 2)), torch.ones(2)), changed=lambda: (iter((1, 2, 3)), torch.ones(2)))
def iterator_from_outside_is_ended(numbers, x):
    for number in numbers:
        x = x * number
    return x, next(numbers, None)


@program({"a", "b", "c"}, torch.ones(2))
def names_in_a_set(names, x):
    found = {name: x + len(name) for name in names}
    return list(found), found


def added(*numbers):
    """Return a maker of a set whose order depends on that of the numbers: all have the same place."""

    def make():
        made = set()
        for number in numbers:
            made.add(number)
        return made, torch.ones(2)

    return make


@program(make=added(8, 0, 16), changed=added(16, 8, 0))
def order_of_equal_sets(numbers, x):
    return [x + number for number in numbers]


@program({torch.nn.ReLU, torch.nn.Tanh}, torch.ones(2))
def classes_in_a_set(kinds, x):
    for kind in kinds:
        x = kind()(x)
    return x


@corpus.parametrize()
def test_program(program):
    check(program)
