"""The standard library: collections, itertools, functools, operator, copying, text, time-free parts of the rest."""

from ..grammar import Feature

LIBRARY_FEATURES: tuple[Feature, ...] = (
    Feature(
        "collections",
        setup="""
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque
queue = deque([1, 2, 3], maxlen=4)
counts = Counter('abca')
groups = defaultdict(list, {'a': [1]})
ordered = OrderedDict(b=2, a=1)
chained = ChainMap({'a': 5}, counts)
tags = {'x', 'y'}
frozen = frozenset([1, 2])
""",
        variables={"ordered": "table"},
        expressions="""
int: len(queue)
int: queue[0]
int: counts[<key>]
int: chained[<key>] if <key> in chained else 0
int: len(groups[<key>])
int: sum(queue)
ints: list(queue)
ints: [n for w, n in counts.most_common(2)]
bool: <w> in tags
bool: tags >= {'x'}
bool: <int> in frozen
str: repr(sorted(tags | {<str>}))
str: repr(list(ordered))
str: repr(queue)
zoo: queue
zoo: counts
zoo: groups
zoo: tags
zoo: frozen
zoo: ordered.items()
zoo: groups.keys()
""",
        statements="""
queue.append(<int>)

queue.appendleft(<int>)

queue.rotate(<int>)

log.append(queue.pop() if queue else None)

counts.update(<str>)

counts[<key>] += <int>

groups[<key>].append(<int>)

groups[<key>].append(<tensor>)

ordered.move_to_end('a', last=<bool>)

ordered[<key>] = <int>

tags.add(<str>)

tags.discard(<w>)

tags.symmetric_difference_update({<str>, 'x'})

log.append(dict(counts - Counter(<str>)))

chained[<key>] = <int>

for <+str>, <+int> in list(ordered.items()):
    <body>

for <+int> in list(queue):
    <body>

log.append({**groups})
""",
        changes="""
queue.append(9)
queue = deque([7])
counts.clear()
groups['b'] = [1, 2]
ordered['c'] = 3
tags.add('z')
frozen = frozenset([4])
groups.default_factory = None
ordered = OrderedDict(a=4, b=5)
""",
    ),
    Feature(
        "itertools",
        setup="""
import itertools
import operator
ticket = itertools.count(5)
ring = itertools.cycle([1, 2, 3])
pipe = iter([1, 2, 3, 4, 5, 6])
""",
        expressions="""
int: next(ticket)
int: next(ring)
int: next(pipe, -1)
ints: list(itertools.accumulate(<ints>))
ints: list(itertools.accumulate(<ints>, operator.mul, initial=1))
ints: list(itertools.chain(<ints>, <ints>))
ints: [a - b for a, b in itertools.product(<ints>[:2], repeat=2)]
ints: list(itertools.islice(ticket, 2))
ints: list(itertools.islice(ring, 1, 4, 2))
ints: [len(list(g)) for k, g in itertools.groupby(<ints>, key=lambda v: v % 2)]
ints: [sum(p) for p in itertools.pairwise(<ints>)]
ints: list(itertools.starmap(pow, [(2, 3), (<int>, 2)]))
ints: list(itertools.takewhile(lambda v: v < 3, <ints>))
ints: list(itertools.compress(<ints>, [1, 0, 1]))
ints: [a or b for a, b in itertools.zip_longest(<ints>, <ints>, fillvalue=0)]
ints: [i for i, _ in zip(itertools.count(<int>), 'ab')]
int: len(list(itertools.combinations(<ints>, 2)))
tensors: list(itertools.chain.from_iterable([<tensors>, <tensors>]))
tensor: operator.add(<tensor>, <int>)
tensor: operator.itemgetter(0)(<tensors>) if <tensors> else x
int: operator.itemgetter('a')({'a': <int>})
int: operator.methodcaller('count', <int>)(<ints>)
tensor: operator.attrgetter('T')(<tensor>).t()
int: operator.index(<int>)
tensor: operator.iadd(<tensor>, 1)
zoo: itertools.repeat(<int>, 2)
""",
        statements="""
for <+int>, <+int> in zip(<ints>, ticket):
    <body>

for <+int> in pipe:
    if <bool>:
        break
    <body>

for <+int> in itertools.islice(itertools.count(<int>, 2), 3):
    <body>

<+it> = iter(<ints>)
log.append(list(zip(<$it>, <$it>)))

<+it>, <+it> = itertools.tee(<ints>)
log.append((next(<$it>, 0), list(<$it>)))

log.append(list(itertools.permutations(<ints>[:2])))

<+it> = map(<func>, <tensors>)
log.append(next(<$it>, None))
<body>
log.append(next(<$it>, None))

<+it> = reversed(<ints>)
log.append(next(<$it>, None))

<+it> = enumerate(<tensors>, <int>)
log.append(next(<$it>, None))
<body>
log.append(list(<$it>))

log.append(list(iter(lambda: next(ticket) % 3, 0))[:4])

try:
    log.append(list(zip(<ints>, <ints>, strict=True)))
except ValueError as error:
    log.append(str(error))
""",
        changes="""
next(ticket)
next(ring)
pipe = iter([8, 9])
ticket = itertools.count(100, 3)
""",
    ),
    Feature(
        "functools",
        setup="""
import functools


@functools.singledispatch
def kind_of(value):
    return 'thing'


@kind_of.register
def _(value: int):
    return f'int {value}'


@kind_of.register(list)
def _(value):
    return f'list {len(value)}'


@kind_of.register
def _(value: torch.Tensor):
    return 'tensor'


class Cached:
    def __init__(self, t):
        self.t = t
        self.runs = 0

    @functools.cached_property
    def total(self):
        self.runs += 1
        return self.t * 2

    @functools.lru_cache
    def power(self, n):
        self.runs += 1
        return n ** 2

    def scaled(self, t, by):
        return t * by

    double = functools.partialmethod(scaled, by=2)

    @functools.singledispatchmethod
    def show(self, value):
        return 'any'

    @show.register
    def _(self, value: str):
        return 'str ' + value


cache = Cached(x1)
""",
        expressions="""
tensor: cache.total
tensor: cache.double(<tensor>)
tensor: Cached(<tensor>).total
int: cache.runs
int: cache.power(<int>)
str: kind_of(<zoo>)
str: kind_of(<ints>)
str: kind_of(<tensor>)
str: cache.show(<str>)
str: cache.show(<int>)
func: functools.partial(cache.scaled, by=<int>)
tensor: functools.reduce(torch.add, <tensors>, <tensor>)
ints: sorted(<ints>, key=functools.cmp_to_key(lambda a, b: b - a))
zoo: kind_of
zoo: cache
""",
        statements="""
log.append('total' in vars(cache))

cache.__dict__.pop('total', None)

cache.t = <tensor>

log.append(kind_of(<int>))
""",
        changes="""
cache = Cached(x0)
cache.__dict__.pop('total', None)
kind_of.register(int, lambda value: 'new')
Cached.double = functools.partialmethod(Cached.scaled, by=5)
""",
    ),
    Feature(
        "copying",
        setup="""
import copy
import json
import math
import re
import string
import textwrap
import types
nested = {'list': [1, [2, 3]], 't': x1, 'name': 'n'}
space = types.SimpleNamespace(a=1, t=x0)
WORD = re.compile(r'(?P<head>\\w)(\\w*)')
""",
        expressions="""
zoo: copy.copy(nested)
zoo: copy.deepcopy(nested['list'])
zoo: space
tensor: space.t
tensor: copy.copy(<tensor>)
tensor: copy.deepcopy(nested)['t']
tensor: copy.deepcopy(<tensor>.detach())
int: space.a
int: nested['list'][0]
int: math.gcd(<int>, 6)
int: math.prod(<ints>)
int: math.floor(<float> % 9)
int: math.isqrt(abs(<int>))
float: math.sqrt(abs(<int>))
float: math.pi * <int>
bool: math.isnan(<float>)
float: round(<float> % 5, 1)
int: round(<float> % 5)
int: divmod(<int>, 3)[1]
int: pow(<int>, 2, 7)
int: int(<str>.isdigit())
str: json.dumps(<table>, sort_keys=True)
str: string.Template('$a!').substitute(a=<str>)
str: textwrap.shorten(<str> + ' long text', 8)
str: WORD.sub(r'\\2', <str>)
str: repr([m.group('head') for m in WORD.finditer(<str>)])
str: <str>.encode().hex()
str: <str>.join(['x', 'y'])
str: <str>.partition(' ')[0]
str: <str>.center(5, '*')
str: <str>.title().swapcase()
ints: list(<str>.encode('utf-8'))
ints: json.loads(json.dumps(<ints>))
str: format(<int>, '#x')
str: format(<float> % 9, '+.3e')
str: '%5.1f|%-4s' % (<float> % 9, <str>)
str: f'{<float> % 9:>{<k> + 4}.1f}'
str: ascii(<str> + '\\u00e9')
str: f'{<str>!a}'
str: '%a' % (<str>,)
str: repr(<str>.split())
bool: <str>.startswith(('a', 'b'))
""",
        statements="""
space.a = <int>

space.t = <tensor>

nested['list'].append(<int>)

nested['list'][1][0] = <int>

nested['t'] = <tensor>

<+zoo> = copy.deepcopy(nested)
log.append(<$zoo>)

log.append(WORD.match(<str>) is None)

if (<+match> := WORD.search(<str>)):
    log.append(<$match>.span())
    <body>

log.append(vars(space))

try:
    log.append(json.loads(<str>))
except ValueError as error:
    log.append(str(error))
""",
        changes="""
space.a = 9
space.t = x1
nested['list'] = [0, [0, 0]]
nested['t'] = x0
space.extra = 1
math = types.SimpleNamespace(gcd=lambda a, b: 1, prod=sum, floor=int, isqrt=abs, sqrt=abs, pi=3, isnan=bool)
""",
    ),
    Feature(
        "text_of_tensors",
        expressions="""
str: str(<tensor>.shape)
str: f'{<str>!a}'
str: f'{<tensor>.shape!a:>24}'
str: '%a %r %s' % (<str>, <str>, <str>)
str: repr(<tensor>.size())
str: f'{<tensor>.dtype} {<tensor>.device}'
str: f'{tuple(<tensor>.shape)!s:>8}'
str: f'{<tensor>.sum().item():.1f}'
str: str(<tensor>)
str: repr(<tensor>.stride())
str: '{0.ndim}{0.shape[0]}'.format(<tensor>)
""",
        statements="""
print(<tensor>)

print('shape', <tensor>.shape, sep='=')

print(*<ints>, sep=',', end='.\\n')

log.append(f'{<tensor>}')

log.append('%s' % <tensor>)

print(<tensor>.tolist())
""",
    ),
    Feature(
        "weak_references",
        setup="""
import weakref


class Held:
    def __init__(self, value):
        self.value = value


held = Held(1)
weak = weakref.ref(held)
weak_values = weakref.WeakValueDictionary(a=held)
endings = []
weakref.finalize(held, endings.append, 'gone')
""",
        expressions="""
bool: weak() is held
bool: weak() is None
int: weak().value if weak() is not None else -1
int: len(weak_values)
int: len(endings)
zoo: weak
""",
        statements="""
<+ref> = weakref.ref(<tensor>)
log.append(<$ref>() is not None)

held.value = <tensor>

weak_values[<key>] = held
""",
        changes="""
held = Held(2)
held.value = 5
weak = weakref.ref(held)
""",
    ),
    Feature(
        "numpy",
        setup="""
import numpy
array = numpy.arange(6.0).reshape(2, 3)
scalar = numpy.float64(1.5)
whole = numpy.int64(2)
""",
        expressions="""
tensor: torch.from_numpy(array)
tensor: torch.tensor(array)
tensor: <tensor> + whole
int: int(whole)
int: array.ndim
int: len(array)
float: float(scalar)
float: scalar + <float>
bool: bool((array > <k>).any())
str: repr(array.shape)
str: str(array.dtype)
zoo: array
zoo: scalar
zoo: array.sum(0)
""",
        statements="""
log.append(<tensor>.detach().numpy().sum())

array[0, 0] = <int>

log.append(array[<k> % 2].tolist())

log.append(numpy.maximum(array, <int>))

log.append(array * <int> + 1)

try:
    log.append(array[<int>])
except IndexError as error:
    log.append(str(error))
""",
        changes="""
array[1, 1] = 20
array = numpy.ones((3, 3))
whole = numpy.int64(5)
scalar = numpy.float32(0.5)
""",
    ),
    Feature(
        "randomness",
        setup="""
import random
GENERATOR = torch.Generator().manual_seed(1)
ours = random.Random(3)
""",
        expressions="""
tensor: torch.rand(2, 3)
tensor: torch.randn_like(<tensor>)
tensor: F.dropout(<tensor>, 0.5)
tensor: F.dropout(<tensor>, 0.5, training=<bool>)
tensor: torch.rand(2, 3, generator=GENERATOR)
tensor: torch.bernoulli(torch.full((2, 3), 0.5))
tensor: <tensor>.clone().uniform_()
tensor: x[torch.randperm(x.shape[0])]
int: random.randint(0, 4)
int: ours.randrange(5)
float: random.random()
ints: random.sample(range(9), 3)
ints: torch.randint(0, 5, (3,)).tolist()
""",
        statements="""
torch.manual_seed(<int>)

random.seed(<int>)

random.shuffle(<$ints>)

log.append(ours.choice('abc'))

log.append(torch.rand(()))

<=tensor> = torch.rand(3) + <tensor>
""",
        changes="""
torch.manual_seed(7)
random.seed(2)
ours.seed(4)
GENERATOR.manual_seed(9)
""",
    ),
    Feature(
        "warnings",
        setup="""
import warnings


def warned(t):
    warnings.warn('careful', UserWarning, stacklevel=2)
    return t + 1
""",
        expressions="""
tensor: warned(<tensor>)
""",
        statements="""
warnings.warn(<str>)

with warnings.catch_warnings(record=True) as <+caught>:
    warnings.simplefilter('always')
    <body>
    warned(<tensor>)
log.append(len(<$caught>))

with warnings.catch_warnings():
    warnings.simplefilter('error')
    try:
        <body>
        warned(<tensor>)
    except UserWarning as error:
        log.append(str(error))
""",
        changes="""
warned = lambda t: t - 1
""",
    ),
    Feature(
        "imports",
        setup="""
import sys
import types


def made(**names):
    module = types.ModuleType('fuzzed_part')
    vars(module).update(names)
    return module


class Counting(types.ModuleType):
    def __getattr__(self, name):
        if name != 'gain':
            raise AttributeError(name)
        log_of_asks.append(name)
        return len(log_of_asks)


log_of_asks = []
part = made(gain=2, items=[1, 2])
sys.modules['fuzzed_part'] = part
sys.modules.pop('fuzzed_other', None)
""",
        statements="""
import fuzzed_part
log.append(fuzzed_part.gain)

import fuzzed_part
fuzzed_part.gain = <int>

from fuzzed_part import gain as <+int>

try:
    from fuzzed_part import missing as <+int>
    <body>
except ImportError as error:
    log.append((str(error), error.name))
    <body>

try:
    import fuzzed_other
    <body>
    log.append(fuzzed_other.gain)
except ImportError as error:
    log.append((str(error), error.name))

sys.modules['fuzzed_part'] = made(gain=<int>)

sys.modules['fuzzed_other'] = part

part.gain = <int>

part.missing = <int>

log.append(hasattr(part, 'missing'))
""",
        changes="""
sys.modules['fuzzed_part'] = made(gain=5)
sys.modules['fuzzed_part'] = None
sys.modules.pop('fuzzed_part', None)
sys.modules['fuzzed_part'] = part = Counting('fuzzed_part')
sys.modules['fuzzed_part'] = types.SimpleNamespace(gain=3)
sys.modules['fuzzed_other'] = part
sys.modules.pop('fuzzed_other', None)
part.gain = 7
part.missing = 1
""",
    ),
)
