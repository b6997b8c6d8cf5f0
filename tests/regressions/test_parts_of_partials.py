"""`partial.keywords` and `partial.args` were new objects at every look, and what a program put into them was lost."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
import functools

def twice(*args, **kwargs):
    return args, kwargs

shifted = functools.partial(twice, 1, [2], plus=1)
around = functools.partial(shifted, 3, plus=2, more=x0)
plain = functools.partial(twice)

def step(x):
    {made}
    return {text}
"""
TEXTS = (
    "shifted.keywords, shifted.args, shifted.keywords is shifted.keywords, shifted.args is shifted.args",
    "around.keywords, around.args, around.func, around(x)",
    "shifted.keywords.update(new=x), shifted(4), shifted.keywords",
    "shifted.keywords.clear(), shifted(4, plus=5)",
    "shifted.keywords.setdefault(3, 4)",
    "shifted.args[1].append(x), shifted()",
    "plain.keywords.update(new=x + 1), plain.args, plain(2)",
    "functools.partial(shifted, other=3), shifted.keywords.update(other=4), shifted()",
    "shifted, shifted.keywords, x + 1",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize(
    "made", ["pass", "shifted = functools.partial(twice, 1, [2], plus=x)\n    around = functools.partial(shifted, 3)\n"
             "    plain = functools.partial(twice)"], ids=["outside", "made"]
)  # fmt: skip
def test_the_parts_are_the_own_objects_of_the_partial(made, text):
    assert difference_of(PROGRAM.replace("{made}", made).replace("{text}", text)) == ""


def test_a_partial_that_holds_itself():
    program = """
import functools
def step(x):
    made = functools.partial(len)
    made.keywords['self'] = made
    return made, made.keywords, x + 1
"""
    assert difference_of(program) == ""
