"""The number that `id()` gives was never found where an earlier call had put it, in a dict, a set, a list, a field."""

import torch

import plumbline


def test_what_an_earlier_call_kept_is_found():
    memo, seen, pairs, kept = {}, set(), {}, {"last": 0}

    def function(x):
        found = [id(x) in memo, id(x) in seen, (id(x), 1) in pairs, kept["last"] == id(x)]
        seen.add(id(x))
        pairs[(id(x), 1)] = 1
        kept["last"] = id(x)
        if id(x) not in memo:
            memo[id(x)] = x * 2
        return memo[id(x)], found

    compiled = plumbline.compile(function, backend="eager")
    one, other = torch.ones(2), torch.zeros(2)
    first, found = compiled(one)
    assert not any(found)
    second, found = compiled(one)
    assert all(found)
    assert first is second
    assert not any(compiled(other)[1])
    assert list(memo) == [id(one), id(other)]


def test_a_table_made_inside_is_captured():
    def function(x, y):
        table = {id(x): 1, id(y): 2}
        return x + table[id(x)], table[id(y)], id(x) == id(y)

    compiled = plumbline.compile(function, backend="eager", fullgraph=True)
    assert compiled(torch.ones(1), torch.ones(1)) == (2, 2, False)
