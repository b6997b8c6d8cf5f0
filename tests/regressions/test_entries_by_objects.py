"""Entries of a dictionary whose keys each run makes anew, and those that a program notes while it is traced."""

import torch

import plumbline
from plumbline.oracle.harness.session import JudgeSession

KINDS = {}


class Interval:
    def __init__(self, start):
        self.start = start


def verdicts(function, *args):
    session = JudgeSession(compiler="plumbline", backend="eager")
    with session:
        session.compiled(function)(*args)
    return [call.verdict.kind.value for call in session.calls]


def test_keys_that_are_new_objects_are_the_same_in_both_programs():
    cache = {}

    def noted(x):
        cache[Interval(0)] = x + 1
        cache[Interval(1), 2] = x + 2
        return x.sin()

    assert verdicts(noted, torch.ones(2)) == ["EQUAL"]
    assert [float(value.sum()) for value in cache.values()] == [4.0, 6.0]


def test_a_missing_entry_is_still_wrong():
    cache = {}

    def noted(x):
        if not torch.compiler.is_compiling():
            cache[Interval(0)] = x
        return x.sin()

    assert verdicts(noted, torch.ones(2)) == ["DESIGN"]


def test_classes_of_fake_tensors_that_an_allowed_function_notes_are_no_change():
    @plumbline.allow_in_graph
    def noting(x):
        return x * KINDS.setdefault((type(x),), 2)

    KINDS.clear()
    assert verdicts(lambda x: noting(x) + 1, torch.ones(2)) == ["EQUAL"]
    assert (torch.Tensor,) in KINDS
