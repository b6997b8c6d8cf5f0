"""Instances of subclasses of numbers and texts as arguments: Python reads past their methods, or asks them first."""

import pytest

from support.played_programs import difference_of

_SETUP = """
import itertools, math, operator, types
class NoIndex(int):
    __index__ = __int__ = __trunc__ = None
class WrongIndex(int):
    def __index__(self): return 'a'
class OtherIndex(int):
    def __index__(self): return 5
    def __int__(self): return 7
class Indexed:
    def __index__(self): return 2
class Raises:
    def __index__(self): raise KeyError(3)
class Refused:
    __index__ = None
class Text(str):
    __len__ = __iter__ = __int__ = __float__ = __index__ = __complex__ = __mul__ = __rmul__ = None
class NoProduct(int):
    __mul__ = __rmul__ = None
class Multiplied(int):
    def __rmul__(self, other): return 'asked'
class Real(float):
    __float__ = None
class OtherReal(float):
    def __int__(self): return 8
class NoComplex(complex):
    __complex__ = None
class Numbers(list): pass
class Bytes(bytes): pass
class Plain(str): pass
us = [NoIndex(2), WrongIndex(2), OtherIndex(2), Indexed(), Raises(), Refused(), Text('2'), NoProduct(2), Multiplied(2)]
us += [Real(2.5), OtherReal(2.5), NoComplex(1), Numbers([1]), Bytes(b'2'), Plain('2'), None, 1.5, True, types, x0]
"""
OPERATIONS = {
    "counted": "range(u) | range(0, 5, u) | [1] * u | u * [1] | (1,) * u | 'a' * u | b'a' * u | [1, 2, 3][u] | hex(u)",
    "converted": "complex(u) | complex(1, u) | complex(u, 1) | int(u) | int('11', u) | float(u) | bytes(u) | chr(u)",
    "rounded": "round(1.234, u) | round(u) | abs(u) | divmod(7, u) | pow(2, 3, u) | math.gcd(u, 4) | math.sqrt(u)",
    "written": "'%d' % u | '%x' % u | '%c' % u | f'{u:d}' | '%.*f' % (u, 1.0) | 'a'.join([u]) | str(b'a', u)",
    "looked up": "operator.index(u) | list(enumerate('a', u)) | getattr(u, u) | ord(u) | int(u, 10)",
    "sorted": "[].sort(reverse=u) | [2, 1].sort(reverse=u) | sorted([2, 1], reverse=u) | sorted([1], key=1, reverse=u)",
    "iterated": "''.join(u) | dict([u]) | {}.update([u])",
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_arguments(name: str):
    lambdas = ", ".join(f"lambda u: {text}" for text in OPERATIONS[name].split(" | "))
    step = f"""
def words(operation, u):
    try:
        return operation(u)
    except Exception as error:
        return repr(error)
def step(x):
    return [words(operation, u) for operation in ({lambdas},) for u in us] + [x + 1]
"""
    assert not difference_of(_SETUP + step, ("r0 = step(x0)",))


def test_results_that_are_the_argument():
    program = """
import os, posixpath, re
class Plain(str): pass
text = Plain('a')
def step(x):
    match = re.match('a', text)
    return os.fspath(text), posixpath.join(text), match.string is text, type(match.string).__name__, x + 1
"""
    assert not difference_of(program)
