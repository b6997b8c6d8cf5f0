"""Warnings of operations that capture evaluates were shown twice, or at the first call only."""

import re
import warnings

import pytest
import torch

import plumbline
from support.played_programs import difference_of

PROGRAMS = {
    "enum contains": """
import enum
class C(enum.Enum):
    A = 1
def step(x):
    try:
        r = 1 in C
    except TypeError: r = 'no'
    return x + 1, r
""",
    "enum contains error": """
import enum, warnings
class C(enum.Enum):
    A = 1
def step(x):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        try:
            r = 1 in C
        except (TypeError, DeprecationWarning) as e: r = str(e)
    return x + 1, r
""",
    "notimplemented truth": """
def step(x):
    if NotImplemented:
        x = x + 1
    return x * 2
""",
    "not notimplemented": """
def step(x):
    return x * 2, not NotImplemented, bool(NotImplemented)
""",
    "module attr": """
import types, warnings
mod = types.ModuleType('mod')
exec('''
import warnings
def __getattr__(name):
    warnings.warn('old ' + name, DeprecationWarning, stacklevel=2)
    return 3
''', mod.__dict__)
def step(x):
    return x * mod.thing
""",
    "torch softmax dim": """
import torch.nn.functional as F
def step(x):
    return F.softmax(x)
""",
    "pure cache": """
import functools, warnings
@functools.lru_cache
def w(n):
    warnings.warn('called')
    return n
def step(x):
    return x * w(2)
""",
    "np over": """
import numpy as np
big = np.float64(1e308)
def step(x):
    print('a')
    s = big * 10
    return x * 2, s
""",
    "np over nob": """
import numpy as np
big = np.float64(1e308)
def step(x):
    s = big * 10
    return x * 2, s
""",
    "np div": """
import numpy as np
z = np.float64(0.0)
def step(x):
    y = x + 1
    print('a')
    s = np.float64(1.0) / z
    print('b', s)
    t = np.int64(1) // np.int64(0)
    return y * 2, s, t
""",
    "np inner": """
import numpy as np
z = np.float64(0.0)
def inner(x):
    print('q')
    s = np.float64(1.0) / z
    return s
def step(x):
    y = x + 1
    s = inner(x)
    return y * 2, s
""",
    "np method": """
import numpy as np
z = np.float64(1e308)
def step(x):
    y = x + 1
    print('q')
    small = np.int8(-128)
    s = z.__mul__(10), np.float32(1e38).__add__(np.float32(3e38)), -small, abs(small), np.int8(100) + np.int8(100)
    return y * 2, s
""",
    "np item": """
import numpy as np
def step(x):
    y = x + 1
    n = np.float64(y.sum().item() * 0)
    s = np.float64(3) / n
    return y * 2, s
""",
    "np array el": """
import numpy as np
def step(x):
    print('q')
    a = x.numpy()
    b = a[0, 0] / np.float32(0)
    c = a[0][1] / (a[0][1] - a[0][1])
    return x * 2, b, c
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_does_as_plain_python_does(name):
    module, _, history = PROGRAMS[name].partition("#--\n")
    statements = tuple(history.splitlines())
    assert (difference_of(module, statements) if statements else difference_of(module)) == ""


def test_a_pattern_warns_when_it_is_first_compiled():
    def step(x):
        return x * 2, re.findall("[[a]", "a[b")

    re.purge()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        run = plumbline.compile(step, backend="eager")
        for _ in range(2):
            run(torch.ones(2))
    assert [warning.category for warning in shown] == [FutureWarning]


def test_warnings_that_were_shown_are_still_known():
    def warn():
        warnings.warn("once", UserWarning, stacklevel=1)

    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("default")
        warn()
        plumbline.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
        warn()
    assert len(shown) == 1
