"""Descriptors on classes that bind in their own way: methods of other C types, class methods around properties."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import functools

def parts(*given):
    return given

class Owner:
    upper = str.upper
    plus = int.__add__
    add = torch.Tensor.add
    cached = functools.lru_cache(parts)
    named = classmethod(property(lambda cls: cls.__name__))
    around = classmethod(functools.partial(parts, 1))

class Derived(Owner):
    pass

class Doubling(dict):
    def __missing__(self, key):
        log.append(key)
        return key * 2

class Loud(dict):
    def __getitem__(self, key):
        return f'{key}!'

log = []
loud = Loud(a=1)
owner = Derived()
table = Doubling(a=1)

def attempt(call):
    try:
        return call()
    except TypeError as error:
        return str(error)

def step(x):
    return attempt(lambda: TEXT), x + 1
"""
TEXTS = (
    "owner.upper",
    "owner.upper()",
    "hasattr(owner, 'plus')",
    "owner.add(x)",
    "Owner.upper('a'), Owner.plus(1, 2), Owner.add(x, x)",
    "owner.cached([1])",
    "Owner.cached([1])",
    "owner.named, Owner.named, Derived.named",
    "[part is Derived for part in owner.around()]",
    "'%(zz)s %(a)s' % table",
    "'{zz} {a}'.format_map(table)",
    "'{0[zz]}'.format(table)",
    "'%(a)s %(b)s' % loud, '{a}'.format_map(loud)",
)


@pytest.mark.parametrize("text", TEXTS)
def test_as_python_binds_them(text):
    assert difference_of(PROGRAM.replace("TEXT", text)) == ""
