"""Suspended generators that nothing reads again ended at the next break, not where the program lets go of them."""

import pytest

from support.played_programs import difference_of

PROGRAM = """
class Ending:
    def __init__(self, log, tag):
        self.log, self.tag = log, tag

    def __del__(self):
        self.log.append(self.tag)

def gen(log, tag):
    try:
        yield 1
    finally:
        log.append(tag)

def step(x):
    log = []
    g = h = None
    for i in range(2):
        FIRST
        log.append('between')
        SECOND
        log.append('made')
        BREAK
        log.append('gone on')
    log.append('after')
    return log, x + 1
"""
MAKING = {
    "plain": ("g = gen(log, ('g', i)); next(g)", "h = gen(log, ('h', i)); next(h)"),
    "in lists": ("g = [gen(log, ('g', i))]; next(g[0])", "h = [gen(log, ('h', i))]; next(h[0])"),
    "in a tuple and a dictionary": (
        "g = (gen(log, ('g', i)),); next(g[0])",
        "h = {'a': [gen(log, ('h', i))]}; next(h['a'][0])",
    ),
    "one": ("g = [gen(log, ('g', i))]; next(g[0])", "pass"),
    "one inside the other": ("g = [gen(log, ('g', i))]; next(g[0])", "h = [gen(log, ('h', i)), g]; next(h[0])"),
    "the other first": ("h = [gen(log, ('h', i))]; next(h[0])", "g = [gen(log, ('g', i))]; next(g[0])"),
    "once": ("g = g or [gen(log, ('g', i))]; next(g[0], 0)", "h = [gen(log, ('h', i))]; next(h[0])"),
}


@pytest.mark.parametrize("at", ["x.sum().item()", "print(i)", "graph_break()"])
@pytest.mark.parametrize("how", MAKING)
def test_they_end_where_the_program_lets_go_of_them(how, at):
    first, second = MAKING[how]
    program = PROGRAM.replace("FIRST", first).replace("SECOND", second).replace("BREAK", at)
    assert difference_of(program) == ""


def test_the_names_of_a_frame_end_in_their_order():
    program = PROGRAM.replace("for i in range(2):", "for i in (0,):").replace("BREAK", "x.sum().item()")
    program = program.replace("FIRST", MAKING["plain"][0]).replace("SECOND", MAKING["plain"][1])
    again = "    g = [gen(log, ('g', 1))]; next(g[0])\n    x.sum().item()\n    log.append('after')\n"
    assert difference_of(program.replace("    log.append('after')\n", again)) == ""


def test_super_behind_a_break():
    program = """
def gen(log, tag):
    try:
        yield 1
    finally:
        log.append(tag)

class Base:
    def told(self):
        return 'base'

class Owner(Base):
    def run(self, log, a, b=2):
        g = [gen(log, 'g')]
        next(g[0])
        h = gen(log, 'h')
        next(h)
        graph_break()
        c = super().told()
        h = gen(log, 'i')
        next(h)
        print(c)
        return super().told(), a, b, self.__class__.__name__

owner = Owner()

def step(x):
    log = []
    return owner.run(log, x), log
"""
    assert difference_of(program) == ""
