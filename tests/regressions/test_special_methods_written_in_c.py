"""A class may be given a method written in C under the name of a special one: `__setattr__ = dict.__setitem__`."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import collections, functools, operator

class Fields(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__
    __call__ = dict.get
    fetch = dict.get

class Ordered(collections.OrderedDict):
    __getattr__ = collections.OrderedDict.__getitem__
    __setattr__ = collections.OrderedDict.__setitem__

class ByIdentity(dict):
    __eq__ = object.__eq__
    __hash__ = object.__hash__

class Stack(list):
    __call__ = list.__getitem__
    __len__ = list.pop
    __neg__ = list.copy
    __lshift__ = list.append

class Text(str):
    __call__ = str.upper
    __neg__ = str.lower

class Odd:
    __call__ = functools.partial(max, 3)
    __getitem__ = operator.neg
    __bool__ = staticmethod(lambda: False)
    __contains__ = classmethod(lambda cls, item: item == 2)
    __str__ = object.__repr__
    __repr__ = lambda self: 'odd'

class Call:
    def __call__(self, *given):
        return 'called', given

class Objects:
    __call__ = __getattr__ = __add__ = Call()

class Explicit:
    __slots__ = ('a',)
    __setattr__ = object.__setattr__
    __getattribute__ = object.__getattribute__
    __delattr__ = object.__delattr__

kept = Fields(a=1)

def step(x):
    LINES
    return seen, x + 1
"""


@pytest.mark.parametrize(
    "lines",
    [
        "fields = Fields(a=1); fields.b = 2; del fields.a; seen = dict(fields), vars(fields)",
        "kept.b = x; kept.a = kept.a + 1; seen = dict(kept), vars(kept), kept.nothing, kept('a'), kept.fetch('b')",
        "kept.z = 1; del kept.z; seen = sorted(kept), hasattr(kept, 'z')",
        "made = Ordered(); made.a = 1; made['b'] = made.a; seen = list(made.items())",
        "one, other = ByIdentity(a=1), ByIdentity(a=1); seen = one == other, one == one, len({one, other})",
        "stack = Stack([5, 6, 7]); seen = stack(1), len(stack), list(stack), -stack, stack << 8, [*stack]",
        "text = Text('aB'); seen = text(), -text",
        "odd = Odd(); seen = odd(9), odd[4], bool(odd), 2 in odd, 3 in odd, repr(odd), str(odd)[:9]",
        "objects = Objects(); seen = objects(1), objects.any, objects + 2",
        "made = Explicit(); made.a = 1; got = made.a; del made.a; seen = got, hasattr(made, 'a')",
    ],
)
def test_it_is_called(lines):
    assert difference_of(PROGRAM.replace("LINES", lines)) == ""
