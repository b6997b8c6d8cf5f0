"""What `plumbline fuzz programs` found, each as small as it goes; the first line of a program says what was wrong."""

import functools

import pytest
import torch

import plumbline
from support.played_programs import difference_of

PROGRAMS = {
    "names of C types in errors": """
import threading, types
lock, space = threading.Lock(), types.SimpleNamespace(a=1)
def step(x):
    log = []
    for value in (lock, space):
        for ask in (lambda: value.nothing, lambda: value(), lambda: value[0], lambda: 1 in value, lambda: value + 1):
            try:
                log.append(ask())
            except (TypeError, AttributeError) as error:
                log.append(str(error))
    try:
        lock.fresh = 1
    except AttributeError as error:
        log.append(str(error))
    return log, x + 1
""",
    "views of ordered dictionaries have types of their own": """
from collections import OrderedDict
def step(x):
    return type(OrderedDict().items()).__name__, x + 1
""",
    "properties without a function name the class with its place": """
class Outer:
    class Inner:
        read_only = property(lambda self: 1)
        nothing = property()
inner = Outer.Inner()
Outer.Inner.late = property()
def step(x):
    log = []
    for name in ('read_only', 'nothing', 'late'):
        for ask in (lambda: getattr(inner, name), lambda: setattr(inner, name, 1), lambda: delattr(inner, name)):
            try:
                log.append(ask())
            except AttributeError as error:
                log.append(str(error))
    return log, x + 1
""",
    "a keyword that comes twice while an exception is handled": """
def spread(**kwargs):
    return kwargs
def step(x):
    try:
        raise ValueError
    except ValueError:
        try:
            spread(**{'c': 1}, **{'c': x.dim()})
        except (TypeError, KeyError) as error:
            return type(error).__name__, str(error), x + 1
""",
    "numbers of NumPy are made again at each call": """
import numpy
outside = numpy.float64(1.5)
def step(x):
    number = numpy.float64(2.5)
    return number, number + 1, outside, outside.real is outside, outside.__class__.__name__, x + 1
""",
    "numbers of NumPy that torch does not take as elements": """
import numpy
number = numpy.float32(1.5)
def step(x):
    try:
        x[0] = number
    except TypeError as error:
        return str(error), x + 1
""",
    "hooks have ids that count": """
layer = torch.nn.ReLU()
def step(x):
    layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    return layer(x), len(layer._forward_pre_hooks)
""",
    "attributes set on objects that are known": """
known = staticmethod(len)
def step(x):
    log = [hasattr(known, 'fresh')]
    known.fresh = x.dim()
    log.append(known.fresh)
    del known.fresh
    return log, hasattr(known, 'fresh'), x + 1
""",
    "literals as operands of what breaks": """
import random
def step(x):
    log = [random.randint(0, 4) in (1, 2)]
    for ask in (lambda: 3[random.randint(0, 4)], lambda: 'a'(random.random()), lambda: (3).nothing):
        try:
            log.append(ask())
        except (TypeError, AttributeError) as error:
            log.append(str(error))
    return log, x + 1
""",
    "iterators of types from C": """
import array
numbers = array.array('i', [1, 2])
def step(x):
    try:
        return [number for number in numbers], type(getattr(numbers, '__annotations__', 7)).__name__, x + 1
    except TypeError as error:
        return str(error)
""",
    "objects with a finaliser end where their name is dropped": """
LOG = []
class Ending:
    def __init__(self, number):
        self.number = number
    def __del__(self):
        LOG.append(self.number)
def step(x):
    one = Ending(1)
    y = x + 1
    LOG.append('made')
    del one
    LOG.append('deleted')
    two = Ending(2)
    two = Ending(3)
    LOG.append('bound again')
    return LOG[:], y
""",
    "finalisers of weakref run where the name is dropped": """
import weakref
LOG = []
class Watched:
    pass
def step(x):
    watched = Watched()
    weakref.finalize(watched, LOG.append, 'gone')
    y = x + 1
    LOG.append('made')
    del watched
    LOG.append('deleted')
    return LOG[:], y
""",
    "weak references to what nothing else holds": """
import weakref
class Watched:
    pass
def step(x):
    of_result = weakref.ref(x + 1)
    of_object = weakref.ref(Watched())
    held, dropped = x * 2, x * 3
    of_held, of_dropped = weakref.ref(held), weakref.ref(dropped)
    del dropped
    gone = [reference() is None for reference in (of_result, of_object, of_held, of_dropped)]
    return gone, weakref.ref(x)() is x, x * 2
""",
    "attributes set on enumerations are read again": """
import enum
class Shade(enum.Enum):
    DARK = 1
COUNT = [0]
def step(x):
    COUNT[0] += 1
    Shade.fresh = COUNT[0]
    number = Shade.fresh
    del Shade.fresh
    return number, Shade.DARK, x + 1
""",
    "calls of cached functions count once": """
import functools
CALLS = {'n': 0}
@functools.lru_cache(maxsize=2)
def cached(n, k=1):
    CALLS['n'] += 10
    return n * n + k
@functools.lru_cache(maxsize=None)
def unbounded(n):
    return n * 2
@functools.lru_cache(typed=True)
def typed(n):
    return n * 2
def step(x):
    y = x * cached(x.shape[0]) + cached(3, k=2) + cached(x.dim()) + cached(CALLS['n'])
    y = y + unbounded(4) + typed(1) + typed(True) + typed(1.0)
    infos = cached.cache_info(), unbounded.cache_info(), typed.cache_info(), CALLS['n']
    cached.cache_clear()
    return y, infos
""",
    "entries of dictionaries that fill in what is missing": """
class Filling(dict):
    def __missing__(self, key):
        self[key] = 1
        return 1
filling = Filling(a=5)
def step(x):
    return filling.pop('a', None), x + 1
""",
    "elements of a list that crosses a break are guarded": """
outside = filter(None, [0, 1])
def step(x):
    log = [x.numel()]
    repr(outside)
    log.append(outside)
    log.append(f'{log!r}')
    return log[0], x + 1
#HISTORY
r0 = step(x0)
r1 = step(torch.ones(4, 3))
""",
    "defaults that a function lacks": """
def many(first, *, only):
    return first + only
def step(x):
    try:
        return many(1), x + 1
    except TypeError as error:
        return str(error), x + 1
#HISTORY
r0 = step(x0)
many.__kwdefaults__ = {'only': 1}
r1 = step(x0)
""",
    "equal methods of literals, the length of an array without dimensions, counting from True": """
import itertools, numpy
array = numpy.array(1)
def step(x):
    try:
        len(array)
    except TypeError as error:
        words = str(error)
    return 'abc'.upper == 'abc'.upper, 'abc'.upper == 'abc'.lower, words, next(itertools.count(True)), x + 1
""",
    "division by a number that varies and becomes zero": """
def step(x, n, divide=lambda n: 6 // n):
    try:
        return divide(n), x + 1
    except ZeroDivisionError as error:
        return str(error), x + 1
#HISTORY
r0 = step(x0, 1)
r1 = step(x0, 2)
r2 = step(x0, 0)
r3 = step(x0, 3)
r4 = step(x0, 1, lambda n: 6 / n)
r5 = step(x0, 2, lambda n: 6 / n)
r6 = step(x0, 0, lambda n: 6 / n)
r7 = step(x0, 1, lambda n: 6 % n)
r8 = step(x0, 0, lambda n: 6 % n)
r9 = step(x0, 3, lambda n: n ** -1)
r10 = step(x0, 0, lambda n: n ** -1)
r11 = step(x0, 0, lambda n: divmod(6, n))
""",
    "a name that lets go of an object inside try": """
import weakref
class Watched:
    pass
def step(x):
    one = Watched()
    reference = weakref.ref(one)
    try:
        del one
        y = x + 1
    except ValueError:
        y = x
    return reference() is None, y
""",
    "arguments that builtin classes refuse": """
import collections, functools, itertools, operator
def step(x):
    log = []
    for call in (
        lambda: operator.itemgetter(), lambda: operator.itemgetter(0)(), lambda: operator.itemgetter(0)([1], 2),
        lambda: operator.attrgetter(3), lambda: operator.attrgetter('a', k=2), lambda: operator.methodcaller(),
        lambda: operator.methodcaller(3), lambda: operator.methodcaller('a')(), lambda: functools.partial(),
        lambda: itertools.count('a'), lambda: slice(), lambda: property(1, 2, 3, 4, 5), lambda: bool(1, 2),
        lambda: collections.deque(1, 2, 3), lambda: set(1, 2), lambda: frozenset(1, 2), lambda: object(1),
    ):
        try:
            log.append(type(call()).__name__)
        except TypeError as error:
            log.append(str(error))
    try:
        super()
    except RuntimeError as error:
        log.append(str(error))
    return log, x + 1
""",
    "going on over a subclass of list reads past its methods": """
class Loud(list):
    def __init__(self, *values):
        super().__init__(values)
        self.reads = 0
    def __getitem__(self, index):
        self.reads += 1
        return 7
loud = Loud(1, 2, 3)
def step(x):
    log = []
    for v in loud:
        print(v)
        log.append(v)
    return x * 2, loud.reads, log
""",
    "super() refuses objects of other classes": """
class A: pass
class B(A): pass
class C: pass
def step(x, v=3):
    log = []
    for ask in (
        lambda: super(B, v), lambda: super(B, A()), lambda: super(B, C), lambda: super(B, B()),
        lambda: super(A, B), lambda: super(A, B()),
    ):
        try:
            log.append(type(ask()).__name__)
        except TypeError as error:
            log.append(str(error))
    return x * 2, log
""",
    "buffers refuse what is not a tensor": """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('total', torch.zeros(3))
net = Net()
def step(x):
    log = []
    try:
        net.total = 3
    except TypeError as error:
        log.append(str(error))
    net.total = None
    net.total = x.sum(0)
    return x * 2, log
""",
    "type itself has no annotations": """
def step(x):
    return x + 1, hasattr(type, '__annotations__'), hasattr(int, '__annotations__'), getattr(type, '__doc__')[:4]
""",
    "errors of NumPy keep what they hold": """
import numpy
number = numpy.float64(1.5)
def step(x):
    log = []
    for other in ((1, 'a'), 'text', None, [1]):
        for ask in (lambda: number < other, lambda: number + other, lambda: other - number):
            try:
                log.append(repr(ask()))
            except Exception as error:
                log.append(str(error)[:60])
    return x + 1, log
""",
    "deques refuse to change under an iterator": """
from collections import deque
line = deque([1, 2, 3], maxlen=3)
def step(x):
    log = []
    for change in (
        lambda: line.append(4), lambda: line.extend([]), lambda: line.rotate(1), lambda: line.__setitem__(0, 9),
        lambda: line.pop(), lambda: line.reverse(), lambda: line.insert(1, 7), lambda: line.clear(),
    ):
        try:
            for value in line:
                log.append(value)
                change()
                if len(log) > 40:
                    break
        except RuntimeError as error:
            log.append(str(error))
    line.extend((1, 2, 3))
    return x + 1, log, list(line)
""",
    "deque across a break": """
from collections import deque
def step(x):
    line = deque([1, 2, 3])
    log = []
    for value in line:
        print(value)
        log.append(value)
    return x + 1, log
""",
    "dictionaries that grew before a loop that breaks": """
table = {'a': 1}
def step(x):
    log = []
    table['b'] = len(table)
    table['a'] = 5
    for key, value in table.items():
        print(key)
        log.append((key, value))
    return x + 1, log
""",
    "subclasses of int that vary": """
class Whole(int):
    def __add__(self, other):
        return Whole(int(self) + int(other) + 1)
natural = Whole(4)
area = 6
def step(x):
    n = natural + area
    return x + n, n * 2, int(n), n
#HISTORY
r0 = step(x0)
natural = Whole(7)
r1 = step(x0)
natural = Whole(9)
r2 = step(x0)
""",
    "int() of a subclass of int that varies": """
class Whole(int): pass
natural = Whole(4)
def step(x):
    return x + int(natural), int(natural)
#HISTORY
r0 = step(x0)
natural = Whole(7)
r1 = step(x0)
""",
}


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_does_as_plain_python_does(name):
    module, _, history = PROGRAMS[name].partition("#HISTORY\n")
    statements = tuple(history.splitlines())
    assert (difference_of(module, statements) if statements else difference_of(module)) == ""


def test_a_large_cache_counts_calls_as_plain_python_does():
    @functools.lru_cache(maxsize=2000)
    def doubled(number):
        return number * 2.0

    for number in range(1000):
        doubled(number)
    run = plumbline.compile(lambda x: x * doubled(3), backend="eager")
    run(torch.ones(2))
    before = doubled.cache_info().hits
    run(torch.ones(2))
    assert doubled.cache_info().hits == before + 1
