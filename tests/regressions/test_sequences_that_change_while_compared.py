"""Lists and deques were compared, and searched, as they had been before the first `__eq__`, which may change them."""

import collections

import pytest

from support.as_in_plain_python import difference, told


def both_emptied(x):
    class First:
        def __eq__(self, other):
            second.clear()
            return NotImplemented

    class Second:
        def __eq__(self, other):
            first.clear()
            return NotImplemented

    first, second = [First()], [Second()]
    return first == second, first, second


def grown(x):
    class Growing:
        def __eq__(self, other):
            items.append(1)
            return True

        def __lt__(self, other):
            return True

    items, others = [Growing(), 2], [1, 2]
    return items == others, items < others, items <= others, len(items)


def deques(x):
    class Growing:
        def __eq__(self, other):
            items.append(0)
            return False

    items = collections.deque([Growing(), 2])
    equal = told(lambda: items == collections.deque([1, 2]))
    found = [told(lambda act=act: act()) for act in (lambda: items.remove(2), lambda: items.index(2))]
    return equal, found, told(lambda: items.count(2)), told(lambda: 3 in items), len(items)


def found_among_added(x):
    class Adding:
        def __eq__(self, other):
            items.append(7)
            return False

    items = [Adding(), 2]
    return items.index(7), items.count(7) > 0, len(items)


@pytest.mark.parametrize("function", [both_emptied, grown, deques, found_among_added])
def test_as_they_are_at_each_step(function):
    assert not difference(function)
