"""Containers that have a `__dict__`, instances of tuple's subclasses and ordered dictionaries, were read without it."""

from support.played_programs import difference_of

_MODULE = """
import collections, copy, functools
class Couple(tuple):
    level = 1
    @property
    def twice(self):
        return 2 * len(self)
    @functools.cached_property
    def kept(self):
        log = self.__dict__
        return len(log)
class Row(list): pass
class Table(dict): pass
class Number(int): pass
class Text(str): pass
class Real(float): pass
class Ordered(collections.OrderedDict): pass
class Line(collections.deque): pass
pair = Couple((1, 2))
pair.fresh = 3
zoo = collections.OrderedDict(a=1)
holders = [Couple((1,)), Row(), Table(), Number(3), Text("a"), Real(2.0), Ordered(), Line(), collections.OrderedDict()]
def words(action):
    try:
        return action()
    except Exception as error:
        return repr(error)
"""


def test_attributes_of_a_tuple_from_outside():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    log = [sorted(vars(pair)), pair.__dict__, pair.fresh, pair.level, pair.twice, words(lambda: pair.other)]
    pair.level = pair.fresh + 1
    pair.count = str
    log += [pair.level, pair.count(3), sorted(vars(pair)), hasattr(pair, "other"), dir(pair)]
    del pair.level, pair.count
    pair.fresh += 1
    return log + [pair.level, pair.count(1), pair.fresh, words(lambda: delattr(pair, "twice")), pair.kept, x + 1]
"""
    )


def test_attributes_of_a_new_tuple():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    made = Couple((x, 2))
    log = [vars(made), made.level, words(lambda: made.fresh)]
    made.fresh = 5
    log += [vars(made), made.fresh, words(lambda: delattr(made, "level")), made.kept]
    return log + [copy.copy(made) is made, vars(copy.copy(made)), vars(copy.deepcopy(made)), copy.copy(pair).fresh]
"""
    )


def test_attributes_of_an_ordered_dictionary():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    log = [vars(zoo), words(lambda: zoo.fresh)]
    zoo.fresh = len
    zoo.keys = str
    log += [zoo.fresh([1]), zoo.keys(2), vars(copy.copy(zoo)), sorted(vars(copy.deepcopy(zoo))), dir(zoo)]
    del zoo.fresh, zoo.keys
    made = collections.OrderedDict(b=x)
    made.fresh = 1
    return log + [list(zoo.keys()), words(lambda: zoo.fresh), vars(made), made.fresh, words(lambda: delattr(zoo, "no"))]
"""
    )


def test_attributes_of_all_containers():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    log = []
    for holder in holders:
        log.append(words(lambda: dict(vars(holder))))
        holder.fresh = x.shape[0]
        log += [holder.fresh, list(vars(holder)), holder.__dict__]
        del holder.fresh
        log += [words(lambda: holder.fresh), words(lambda: delattr(holder, "fresh"))]
        holder.count = len(log)
        made = type(holder)()
        made.fresh = 1
        log += [vars(made), words(lambda: made.count), type(made).__name__]
    return log
"""
    )


def test_attributes_that_change_between_calls():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    return [words(lambda: pair.later), words(lambda: zoo.later), vars(pair), pair.count(1), len(zoo.keys())]
""",
        (
            "r0 = step(x0)",
            "pair.later = zoo.later = 7",
            "r1 = step(x0)",
            "pair.count = zoo.keys = str",
            "r2 = step(x0)",
        ),
    )
