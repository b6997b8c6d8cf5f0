"""Objects with a finaliser or a weak reference ended late where a container or an attribute let go of them."""

import pytest
import torch

from support.played_programs import difference_of

PROGRAMS = {
    "list pop outer": """
L = []
class A:
    def __del__(self): L.append('del')
items = [A()]
def step(x):
    if items:
        items.pop()
    L.append('after')
    return x * 2
""",
    "list clear outer": """
L = []
class A:
    def __del__(self): L.append('del')
items = [A()]
def step(x):
    items.clear()
    L.append('after')
    return x * 2
""",
    "dict del": """
L = []
class A:
    def __del__(self): L.append('del')
d = {'a': A()}
def step(x):
    if 'a' in d:
        del d['a']
    L.append('after')
    return x * 2
""",
    "attr reassign": """
L = []
class A:
    def __del__(self): L.append('del')
class O: pass
o = O(); o.a = A()
def step(x):
    o.a = None
    L.append('after')
    return x * 2
""",
    "global reassign": """
L = []
class A:
    def __del__(self): L.append('del')
a = A()
def step(x):
    global a
    a = None
    L.append('after')
    return x * 2
""",
    "dict set": """
L = []
class A:
    def __del__(self): L.append('del')
d = {'a': A()}
def step(x):
    d['a'] = 3
    L.append('after')
    return x * 2
""",
    "slot set": """
L = []
class A:
    def __del__(self): L.append('del')
class O: __slots__ = 'a',
o = O(); o.a = A()
def step(x):
    o.a = None
    L.append('after')
    return x * 2
""",
    "weak pop": """
import weakref
class A: pass
items = [A()]
w = weakref.ref(items[0])
def step(x):
    if items: items.pop()
    return x * 2, w() is None
""",
    "weak attr": """
import weakref
class A: pass
class O: pass
o = O(); o.a = A()
w = weakref.ref(o.a)
def step(x):
    o.a = 1
    return x * 2, w() is None
""",
    "weak finalize": """
import weakref
L = []
class A: pass
items = {'k': A()}
weakref.finalize(items['k'], L.append, 'gone')
def step(x):
    items.pop('k', None)
    L.append('after')
    return x * 2
""",
    "weak inside": """
import weakref
class A: pass
def step(x):
    a = A()
    w = weakref.ref(a)
    r = [w() is a]
    del a
    r.append(w() is None)
    return x * 2, r
""",
    "set discard": """
L = []
class A:
    def __del__(self): L.append('del')
a = A()
s = {a}
del a
def step(x):
    s.clear()
    L.append('after')
    return x * 2
""",
    "deque pop": """
from collections import deque
L = []
class A:
    def __del__(self): L.append('del')
s = deque([A(), 2], maxlen=2)
def step(x):
    s.append(3)
    L.append('after')
    return x * 2
""",
    "slice set": """
L = []
class A:
    def __del__(self): L.append('del')
s = [A(), 2, 3]
def step(x):
    s[:1] = [5]
    L.append('after')
    return x * 2
""",
    "nested container": """
L = []
class A:
    def __del__(self): L.append('del')
s = [[A()], 2, 3]
def step(x):
    if len(s) == 3:
        s.pop(0)
    L.append('after')
    return x * 2
""",
    "held twice by what ends": """
L = []
class A:
    def __del__(self): L.append('del')
class O: pass
o = O(); o.a = A(); o.again = [o.a, o.a]
s = [o, 2, 3]
del o
def step(x):
    if len(s) == 3:
        s.pop(0)
    L.append('after')
    return x * 2
""",
    "module attr": """
import torch.nn as nn
L = []
class A:
    def __del__(self): L.append('del')
m = nn.Linear(3, 3); m.a = A()
def step(x):
    m.a = None
    L.append('after')
    return m(x)
""",
    "kept elsewhere": """
L = []
class A:
    def __del__(self): L.append('del')
s = [A()]
def step(x):
    t = s.pop() if s else None
    L.append('after')
    t = None
    L.append('end')
    return x * 2
""",
    "del in inner": """
class A:
    def __init__(self, log): self.log = log
    def __del__(self): self.log.append('del')
def inner(log):
    a = A(log)
    log.append('in')
def step(x):
    log = []
    inner(log)
    log.append('out')
    return x * 2, log
""",
    "tensor weak": """
import weakref
items = [x0 + 1]
w = weakref.ref(items[0])
def step(x):
    if items: items.pop()
    return x * 2, w() is None
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_does_as_plain_python_does(name):
    module, _, history = PROGRAMS[name].partition("#--\n")
    statements = tuple(history.splitlines())
    assert (difference_of(module, statements) if statements else difference_of(module)) == ""


def test_does_so_under_a_hook_on_frames():
    """A call under such a hook holds its arguments once more, and an object that ends was taken for one held by all."""
    hook = torch._C._dynamo.eval_frame.set_eval_frame
    before = hook(False)
    try:
        assert difference_of(PROGRAMS["nested container"]) == ""
    finally:
        hook(before)
