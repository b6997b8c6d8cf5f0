"""A key asked for by an equal one of another type was shown as the one that asked: True for 1."""

import torch

import plumbline


def test_the_key_that_was_there_stays():
    def function(x, table):
        table[True] = "new"
        return x + 1, [(type(key).__name__, key) for key in table], table.get(1.0)

    compiled = plumbline.compile(function, backend="eager")
    table = {1: "old", 2: "other"}
    assert compiled(torch.ones(1), table)[1:] == ([("int", 1), ("int", 2)], "new")
    assert [type(key) for key in table] == [int, int]


def test_keys_that_differ_in_the_sign_of_zero_alone_are_told_apart():
    def function(table, x):
        return [repr(key) for key in table], x + 1

    compiled, x = plumbline.compile(function, backend="eager"), torch.ones(1)
    for key in (0.0, -0.0, 0, False, 0.0, float("nan")):
        assert compiled({key: 1, "a": 2}, x)[0] == [repr(key), "'a'"]
