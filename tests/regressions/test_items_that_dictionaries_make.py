"""Items that a dictionary makes when it is asked for them: by a text that is filled in, by `dict.__getitem__`."""

from support.played_programs import difference_of

_MODULE = """
import collections
made = []
def number():
    made.append("number")
    return len(made)
class Kept(collections.defaultdict):
    def __missing__(self, key):
        made.append(key)
        self[key] = key
        return key
class Answering(dict):
    def __getitem__(self, key):
        return "got", super().__getitem__(key)
    def __missing__(self, key):
        return "missing", key
counted = collections.defaultdict(number)
kept = Kept()
answering = Answering(a=1)
class Row(list): pass
row = Row([1])
"""


def test_texts_make_the_items_of_a_defaultdict():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    log = ["%(first)s" % counted, "{second}".format_map(counted), "{0[third]} {0}".format(counted)]
    log += ["%(first)s" % kept, "{second}".format_map(kept), repr(counted), dict(kept)]
    return log, dict(counted), x + 1
"""
    )


def test_methods_of_the_builtin_class_ask_for_missing_items():
    assert not difference_of(
        _MODULE
        + """
def step(x):
    log = [answering["a"], answering["b"], dict.__getitem__(answering, "c"), dict.__getitem__(kept, "d"), dict(kept)]
    return log, list.__iadd__(row, [2]) is row, row, x + 1
"""
    )
