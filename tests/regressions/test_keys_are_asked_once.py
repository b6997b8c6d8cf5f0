"""Keys with a `__hash__` and `__eq__` in Python were asked more often than a hash table asks them.

A look-up that missed, a change, a set operation and every rebuilding of a container at a break called them again: they
counted, refused by then, or gave another number.
"""

import pytest

import plumbline
from support.as_in_plain_python import difference


class Asked:
    def __init__(self, number=42):
        self.hashed = self.compared = 0
        self.number = number

    def __hash__(self):
        self.hashed += 1
        return self.number

    def __eq__(self, other):
        self.compared += 1
        return self is other


def counts(*keys):
    return [(key.hashed, key.compared) for key in keys]


def dictionary(x):
    a, b, c = Asked(), Asked(), Asked()
    table = {a: 1, b: 2}
    seen = [counts(a, b, c)]
    for act in (
        lambda: table.__setitem__(b, 3),
        lambda: table.get(c),
        lambda: table.pop(c, 0),
        lambda: table.setdefault(c, 0),
        lambda: table.setdefault(b, 0),
        lambda: table.__delitem__(b),
        lambda: table.__setitem__(b, 1),
        lambda: dict(table),
        lambda: {**table, b: 1},
        lambda: set(table),
        lambda: dict.fromkeys(table),
        lambda: dict.fromkeys(set(table)),
        lambda: table.popitem(),
    ):
        act()
        seen.append(counts(a, b, c))
    return seen


def sets(x):
    a, b, c = Asked(), Asked(), Asked()
    first, second = {a, b}, {b, c}
    seen = [counts(a, b, c)]
    for act in (
        lambda: first.add(b),
        lambda: first.discard(a),
        lambda: first.add(a),
        lambda: b in first,
        lambda: first | second,
        lambda: first & second,
        lambda: first ^ second,
        lambda: first.update(second),
        lambda: frozenset(second),
        lambda: second.copy(),
        lambda: list(frozenset(second)),
    ):
        act()
        seen.append(counts(a, b, c))
    return seen


def handed_over(x):
    a, b = Asked(), Asked()
    table, members, pair = {a: 1, b: 2}, {a, b}, {(a, b): 3}
    plumbline.graph_break()
    return counts(a, b), len(table), len(members), len(pair)


class Refusing:
    refuses = False

    def __hash__(self):
        if self.refuses:
            raise ValueError("no hash")
        return 42


def refused_by_then(x):
    key = Refusing()
    table = {key: 1}
    key.refuses = True
    plumbline.graph_break()
    try:
        table[key]
    except ValueError as error:
        return str(error), list(table.values())


class Clearing:
    bad = False

    def __eq__(self, other):
        if Clearing.bad:
            raise ZeroDivisionError
        return self is other

    def __hash__(self):
        return 0


def compared_while_handed_over(x):
    Clearing.bad = False
    first, second = {Clearing()}, {Clearing() for _ in range(9)}
    Clearing.bad = True
    try:
        plumbline.graph_break()
        first.update(second)
    except ZeroDivisionError:
        return len(first), len(second)
    finally:
        Clearing.bad = False


def hashed_by_a_class_made_inside(x):
    class Key:
        def __hash__(self):
            return hash((Key, 1))

        def __eq__(self, other):
            return isinstance(other, Key)

    table = {Key(): 1}
    plumbline.graph_break()
    return table[Key()], Key() in table, len({Key(), Key()})


def hashed_by_a_class_that_hides(x):
    class Key:
        @property
        def __class__(self):
            return int

        def __hash__(self):
            return 42

    key = Key()
    table = {key: 1}
    plumbline.graph_break()
    return table[key], type(key).__name__


def key_of_an_error(x):
    key = {3, 4}
    try:
        {1}.remove(key)
    except KeyError as error:
        return error.args[0] is key


@pytest.mark.parametrize(
    "function",
    [
        dictionary,
        sets,
        handed_over,
        refused_by_then,
        compared_while_handed_over,
        hashed_by_a_class_made_inside,
        hashed_by_a_class_that_hides,
        key_of_an_error,
    ],
)
def test_counts_are_those_of_a_hash_table(function):
    assert not difference(function)
