"""Two objects with one `__dict__` (the Borg pattern) were taken for two: a write to one was not seen in the other."""

import torch

import plumbline


class Thing:
    """Takes attributes."""


def test_a_write_to_one_is_seen_in_the_other():
    one, other = Thing(), Thing()
    other.__dict__ = one.__dict__
    one.v = 1

    def function(x, names):
        one.v += 1
        y = x * other.v
        other.v += 1
        names["w"] = one.v
        return y, other.w, names is vars(one)

    compiled = plumbline.compile(function, backend="eager")
    assert compiled(torch.ones(1), vars(one)) == (torch.tensor([2.0]), 3, True)
    assert compiled(torch.ones(1), {}) == (torch.tensor([4.0]), 3, False)
    assert vars(one) == {"v": 5, "w": 3}


def test_the_dictionary_may_come_before_its_object():
    thing = Thing()
    thing.v = 1

    def function(names, x):
        names["v"] = 5
        y = x * thing.v
        thing.n = 3
        return y, list(names), "n" in names

    assert plumbline.compile(function, backend="eager")(vars(thing), torch.ones(1)) == (5, ["v", "n"], True)
    assert vars(thing) == {"v": 5, "n": 3}
