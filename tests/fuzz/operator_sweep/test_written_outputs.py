"""Aliasing by writing: results that share memory and should not, and the other way round."""

import torch

from plumbline.fuzz.operator_sweep.written_outputs import reached_by_writing


def reached(*functions):
    def program(args):
        return tuple(function(*inputs) for function, inputs in zip(functions, args, strict=True))

    return reached_by_writing(program, [[torch.arange(4.0)] for _ in functions])


def test_views_change_their_base_and_copies_do_not():
    assert reached(lambda x: x[1:], lambda x: x[1:].clone()) == [frozenset({(0, "input 0")}), frozenset()]


def test_two_results_that_are_one_change_each_other():
    def shared(x):
        y = x + 1
        return y, y

    assert reached(shared) == [frozenset({(0, "output 1"), (1, "output 0")})]


def test_what_cannot_be_written_is_left_alone():
    assert reached(lambda x: x.new_ones(1).expand(4), lambda x: x[:0]) == [frozenset(), frozenset()]


def test_inputs_are_found_at_any_depth():
    x = torch.ones(2)
    assert reached_by_writing(lambda args: (x,), [("module", ([x],), {})]) == [frozenset({(0, "input 0")})]
