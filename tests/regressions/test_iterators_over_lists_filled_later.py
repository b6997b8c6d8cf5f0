"""An iterator was moved before its list had its elements, and Python moves it to the end that there is.

So the loop began anew behind a break; and one that had ended over a list emptied meanwhile had not ended.
"""

import pytest
import torch

import plumbline

FLAGS = torch.tensor([0, 1, 0])


def filled_by_a_method(items, flags):
    it, groups, seen = iter(items), [], []
    groups.append(flags[1].item())
    for _ in groups:
        seen.append((next(it), flags.sum().item()))
    return seen, list(it)


def filled_in_a_loop(items, flags):
    it, groups, seen = iter(items), [], []
    for flag in flags.tolist():
        groups.append(flag)
    for flag in groups:
        if flag == 1:
            seen.append((next(it), flags.sum().item()))
    return seen, list(it)


def extended_while_it_runs(items, flags):
    seen = []
    for item in items:
        if len(items) < 8:
            items.append(item + 10)
        seen.append((item, flags.sum().item()))
    return seen


def shortened_while_it_runs(items, flags):
    seen = []
    for item in items:
        items.pop()
        seen.append((item, flags.sum().item()))
    return seen, items


def ended_before_it_grows(items, flags):
    it = iter(items)
    seen = list(it)
    items.append(flags.sum().item())
    return seen, list(it), items


def ended_over_a_list_that_is_emptied(items, flags):
    it = iter(items)
    items.clear()
    none = next(it, None)
    flags.sum().item()
    items.append(3)
    return none, list(it), items


def backwards(items, flags):
    groups, seen = [], []
    groups.append(flags[1].item())
    groups += items
    for item in reversed(groups):
        seen.append((item, flags.sum().item()))
    return seen


class Items(list):
    pass


PROGRAMS = [
    filled_by_a_method,
    filled_in_a_loop,
    extended_while_it_runs,
    shortened_while_it_runs,
    ended_before_it_grows,
    ended_over_a_list_that_is_emptied,
    backwards,
]


@pytest.mark.parametrize("kind", [list, Items])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_iterator_stands_where_it_stood(program, kind):
    compiled = plumbline.compile(program, backend="eager")
    for start in (7, 20):
        mine, other = kind(range(start, start + 4)), kind(range(start, start + 4))
        assert compiled(mine, FLAGS) == program(other, FLAGS)
        assert mine == other
