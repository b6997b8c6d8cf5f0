"""Methods written in C were evaluated whatever arguments they got: `[1].__iter__(2)` gave an iterator."""

import pytest

import plumbline
from support.played_programs import difference_of

PROGRAM = """
import collections
import fractions

class Rows(list):
    pass

class Half:
    def __index__(self):
        return 1

def asked(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)

numbers = [3, 1.0]
table = {1: 'a', 'k': 2}
filled = collections.defaultdict(list, a=[1])
ordered = collections.OrderedDict(a=1, b=2)
counted = collections.Counter('aab')
members = {1, 2}
frozen = frozenset(members)
queue = collections.deque([1, 2, 3], maxlen=5)
row = Rows([1])
wrapped = collections.UserList([1, 2])

def step(x):
    return TEXT, x + 1
"""
CALLS = (
    "numbers.__iter__(2)",
    "numbers.__lt__('', 2)",
    "numbers.__lt__(key=2)",
    "numbers.__setitem__(10**25, 1)",
    "numbers.__setitem__(1)",
    "numbers.__mul__(10**25)",
    "numbers.__repr__(1)",
    "numbers.insert(10**25, 2)",
    "numbers.index(3, fractions.Fraction(1, 2))",
    "row.index(1, Half())",
    "row.__len__(1)",
    "row.append()",
    "table.__setitem__(1)",
    "table.__len__(table)",
    "table.popitem(1.0)",
    "filled.keys(x)",
    "filled.__repr__(1)",
    "filled.__ne__()",
    "ordered.__getitem__(1.5, 2)",
    "ordered.move_to_end(key='a')",
    "ordered.move_to_end((7, 8))",
    "ordered.pop((1,))",
    "ordered.pop(None)",
    "ordered.pop(key='a')",
    "collections.OrderedDict.fromkeys(iterable=[1], value=2)",
    "counted.__iter__(1)",
    "counted.__format__([1, 2])",
    "counted.__reversed__(*[1])",
    "members.__contains__(1, 2)",
    "members.difference(key=0)",
    "frozen.copy() is frozen",
    "queue.pop(0)",
    "queue.__setitem__(1)",
    "queue.insert(-10**25, 1)",
    "wrapped.__ne__(iter([1, 'a']))",
    "wrapped.sort(1)",
    "wrapped.pop(*0)",
    "list.append()",
    "list.append(1, 2)",
    "list.append([1])",
    "(1, 'a').__lt__(collections.namedtuple('P', 'a b')('a', 2))",
    "True.bit_count(2)",
    "'a'.find(key=2)",
    "'a'.find(*fractions.Fraction(1, 2))",
    "bytearray(b'ab').find(key=1)",
)


@pytest.mark.parametrize("call", CALLS)
def test_python_refuses_them_in_its_words(call):
    assert difference_of(PROGRAM.replace("TEXT", f"asked(lambda: {call})")) == ""


@pytest.mark.parametrize("made", ["'ab'.__iter__()", "b'ab'.__iter__()", "range(3).__reversed__()"])
def test_an_iterator_is_new_at_each_call(made):
    assert difference_of(f"def step(x):\n    it = {made}\n    next(it)\n    return it, x + 1\n") == ""


def words_of(function):
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)


class CalledList(list):
    __call__ = list.__getitem__
    __contains__ = list.count


class CalledDict(dict):
    __call__ = dict.__getitem__


CALLED_LIST, CALLED_DICT = CalledList([1]), CalledDict(a=1)


@pytest.mark.parametrize(
    "function",
    [
        lambda: CALLED_LIST(),
        lambda: CALLED_LIST(0, 1),
        lambda: CALLED_LIST(0),
        lambda: CALLED_DICT(),
        lambda: CALLED_DICT("a"),
        lambda: CALLED_LIST.__getitem__(),
        lambda: 1 in CALLED_LIST,
    ],
)
def test_a_method_in_c_that_stands_for_a_call(function):
    """Python looks it up on the class, so that the error names the class that has it."""
    assert plumbline.compile(lambda: words_of(function), backend="eager")() == words_of(function)
