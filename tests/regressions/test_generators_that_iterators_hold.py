"""A generator that an iterator holds, or that had moved on since the last break, ended with its segment: too late."""

import pytest

from support.played_programs import difference_of

TIDY = """
def tidy(n, log):
    try:
        for i in range(n):
            yield i
    finally:
        log.append((n,))
def step(x):
    log = []
"""
LOOPS = {
    "itself": "tidy(3, log)",
    "zip": "zip(tidy(3, log))",
    "zip of two": "zip(tidy(3, log), [1, 2, 3])",
    "enumerate": "enumerate(tidy(3, log))",
    "map": "map(str, tidy(3, log))",
    "filter": "filter(lambda i: True, tidy(3, log))",
    "zip of enumerate": "zip(enumerate(tidy(3, log)))",
}


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("turns", [1, 2])
def test_a_loop_that_is_left_after_a_break(loop, turns):
    lines = f"""
    turns = 0
    for item in {LOOPS[loop]}:
        turns += 1
        x = x * 2
        if x.sum() > 1000:
            log.append('large')
        if turns == {turns}:
            break
    log.append('after')
    return log, x
"""
    assert difference_of(TIDY + lines) == ""


NAMES = {
    "unbound after one step here": "if x.sum(): next(g)\n    next(g)\n    g = None",
    "unbound after a step before": "if x.sum(): next(g)\n    if x.sum(): next(g)\n    g = None",
    "deleted": "next(g)\n    if x.sum(): pass\n    next(g)\n    del g",
    "not started here": "if x.sum(): pass\n    next(g)\n    del g",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_lets_go_after_a_break(name):
    lines = f"""    g = tidy(3, log)
    {NAMES[name]}
    log.append('after')
    return log, x
"""
    assert difference_of(TIDY + lines) == ""
