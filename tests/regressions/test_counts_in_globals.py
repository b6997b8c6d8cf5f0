"""A global `itertools.count`, used or only within reach, costs no call its reference, and is set back."""

import itertools

import filelock
import torch

from plumbline.oracle.judge import judge_call
from plumbline.oracle.judge_options import JudgeOptions
from plumbline.oracle.state.snapshot import Snapshot
from plumbline.oracle.state.walk import walk
from plumbline.oracle.verdict import VerdictKind

tokens = itertools.count(3, 2)
again = tokens


def drawn(x):
    return x + next(tokens)


def drawn_twice(x):
    next(tokens)
    return x + next(tokens)


def test_a_count_is_taken_from_as_often_as_without_the_judge():
    global tokens, again
    tokens = again = itertools.count(3, 2)
    judged = judge_call(drawn, drawn, (torch.zeros(2),), {}, JudgeOptions(), {"drawn": drawn})
    assert judged.verdict.kind == VerdictKind.EQUAL, judged.verdict.sentence
    assert judged.unwrap().tolist() == [3, 3]
    assert next(tokens) == 5


def test_a_compiled_form_that_takes_another_number_of_counts_is_wrong():
    global tokens
    tokens = itertools.count()

    def taking(x):
        next(tokens)
        return x + 0

    def not_taking(x):
        return x + 0

    judged = judge_call(taking, not_taking, (torch.zeros(2),), {}, JudgeOptions(), {"taking": taking})
    assert judged.verdict.kind == VerdictKind.WRONG
    assert any("tokens" in finding.where for finding in judged.verdict.findings)


def test_two_names_of_a_count_stay_names_of_one():
    global tokens, again
    tokens = again = itertools.count(1.5)

    def both():
        return tokens, again

    snapshot = Snapshot.take({"both": both})
    assert not snapshot.obstacles
    for _ in range(2):
        next(tokens)
        snapshot.rewind()
        assert tokens is again
        assert repr(tokens) == "count(1.5)"


def test_a_count_of_objects_is_an_obstacle():
    global tokens
    tokens = itertools.count(1 + 2j)
    assert Snapshot.take({"drawn": drawn}).obstacles == ["tokens cannot be rewound"]


def test_locks_of_compilers_are_no_state_of_a_program():
    lock = filelock.FileLock("nowhere")

    def held(x):
        return x + lock.lock_counter

    reached = walk({"held": held})
    assert not reached.forward_only
    assert not any(vars(filelock._api) is binding.namespace for binding in reached.bindings)
