"""A generator that ends while capturing did not clean up: its `finally` and `with` blocks never ran."""

import pytest

from support.played_programs import difference_of

PROGRAMS = {
    "drop partial": """
log = []
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    log = []
    n = next(g(log))
    log.append('after')
    return x * n, log
""",
    "drop del": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    log = []
    it = g(log)
    n = next(it)
    log.append('a')
    del it
    log.append('b')
    return x * n, log
""",
    "drop reassign": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    log = []
    it = g(log)
    n = next(it)
    it = None
    log.append('b')
    return x * n, log
""",
    "drop at return inner": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def inner(log):
    it = g(log)
    return next(it)
def step(x):
    log = []
    n = inner(log)
    log.append('b')
    return x * n, log
""",
    "drop at return outer": """
L = []
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    it = g(L)
    n = next(it)
    L.append('end')
    return x * n
""",
    "break for": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    log = []
    for v in g(log):
        x = x * v
        break
    log.append('b')
    return x, log
""",
    "cm enter": """
import contextlib
@contextlib.contextmanager
def m(log):
    log.append('in')
    try:
        yield 3
    finally:
        log.append('out')
def step(x):
    log = []
    c = m(log)
    n = c.__enter__()
    del c
    log.append('b')
    return x*n, log
""",
    "with in gen": """
class CM:
    def __init__(self, log): self.log = log
    def __enter__(self): self.log.append('en'); return 1
    def __exit__(self, *a): self.log.append(('ex', str(a[0])))
def g(log):
    with CM(log) as v:
        yield v
        yield 2
def step(x):
    log = []
    n = next(g(log))
    log.append('b')
    return x * n, log
""",
    "zip drop": """
def g(log, n):
    try:
        yield n
        yield 2
    finally:
        log.append('fin%d' % n)
def step(x):
    log = []
    for a, b in zip(g(log, 1), [5, 6]):
        log.append(a); break
    log.append('b')
    return x * 2, log
""",
    "unpack first": """
def g(log, n):
    try:
        yield n
        yield 2
    finally:
        log.append('fin%d' % n)
def step(x):
    log = []
    r = any(v == 1 for v in g(log, 1))
    log.append('b')
    h = 1 in g(log, 1)
    log.append('c')
    return x * 2, log, r, h
""",
    "nested yield from": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def outer(log):
    try:
        yield from g(log)
    finally:
        log.append('outer')
def step(x):
    log = []
    n = next(outer(log))
    log.append('b')
    return x * n, log
""",
    "in container": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    log = []
    l = [g(log)]
    n = next(l[0])
    l.clear()
    log.append('b')
    return x * n, log
""",
    "in object": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
class O: pass
def step(x):
    log = []
    o = O(); o.g = g(log)
    n = next(o.g)
    o.g = None
    log.append('b')
    return x * n, log
""",
    "exception frees": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def inner(log):
    it = g(log)
    next(it)
    raise KeyError(1)
def step(x):
    log = []
    try:
        inner(log)
    except KeyError as e:
        log.append('caught')
    log.append('b')
    return x * 2, log
""",
    "break between": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    log = []
    it = g(log)
    n = next(it)
    print('x')
    log.append('b')
    it = 3
    log.append('c')
    return x * n, log
""",
    "break between held": """
L = []
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    it = g(L)
    n = next(it)
    print('x')
    L.append('b')
    return x * n
""",
    "print in finally": """
def g():
    try:
        yield 1
        yield 2
    finally:
        print('fin')
def step(x):
    n = next(g())
    print('after')
    return x * n
""",
    "genexp with": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
def step(x):
    log = []
    it = (v + 1 for v in g(log))
    n = next(it)
    it = None
    log.append('b')
    return x * n, log
""",
    "pass out": """
def g(log):
    try:
        yield 1
        yield 2
    finally:
        log.append('fin')
L = []
def step(x):
    it = g(L)
    n = next(it)
    return x * n, it
#--
r0 = step(x0)
L.append('still')
r0 = None
L.append('gone')
r1 = step(x0)
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_does_as_plain_python_does(name):
    module, _, history = PROGRAMS[name].partition("#--\n")
    statements = tuple(history.splitlines())
    assert (difference_of(module, statements) if statements else difference_of(module)) == ""
