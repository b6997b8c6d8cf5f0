"""Containers that are filled ask what they are filled from for its length, or a hint of it; nothing was asked."""

import pytest

from support.played_programs import difference_of

_SETUP = """
import collections, operator
LOG = []
class WrongType:
    def __iter__(self): return iter([1, 2])
    def __length_hint__(self): return 'a'
class Raises(WrongType):
    def __length_hint__(self): raise ValueError('no')
class Refuses(WrongType):
    def __length_hint__(self): raise TypeError('no')
class Negative(WrongType):
    def __length_hint__(self): return -1
class Nothing(WrongType):
    __length_hint__ = None
class Unknown(WrongType):
    def __length_hint__(self):
        LOG.append('hint')
        return NotImplemented
class Sized(WrongType):
    def __len__(self):
        LOG.append('len')
        return 5
class RefusesItsLength(Unknown):
    def __len__(self): raise TypeError('len')
class RaisesForItsLength(Unknown):
    def __len__(self): raise ValueError('len')
class Iterator:
    left = 2
    def __iter__(self):
        LOG.append('iter')
        return self
    def __next__(self):
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left
    def __length_hint__(self):
        LOG.append('hint')
        return True
class Sequence:
    def __getitem__(self, position): return [3, 4][position]
    def __len__(self):
        LOG.append('len')
        return 2
KINDS = (WrongType, Raises, Refuses, Negative, Nothing, Unknown, Sized, RefusesItsLength, RaisesForItsLength)
KINDS += (Iterator, Sequence)
def give(*given): return given
"""
FILLINGS = """
list(u) | tuple(u) | sorted(u) | [*u] | (*u,) | [].extend(u) | set(u) | frozenset(u) | {*u} | bytes(u) | max(u) | sum(u)
operator.length_hint(u) | operator.length_hint(u, 3) | [1, 2].__setitem__(slice(0, 1), u) | list(map(str, u)) | give(*u)
list(zip(u)) | [one for one in u] | list(reversed(u)) | list(enumerate(u)) | collections.deque(u) | [0].__iadd__(u)
list(iter(u)) | tuple(iter(u)) | dict([u]) | dict.fromkeys(u) | ''.join(u) | list(filter(None, u))
"""


@pytest.mark.parametrize("line", range(len(FILLINGS.strip().splitlines())))
def test_what_is_asked(line: int):
    fillings = ", ".join(f"lambda u: {text}" for text in FILLINGS.strip().splitlines()[line].split(" | "))
    step = f"""
def words(operation, kind):
    del LOG[:]
    try:
        answer = operation(kind())
    except Exception as error:
        answer = repr(error)
    return kind.__name__, answer, LOG[:]
def step(x):
    return [words(operation, kind) for operation in ({fillings}) for kind in KINDS] + [x + 1]
"""
    assert not difference_of(_SETUP + step, ("r0 = step(x0)",))
