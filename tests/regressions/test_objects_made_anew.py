"""What Python makes anew at every call was one object for all calls of compiled code: matches, `list[int]`, finfo."""

import re

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Recompiled, recording
from support.played_programs import difference_of

PROGRAMS = {
    "given out": """
import operator, re
def step(x):
    log = [list[int], {'k': list[int]}, int | str, torch.finfo(torch.float32), torch.iinfo(torch.int8)]
    log += [re.match('a', 'ab'), re.compile('a'), list(re.finditer('a', 'aab')), dict.fromkeys, operator.itemgetter(1)]
    return log, x + 1, log[0], list[int] is list[int]
""",
    "alive across a break": """
import random, re
kept = []
def step(x):
    match, limits, alias, union = re.match('a(b)', 'abc'), torch.finfo(torch.float32), list[int], int | None
    random.random()
    kept.append(match)
    log = [match.group(1), match, limits.eps, limits, alias, union, alias == list[int], isinstance(3, union)]
    log += [match is kept[0], match is kept[-1], match == kept[0], match in kept, {match: 1}[match]]
    return log, id(match) == id(kept[0]), x + 1
""",
    "from outside": """
import random, re, typing
T = typing.TypeVar('T')
default = re.match('x', 'x')
def step(x):
    return match.group(0), alias, alias == list[int], alias.__origin__([1]), limits.bits, limits, union, x * limits.eps
match, alias, union, limits = re.match('a', 'ab'), list[int], int | None, torch.finfo(torch.float32)
""",
}
_CHANGES = (
    *("match = re.match('a', 'ab')", "match = re.match('a', 'ac')", "match = re.search('a', 'ba')"),
    *("match = re.match('(a)?', 'a')", "alias = list[int]", "alias = list[float]", "alias = list[T]"),
    *("alias = list[list[int]]", "alias = list[list[str]]", "union = int | None", "union = None | int"),
    *("union = list[int] | None", "limits = torch.finfo(torch.float32)", "limits = torch.iinfo(torch.int8)"),
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_identities(name: str):
    changed = [line for number, change in enumerate(_CHANGES) for line in (change, f"q{number} = step(x0)")]
    assert not difference_of(
        PROGRAMS[name], ("r0 = step(x0)", "r1 = step(x0)", *(changed if "outside" in name else ()))
    )


def test_new_objects_of_equal_content_fit():
    @plumbline.compile(backend="eager")
    def asked(x, match, alias):
        return x + match.end(), alias

    with recording() as events:
        for _ in range(5):
            asked(torch.ones(2), re.match("a", "ab"), list[int])
    assert not [event for event in events if isinstance(event, Recompiled)]
