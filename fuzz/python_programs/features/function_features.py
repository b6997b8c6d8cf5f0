"""Functions: closures, decorators, generators, comprehensions, assignments, pattern matching, arguments."""

from ..grammar import Feature

_GENERATORS = """
def steps(start, log):
    total = start
    try:
        while total < 12:
            sent = yield total
            total += sent if sent else 2
            log.append(total)
    except ValueError as error:
        log.append(str(error))
        yield -1
    return total


def outer_steps(start, log):
    result = yield from steps(start, log)
    log.append(('result', result))
    yield 100
"""

FUNCTION_FEATURES: tuple[Feature, ...] = (
    Feature(
        "closures",
        setup="""
def counter(start=0):
    count = start
    def bump(step=1):
        nonlocal count
        count += step
        return count
    def peek():
        return count
    return bump, peek


bump, peek = counter(3)


def adders(n):
    return [lambda t: t + i for i in range(n)]


def keep(t, seen=[]):
    seen.append(t.shape[0])
    return t * len(seen)
""",
        expressions="""
int: bump()
int: peek()
int: bump(<int>)
func: adders(3)[<k> % 3]
func: keep
tensor: keep(<tensor>)
int: counter(<int>)[0]()
""",
        statements="""
<+func> = (lambda t, *, c=<int>: t + c + <int>)

<+ifunc>, <+ifunc> = counter(<int>)
log.append((<$ifunc>(), <$ifunc>()))

def <+func>(t, scale=<float>):
    <function>
    return t * scale + len(log)

<+int> = <int>
def <+func>(t):
    <function>
    return t + <$int>

log.append(keep.__defaults__[0][-2:])
""",
        changes="""
bump()
bump, peek = counter(10)
keep.__defaults__ = ([7],)
bump.__closure__[0].cell_contents = 20
""",
    ),
    Feature(
        "decorators",
        setup="""
import functools
CALLS = {'n': 0}


def noted(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        CALLS['n'] += 1
        return function(*args, **kwargs) * 2
    return wrapper


def scaled(by):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(t, *rest):
            return function(t * by, *rest)
        wrapper.by = by
        return wrapper
    return decorate


@noted
def double(t):
    return t + 1


@scaled(by=3)
@noted
def triple(t, extra=0):
    return t + extra


@functools.lru_cache(maxsize=None)
def cached(n):
    CALLS['n'] += 10
    return n * n


part = functools.partial(triple, extra=2)
""",
        expressions="""
tensor: double(<tensor>)
tensor: triple(<tensor>)
tensor: triple(<tensor>, <int>)
tensor: part(<tensor>)
tensor: double.__wrapped__(<tensor>)
func: part
func: double
func: functools.partial(torch.add, <tensor>)
int: cached(<int>)
int: CALLS['n']
float: triple.by
str: triple.__name__
int: functools.reduce(lambda a, b: a * 2 + b, <ints>, <int>)
""",
        statements="""
log.append(tuple(cached.cache_info()))

@scaled(<float>)
def <+func>(t):
    <function>
    return t - 1
""",
        changes="""
CALLS['n'] = 0
cached.cache_clear()
triple.by = 5
part = functools.partial(double)
double.note = 1
""",
    ),
    Feature(
        "marks",
        setup="""
import functools
MARKED = []


def counting(function):
    @functools.wraps(function)
    def wrapper(*args):
        MARKED.append(function.__name__)
        return function(*args) * 10
    return wrapper


@disable
def outside(t):
    MARKED.append('outside')
    return t + 1


@compiled
def inside(t):
    MARKED.append('inside')
    return t + 2


@counting
@disable
def wrapped_outside(t):
    return t + 3


@counting
@compiled
def wrapped_inside(t):
    return t - 3


@counting
@shallow_disable
def wrapped_shallow(t):
    return t - 4


@disable
@counting
def outside_wrapped(t):
    graph_break()
    return t - 5
""",
        expressions="""
tensor: outside(<tensor>)
tensor: inside(<tensor>)
tensor: wrapped_outside(<tensor>)
tensor: wrapped_inside(<tensor>)
tensor: wrapped_shallow(<tensor>)
tensor: outside_wrapped(<tensor>)
func: wrapped_inside
func: wrapped_shallow
func: outside
""",
        statements="""
graph_break()

log.append(len(MARKED))

<=tensor> = [f(<tensor>) for f in (outside, inside, wrapped_outside)][-1]
""",
        changes="""
MARKED.clear()
inside = outside
""",
    ),
    Feature(
        "generators",
        setup=_GENERATORS,
        expressions="""
ints: list(steps(<int>, log))
ints: [v for v in outer_steps(<int>, log) if v % 2 == 0]
int: next(steps(<int>, log))
int: sum(v for v in steps(<int> + 5, log))
gen: steps(<int>, log)
gen: outer_steps(<int>, log)
gen: (v + <int> for v in <ints>)
gen: iter(<ints>)
""",
        statements="""
<+gen> = <gen>
log.append(next(<$gen>, None))

<+gen> = steps(<int>, log)
log.append(next(<$gen>, 'done'))
<body>
log.append(next(<$gen>, 'done'))

<+sentgen> = outer_steps(<int>, log)
log.append(next(<$sentgen>))
try:
    log.append(<$sentgen>.send(<int>))
    <body>
    log.append(<$sentgen>.throw(ValueError('thrown')))
except (StopIteration, RuntimeError) as error:
    log.append(repr(error))

<+gen> = steps(<int>, log)
next(<$gen>, None)
<$gen>.close()

for <+int> in <gen>:
    <body>

log.append(list(<$gen>))

<+tensors> = [t for t in (<tensor> * v for v in <ints>)]

try:
    next(<$gen>)
except StopIteration as stop:
    log.append(stop.value)
""",
    ),
    Feature(
        "made_generators",
        setup="""
def ticking(t):
    for i in range(3):
        print('tick', i)
        t = t + 1
        yield t, i


KEPT = ticking(x0)
""",
        expressions="""
tensors: [t for t, i in ticking(<tensor>)]
tensor: next(ticking(<tensor>))[0]
""",
        statements="""
for <+tensor>, <+int> in ticking(<tensor>):
    <body>

log.append(next(KEPT, None))

<=tensor>, <+int> = next(KEPT, (x, 0))
""",
        changes="""
KEPT = ticking(x1)
next(KEPT, None)
""",
    ),
    Feature(
        "assignments",
        expressions="""
int: (lambda *a, **k: len(a) + len(k))(*<ints>, **<table>)
bool: (m := <int>) > 2 and m < 9
tensor: (w := <tensor>) + w
""",
        statements="""
<+int>, *<+ints> = [<int>, *<ints>]

*<+ints>, <+int> = (<int>, <int>, <int>)

(<+int>, [<+int>, <+str>]) = <int>, [<int>, <str>]

<+int> = <+int> = <int>

<=tensor>, <=tensor> = <tensor>, <tensor>

if (<+int> := <int>) % 2:
    <body>

<+int> = <int>
<$int> **= 2
<$int> %= 11
<$int> -= <int>
<$int> |= 4

<+tensor> = <tensor>
<$tensor> += <tensor>

<+tensor> = <tensor>.clone()
<$tensor> -= 1
<$tensor> *= 2

<$tensor>[<k> % 2], <$tensor>[0] = <float>, <float>

while (<+int> := len(log)) < 6:
    log.append(<int>)
    <body>

assert <int> < 100, <str>
""",
    ),
    Feature(
        "arguments",
        setup="""
def many(first, /, second=2, *rest, only, extra=5, **others):
    return first * second + sum(rest) + only * extra + len(others)


def spread(*args, **kwargs):
    return args, sorted(kwargs.items())


def mixed(t, *more, scale=1.0, **named):
    for one in more:
        t = t + one
    return t * scale + len(named)
""",
        expressions="""
tensor: many(<tensor>, only=<int>)
tensor: many(<tensor>, <int>, *<ints>, only=<float>, **<table>)
tensor: mixed(<tensor>, *<tensors>, scale=<float>)
tensor: mixed(<tensor>, *<ints>, **<table>)
int: many(<int>, second=<int>, only=1)
zoo: spread(*<ints>, **<table>)
int: len(spread(*<tensors>, *<ints>, z=1)[0])
str: repr(spread(*<ints>, **<table>))
""",
        statements="""
log.append(spread(*<ints>, <int>, q=<str>, **<table>))

try:
    log.append(many(*<ints>))
except TypeError as error:
    log.append(str(error))
    <body>

try:
    log.append(spread(**<table>, **<table>))
except TypeError as error:
    log.append(str(error))
""",
        changes="""
many.__kwdefaults__ = {'extra': 7, 'only': 1}
mixed.__kwdefaults__['scale'] = 2.0
many.__defaults__ = (9,)
""",
    ),
    Feature(
        "patterns",
        setup="""
import dataclasses


@dataclasses.dataclass
class Spot:
    a: int
    b: object = None


def sort_of(value):
    match value:
        case int() | float() as number if number > 2:
            return f'big {number}'
        case 0:
            return 'zero'
        case [first, *rest]:
            return ('list', first, len(rest))
        case {'a': inner, **rest}:
            return ('dict', inner, sorted(rest))
        case Spot(a=1, b=[_, other]):
            return ('spot', other)
        case Spot(a, b):
            return ('any spot', a)
        case str(text):
            return text[::-1]
        case torch.Tensor(shape=[rows, _]):
            return ('tensor', rows)
        case None | True | False:
            return 'constant'
        case _:
            return type(value).__name__
""",
        expressions="""
zoo: Spot(<int>, <zoo>)
zoo: sort_of(<zoo>)
""",
        statements="""
log.append(sort_of(<zoo>))

log.append(sort_of(<table>))

log.append(sort_of(<ints>))

log.append(sort_of(Spot(<int>, [<int>, <str>])))

log.append(sort_of(<tensor>))

match <ints>:
    case [<+int>, *_]:
        <body>
    case _:
        <body>

match (<int>, <str>):
    case (0 | 1, <+str>):
        <body>
    case (<+int>, _) if <bool>:
        <body>
""",
        changes="""
Spot.__match_args__ = ('b', 'a')
""",
    ),
    Feature(
        "comprehensions",
        expressions="""
ints: [a + b for a in <ints> for b in range(a % 3) if b]
table: {w: [v for v in <ints>][0] if <ints> else 0 for w in 'ab'}
int: len({(v, w) for v in <ints> for w in <str>})
tensors: [t + i for i, t in enumerate(<tensors>) if i < 3]
int: sum(1 for t in <tensors> if t.dim() == 2)
str: ''.join(sorted(c for c in <str> if c.isalpha()))
bool: any(t is x for t in <tensors>)
tensors: [*map(<func>, <tensors>)]
ints: list(filter(None, <ints>))
int: next((v for v in <ints> if v > 1), <k>)
ints: [(lambda: v)() for v in <ints>]
ints: [f() for f in [lambda v=v: v + 1 for v in <ints>]]
zoo: [[j for j in range(i)] for i in <ints>[:3]]
zoo: dict(zip(<str>, <tensors>))
""",
        statements="""
<=tensors> = [t * v for t, v in zip(<tensors>, <ints>) if (t.sum() > 0.37)]

log.append([<str> for _ in range(<k>)])

log.append({k: v.shape for k, v in zip('ab', <tensors>)})
""",
    ),
    Feature(
        "namespaces",
        setup="""
TOTAL = 0
NAMES = []


def add_up(n):
    global TOTAL
    TOTAL += n
    NAMES.append(n)
    return TOTAL


def shadow(max):
    return max + 1
""",
        expressions="""
int: add_up(<int>)
int: TOTAL
int: shadow(<int>)
int: globals()['TOTAL']
int: len(NAMES)
bool: 'TOTAL' in globals()
""",
        statements="""
globals()['TOTAL'] = <int>

NAMES.append(<str>)

log.append(list(NAMES)[-2:])

add_up(<int>)
print('total', TOTAL)
add_up(1)

if 'LATER' in globals():
    log.append(LATER)
""",
        changes="""
TOTAL = 50
TOTAL += 1
NAMES = NAMES + ['new']
LATER = 4
max = lambda *a, **k: 42
len = lambda value: 9
del NAMES[:]
""",
    ),
    Feature(
        "recursion",
        setup="""
def fact(n):
    return 1 if n <= 1 else n * fact(n - 1)


def walk(tree, depth=0):
    if isinstance(tree, (list, tuple)):
        return sum(walk(part, depth + 1) for part in tree)
    return depth * tree


def even(n):
    return True if n <= 0 else odd(n - 1)


def odd(n):
    return False if n <= 0 else even(n - 1)
""",
        expressions="""
int: fact(<int> % 6)
tensor: walk([<tensor>, [<tensor>, (<tensor>,)]])
int: walk([<int>, [<int>, <ints>]])
bool: even(<int>)
""",
        statements="""
log.append(walk((<tensors>, [<int>])))
""",
        changes="""
fact = lambda n: n + 1
odd = lambda n: None
""",
    ),
    Feature(
        "coroutines",
        setup="""
class Awaited:
    def __init__(self, value):
        self.value = value
    def __await__(self):
        got = yield self.value
        return got


async def doubled(value, log):
    try:
        got = await Awaited(value)
        log.append(('got', got))
        return value * 2
    finally:
        log.append('done')


def run(coroutine, reply):
    try:
        coroutine.send(None)
        coroutine.send(reply)
    except StopIteration as stop:
        return stop.value
    return None
""",
        expressions="""
tensor: run(doubled(<tensor>, log), <int>)
int: run(doubled(<int>, log), <str>)
""",
        statements="""
log.append(run(doubled(<str>, log), <int>))
""",
    ),
    Feature(
        "more_patterns",
        setup="""
import dataclasses
import enum


class Suit(enum.Enum):
    HEARTS = 'h'
    SPADES = 's'


@dataclasses.dataclass
class Leaf:
    value: object


@dataclasses.dataclass
class Branch:
    left: object
    right: object


class Loose:
    __match_args__ = ('a', 'b')

    def __init__(self, a, b):
        self.a, self.b = a, b


LIMIT = 3


class Limits:
    LOW = 1


def classify(value):
    match value:
        case 'a' | 'b' as letter:
            return ('letter', letter)
        case Limits.LOW:
            return 'low'
        case bool(flag):
            return ('bool', flag)
        case -1 | 2 + 3j | 2.5:
            return 'number'
        case int(number) if number > LIMIT:
            return ('large', number)
        case []:
            return 'empty'
        case [Leaf(value=inner), *_]:
            return ('leaf first', inner)
        case (int(head), str(tail)) | [str(tail), int(head)]:
            return ('mixed', head, tail)
        case [*_, 0, last]:
            return ('zero before', last)
        case {'kind': 'node', 'children': [first, *others]}:
            return ('node', first, len(others))
        case {'kind': Suit() as suit, **others}:
            return (suit, sorted(others))
        case {}:
            return 'mapping'
        case Branch(Leaf(one), Branch(left=Leaf(two))):
            return ('deep', one, two)
        case Branch(left=a, right=b):
            return ('branch', type(a).__name__, type(b).__name__)
        case Loose(1, b=inner):
            return ('loose one', inner)
        case Loose(a):
            return ('loose', a)
        case torch.Tensor(ndim=2, shape=(rows, columns)) if rows < columns:
            return ('wide', rows)
        case torch.Tensor() as t:
            return ('tensor', t.ndim)
        case None:
            return 'none'
        case _ if callable(value):
            return 'callable'
    return 'nothing'
""",
        expressions="""
zoo: classify(<zoo>)
zoo: classify(<int>)
zoo: classify(<str>)
zoo: classify(<ints>)
zoo: classify((<int>, <str>))
zoo: classify([<str>, <int>])
zoo: classify(<table>)
zoo: classify({'kind': 'node', 'children': <ints>})
zoo: classify({'kind': Suit.SPADES, 'x': <int>})
zoo: classify(Branch(Leaf(<int>), Branch(Leaf(<str>), None)))
zoo: classify(Branch(<zoo>, <zoo>))
zoo: classify([Leaf(<tensor>), <int>])
zoo: classify(Loose(<int>, <zoo>))
zoo: classify(<tensor>)
zoo: classify(<func>)
zoo: classify(<bool>)
zoo: classify([<int>, 0, <int>])
zoo: classify(<float>)
""",
        statements="""
match <table>:
    case {'a': <+int>, **rest} if rest:
        <body>
    case {'a': int() | float() as <+int>}:
        <body>
    case _:
        <body>

match <tensors>:
    case [only]:
        log.append(only)
    case [first, second, *rest]:
        log.append(len(rest))

match <str>.split():
    case ['go', (('north' | 'south') as direction)]:
        log.append(direction)
    case [word] | [word, _]:
        log.append(word)
    case other:
        log.append(other)

match <int>, <bool>:
    case (0, _) | (_, True):
        <body>
    case n, False if n > 1:
        <body>

try:
    match Loose(1, 2):
        case Loose(1, 2, 3):
            <body>
except TypeError as error:
    log.append(str(error))
""",
        changes="""
LIMIT = 0
Limits.LOW = 2
Loose.__match_args__ = ('b',)
Leaf = Loose
del Loose.__match_args__
""",
    ),
    Feature(
        "walrus",
        setup="""
def halves(n):
    steps = []
    while (n := n // 2) > 0:
        steps.append(n)
    return steps
""",
        expressions="""
ints: halves(<int>)
ints: [square for v in <ints> if (square := v * v) > 1]
int: (kept_int := <int>) + kept_int
bool: any((witness := v) > 2 for v in <ints>)
tensor: (kept_tensor := <tensor>) * kept_tensor.sum()
zoo: {(key_of := 'k' + str(v)): key_of for v in <ints>}
zoo: [total := 0, [total := total + v for v in <ints>]][1]
str: f'{(shown := <int>)}{shown:>3}'
""",
        statements="""
if (size_of := len(<ints>)) > 1 and (half_of := size_of // 2):
    log.append((size_of, half_of))
    <body>

while (left_over := 5 - len(log)) > 0:
    log.append(left_over)
    <body>

log.append((lambda: (inner := <int>) * inner)())

if not (found_tensor := <tensor>).requires_grad:
    log.append(found_tensor.sum())
""",
    ),
)
