"""Operators between a builtin and an instance of its subclass asked the operands in another order than Python."""

from support.played_programs import difference_of

_MODULE = """
import collections
class Row(list): pass
class Long(Row): pass
class Couple(tuple): pass
class Table(dict): pass
class Text(str): pass
class Same(dict):
    def __eq__(self, other): return True
class Adding(list):
    def __gt__(self, other): return "gt"
    def __radd__(self, other): return "radd"
    def __rmul__(self, other): return "rmul"
class Number(int):
    def __gt__(self, other): return "gt"
    def __radd__(self, other): return "radd"
    def __rfloordiv__(self, other): return "rfloordiv"
class Word(str):
    def __radd__(self, other): return "radd"
def words(action):
    try:
        answer = action()
    except Exception as error:
        return repr(error)
    return type(answer).__name__, answer
"""


def test_comparisons_with_instances_of_subclasses_are_turned_round():
    assert not difference_of(
        _MODULE
        + """
lefts = [[[]], [1, 2], Row([[]]), Long([[]]), (1, "a"), ([],), Couple(([],)), True, 2.5, {1}, "a"]
rights = [Row([1]), Long([1]), Adding([1]), Couple((1, 2)), Number(2), {"a": 1}, [3]]
def step(x):
    log = []
    for left in lefts:
        for right in rights:
            log += [words(lambda: left < right), words(lambda: left >= right), words(lambda: left == right)]
    return log
"""
    )


def test_inequality_that_a_builtin_class_decides():
    assert not difference_of(
        _MODULE
        + """
same = Same(a=5)
def step(x):
    log = [other == same for other in (1, [1], {}, {"a": 5}, Table(a=1), collections.OrderedDict(a=1), None, "a")]
    return log + [other != same for other in (1, [1], {}, {"a": 5}, Table(a=1), collections.OrderedDict(a=1), None)]
"""
    )


def test_operators_of_sequences_come_after_those_of_numbers():
    assert not difference_of(
        _MODULE
        + """
lefts = [[1], Row([1]), Adding([1]), "ab", Text("ab"), Word("ab"), (1,), 2.5, True]
rights = [Adding([1]), Word("ab"), Number(2), Row([2])]
def step(x):
    log = []
    for left in lefts:
        for right in rights:
            log += [words(lambda: left + right), words(lambda: left * right), words(lambda: left // right)]
    return log + [words(lambda: [1].__add__(rights[0])), words(lambda: [1].__add__(rights[2]))]
"""
    )


def test_results_of_operators_on_instances_of_subclasses():
    assert not difference_of(
        _MODULE
        + """
def step(x, counter=collections.Counter(a=2), ordered=collections.OrderedDict(a=1)):
    log = [words(lambda: Text("ab") % []), words(lambda: "%s" % counter), words(lambda: "%(a)s" % counter)]
    return log + [words(lambda: Table(a=2) | ordered), words(lambda: {"a": 2} | ordered), words(lambda: ordered | {})]
"""
    )


def test_deques_refuse_slices_whatever_their_bounds():
    assert not difference_of(
        _MODULE
        + """
deque = collections.deque([1])
def without(start):
    del deque[start:]
def step(x):
    return [words(lambda: deque[1.5:]), words(lambda: deque[:]), words(lambda: without(1.5)), words(lambda: without(0))]
"""
    )
