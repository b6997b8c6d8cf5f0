"""`del` of an attribute of a partial or a cached function asked what stood in for the object, which lacked it."""

import pytest

from support.played_programs import difference_of

_MODULE = """
import functools
def plain(): pass
class Plain: pass
partial = functools.partial(plain)
def step(x):
    log = []
    one = OWNER
    one.fresh = 5
    log.append(one.fresh)
    del one.fresh
    log.append(hasattr(one, "fresh"))
    try:
        del one.fresh
    except AttributeError as error:
        log.append(str(error))
    return log, x + 1
"""


@pytest.mark.parametrize(
    "owner", ["partial", "functools.partial(plain)", "functools.lru_cache(plain)", "Plain", "Plain()", "lambda: 1"]
)
def test_attributes_are_set_and_deleted(owner):
    assert not difference_of(_MODULE.replace("OWNER", owner))


def test_an_attribute_of_a_partial_that_is_set_and_deleted_only():
    assert not difference_of("""
import functools
def plain(): pass
partial = functools.partial(plain)
def step(x):
    partial.fresh = 5
    del partial.fresh
    return x + 1
""")


def test_a_cached_function_that_is_handed_over_keeps_its_attributes():
    assert not difference_of("""
import functools
def plain(): pass
def step(x):
    made = functools.lru_cache(plain)
    made.fresh = 5
    print("over")
    return made.fresh, made.__name__, sorted(vars(made)), x + 1
""")
