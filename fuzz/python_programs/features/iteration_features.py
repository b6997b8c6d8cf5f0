"""Iteration and functions over functions: itertools, generators that are sent to and dropped, functools, contextlib."""

from ..grammar import Feature

ITERATION_FEATURES: tuple[Feature, ...] = (
    Feature(
        "iterator_tools",
        setup="""
import itertools
import operator
shared_source = iter([10, 20, 30, 40])
""",
        expressions="""
zoo: [(k, list(g)) for k, g in itertools.groupby(<str>)]
zoo: {k: len(list(g)) for k, g in itertools.groupby(sorted(<ints>), key=lambda v: v % 2)}
zoo: list(itertools.accumulate(<ints>, max))
zoo: list(itertools.accumulate(<ints>, lambda a, b: a * 2 + b, initial=<int>))
zoo: list(itertools.islice(<ints>, <k>, None, 2))
zoo: list(itertools.product('ab', <ints>[:2]))
zoo: list(itertools.combinations_with_replacement(<ints>[:2], 2))
zoo: list(itertools.dropwhile(lambda v: v < 2, <ints>))
zoo: list(itertools.filterfalse(None, <ints>))
zoo: list(itertools.chain(<ints>, <str>, <table>))
zoo: list(itertools.chain.from_iterable(zip(<ints>, <str>)))
zoo: list(itertools.repeat(<int>, <k>))
zoo: list(map(operator.add, <ints>, <ints>))
zoo: list(map(lambda a, b: (a, b), <str>, itertools.count(<int>, <int>)))
tensors: list(itertools.accumulate(<tensors>))
tensors: list(map(torch.add, <tensors>, itertools.repeat(<int>)))
tensor: sum(itertools.islice((x * i for i in itertools.count()), <k>), x)
int: next(shared_source, <int>)
int: sum(itertools.takewhile(lambda v: v < 30, shared_source))
bool: next(itertools.groupby(<ints>), (None,))[0] == <int>
bool: all(itertools.starmap(operator.le, itertools.pairwise(sorted(<ints>))))
""",
        statements="""
<+groups> = itertools.groupby(<ints>)
for <+int>, <+it> in <$groups>:
    log.append(next(<$it>))
    <body>

first_half, second_half = itertools.tee(iter(<ints>))
log.append(next(first_half, None))
<body>
log.append((list(second_half), list(first_half)))

<+it> = itertools.chain([<int>], shared_source)
log.append(next(<$it>))
<body>
log.append(next(<$it>, 'end'))

<+it> = itertools.count(<int>)
log.append([next(<$it>), next(<$it>), repr(<$it>)])

<+it> = iter(<ints>)
for <+int> in <$it>:
    log.append((<$int>, next(<$it>, None)))
    <body>

<+it> = itertools.cycle(<str> or 'z')
log.append([next(<$it>) for _ in range(3)])
<body>
log.append(next(<$it>))

<+it> = itertools.islice(shared_source, 1)
log.append((list(<$it>), next(shared_source, None)))

log.append(list(itertools.zip_longest('ab', <ints>, fillvalue=<str>)))
""",
        changes="""
shared_source = iter([1])
next(shared_source, None)
shared_source = (v * 2 for v in range(5))
""",
    ),
    Feature(
        "sent_generators",
        setup="""
def averaging():
    total, count = 0.0, 0
    value = yield None
    while True:
        if value is None:
            return ('mean', total / max(count, 1))
        total, count = total + value, count + 1
        value = yield total / count


def stubborn(log):
    while True:
        try:
            got = yield len(log)
            log.append(('got', got))
        except ValueError as error:
            log.append(('value', str(error)))
        except GeneratorExit:
            log.append('leaving')
            raise
        finally:
            log.append('turn')


def delegating(log):
    try:
        answer = yield from averaging()
        log.append(answer)
        yield from stubborn(log)
    except KeyError as error:
        log.append(('key', error.args))
        yield 'rescued'
    return 'over'


kept_running = averaging()
next(kept_running)
""",
        expressions="""
float: kept_running.send(<int>)
zoo: [v for v in (averaging(),)][0].__next__()
bool: kept_running.gi_frame is None
""",
        statements="""
<+sentgen> = averaging()
next(<$sentgen>)
log.append(<$sentgen>.send(<int>))
<body>
try:
    <$sentgen>.send(None)
except StopIteration as stop:
    log.append(stop.value)

<+stubgen> = stubborn(log)
log.append(next(<$stubgen>))
log.append(<$stubgen>.send(<str>))
<body>
log.append(<$stubgen>.throw(ValueError(<str>)))
<$stubgen>.close()

<+stubgen> = stubborn(log)
next(<$stubgen>)
try:
    <body>
    <$stubgen>.throw(KeyError(<int>))
except KeyError as error:
    log.append(error.args)
log.append(next(<$stubgen>, 'ended'))

<+delgen> = delegating(log)
next(<$delgen>)
log.append(<$delgen>.send(<int>))
log.append(<$delgen>.send(None))
<body>
log.append(<$delgen>.throw(KeyError('inside')))
log.append(next(<$delgen>, 'over'))

<+delgen> = delegating(log)
next(<$delgen>)
<body>
<$delgen>.close()

try:
    averaging().send(1)
except TypeError as error:
    log.append(str(error))

<+stubgen> = stubborn(log)
<$stubgen>.close()
log.append(next(<$stubgen>, 'never started'))
""",
        changes="""
kept_running = averaging(); next(kept_running)
kept_running.send(7)
""",
    ),
    Feature(
        "dropped_generators",
        setup="""
import contextlib
ENDED = []


def tidy(n, log):
    log.append(('open', n))
    try:
        for i in range(n):
            yield i
    finally:
        log.append(('shut', n))


def managed_steps(log):
    with tidied(log) as number:
        yield number
        yield number + 1


@contextlib.contextmanager
def tidied(log):
    log.append('in')
    try:
        yield 5
    finally:
        log.append('out')


def first_of(log):
    source = tidy(3, log)
    return next(source)


def raising_inside(log):
    source = tidy(4, log)
    next(source)
    raise LookupError('inside')
""",
        expressions="""
int: next(tidy(3, log))
int: next(managed_steps(log))
int: first_of(log)
int: next(v for v in tidy(4, log) if v)
bool: 1 in tidy(5, log)
bool: any(tidy(3, log))
int: next(map(lambda v: v + 1, tidy(2, log)))
""",
        statements="""
for <+int> in tidy(3, log):
    <body>
    break

for <+int>, <+int> in zip([1, 2], tidy(3, log)):
    <body>

<+tidygen> = tidy(3, log)
next(<$tidygen>)
<body>
<$tidygen> = None
log.append('dropped')

<+tidygen> = tidy(2, log)
next(<$tidygen>)
del <$tidygen>
<body>

kept_in = [tidy(2, log)]
next(kept_in[0])
<body>
kept_in.clear()
log.append('cleared')

<+tidygen> = tidy(3, ENDED)
next(<$tidygen>)
<body>
log.append(len(ENDED))

try:
    raising_inside(log)
except LookupError as error:
    <body>
    log.append('caught')
log.append('after')

<+manager> = tidied(log)
log.append(<$manager>.__enter__())
<body>
del <$manager>

for <+int> in managed_steps(log):
    if <bool>:
        break
    <body>
""",
        changes="""
ENDED.clear()
""",
    ),
    Feature(
        "length_hints",
        setup="""
import operator


class Hinted:
    def __init__(self, values):
        self.values = values

    def __iter__(self):
        return iter(self.values)

    def __length_hint__(self):
        return 10


class Measured:
    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index >= self.size:
            raise IndexError('beyond')
        return index * 3


hinted = Hinted([1, 2])
by_index = Measured(3)
""",
        expressions="""
ints: list(hinted)
ints: [*hinted, *by_index]
ints: list(by_index)[::-1]
ints: list(reversed(by_index))
int: operator.length_hint(hinted, 5)
int: operator.length_hint(<ints>)
int: sum(tuple(by_index))
bool: 3 in by_index
bool: bool(by_index)
zoo: sorted(hinted, reverse=True)
""",
        statements="""
<+int>, *<+ints> = by_index

<+ints> = []
<$ints>.extend(hinted)
<$ints> += hinted
log.append(<$ints>)

for <+int> in by_index:
    <body>

try:
    log.append(list(enumerate(Hinted(<ints>), <int>)))
except TypeError as error:
    log.append(str(error))
""",
        changes="""
hinted.values = [4]
by_index.size = 0
by_index = Measured(2)
Hinted.__length_hint__ = lambda self: NotImplemented
""",
    ),
    Feature(
        "partial_functions",
        setup="""
import functools
import operator
TRACE = []


def scale_by(t, by=2, *, plus=0):
    TRACE.append(by)
    return t * by + plus


twice = functools.partial(scale_by, by=2)
shifted = functools.partial(twice, plus=3)


class Dial:
    def __init__(self, at):
        self.at = at

    def turn(self, t, by):
        self.at += by
        return t + self.at

    left = functools.partialmethod(turn, -1)
    right = functools.partialmethod(turn, by=1)

    @functools.cached_property
    def slow(self):
        TRACE.append('slow')
        return self.at * 100

    @functools.singledispatchmethod
    def take(self, value):
        return ('any', value)

    @take.register
    def _(self, value: int):
        return ('int', value + self.at)

    @take.register(list)
    def _(self, value):
        return ('list', len(value))


@functools.singledispatch
def shape_of(value):
    raise TypeError('no shape')


@shape_of.register(torch.Tensor)
def _(value):
    return tuple(value.shape)


@shape_of.register(list)
@shape_of.register(tuple)
def _(value):
    return (len(value),)


dial = Dial(1)
""",
        expressions="""
tensor: twice(<tensor>)
tensor: shifted(<tensor>, by=<int>)
tensor: dial.left(<tensor>)
tensor: dial.right(<tensor>)
tensor: functools.reduce(operator.add, <tensors>, x)
int: dial.slow
int: dial.at
int: functools.reduce(operator.mul, <ints>, 1)
int: len(TRACE)
zoo: dial.take(<int>)
zoo: dial.take(<ints>)
zoo: dial.take(<str>)
zoo: shape_of(<tensor>)
zoo: shape_of(<ints>)
zoo: shifted.keywords
zoo: twice.args
bool: shape_of.dispatch(bool) is shape_of.dispatch(object)
func: shifted
func: functools.partial(dial.turn, by=<int>)
ints: sorted(<ints>, key=functools.cmp_to_key(lambda a, b: (a > b) - (a < b)))
str: scale_by.__name__ + twice.func.__name__
""",
        statements="""
dial.at = <int>

log.append('slow' in dial.__dict__)

dial.__dict__.pop('slow', None)

try:
    log.append(shape_of(<int>))
    <body>
except TypeError as error:
    log.append(str(error))

try:
    log.append(functools.reduce(operator.add, []))
except TypeError as error:
    log.append(str(error))

@functools.lru_cache(maxsize=2)
def remembered(n):
    log.append(('computed', n))
    return n + 1
log.append([remembered(1), remembered(<int>), remembered(1)])
log.append(remembered.cache_info().hits)

@functools.wraps(scale_by)
def wrapped_scale(*args, **kwargs):
    return scale_by(*args, **kwargs)
log.append((wrapped_scale.__name__, wrapped_scale.__wrapped__ is scale_by))
""",
        changes="""
twice = functools.partial(scale_by, by=5)
shifted.keywords['plus'] = 7
dial = Dial(4)
Dial.left = lambda self, t: t - 100
shape_of.register(int, lambda value: ())
TRACE.clear()
scale_by.__kwdefaults__ = {'plus': 11}
""",
    ),
    Feature(
        "operator_module",
        setup="""
import operator
get_pair = operator.itemgetter('a', 'b')
upper = operator.methodcaller('upper')
""",
        expressions="""
tensor: operator.mul(<tensor>, <float>)
tensor: operator.matmul(<tensor>, <tensor>.t()).sum() + x
tensor: operator.neg(<tensor>)
tensor: operator.getitem(<tensor>, (slice(None), 0))
tensor: operator.itemgetter(slice(0, 1))(<tensor>)
int: operator.countOf(<ints>, <int>)
int: operator.indexOf([0, 1, 2, <int>], <k> % 3)
int: operator.xor(<int>, <int>)
int: operator.call(len, <ints>)
int: operator.truth(<ints>) + operator.not_(<int>)
bool: operator.contains(<ints>, <int>)
bool: operator.is_(<tensor>, x)
bool: operator.lt(<int>, <int>)
str: upper(<str>)
str: operator.concat(<str>, <w>)
zoo: get_pair({'a': <int>, 'b': <tensor>})
zoo: operator.attrgetter('shape', 'ndim')(<tensor>)
""",
        statements="""
<+ints> = [1, 2, 3]
operator.setitem(<$ints>, 0, <int>)
operator.delitem(<$ints>, slice(1, 2))
log.append(operator.iconcat(<$ints>, [<int>]) is <$ints>)

<+tensor> = <tensor>.clone()
log.append(operator.iadd(<$tensor>, <int>) is <$tensor>)

try:
    log.append(get_pair(<table>))
    <body>
except KeyError as error:
    log.append(error.args)

try:
    log.append(operator.attrgetter('nothing')(<int>))
except AttributeError as error:
    log.append(str(error))
""",
        changes="""
get_pair = operator.itemgetter('a')
upper = operator.methodcaller('replace', 'a', 'q')
""",
    ),
    Feature(
        "context_stacks",
        setup="""
import contextlib


class Door:
    def __init__(self, name, log, fails=''):
        self.name, self.log, self.fails = name, log, fails

    def __enter__(self):
        self.log.append('open ' + self.name)
        if self.fails == 'enter':
            raise OSError('stuck')
        return self.name

    def __exit__(self, kind, error, trace):
        self.log.append((self.name, kind and kind.__name__))
        if self.fails == 'exit':
            raise OSError('jammed')
        return self.fails == 'quiet'

    def close(self):
        self.log.append('closed ' + self.name)


@contextlib.contextmanager
def counted(log):
    log.append(len(log))
    yield log
    log.append('counted')


@counted([])
def as_decorator(t):
    return t * 2


class Decorating(contextlib.ContextDecorator):
    def __enter__(self):
        return self

    def __exit__(self, *details):
        return False


@Decorating()
def as_class_decorator(t):
    return t - 2
""",
        expressions="""
tensor: as_decorator(<tensor>)
tensor: as_class_decorator(<tensor>)
""",
        statements="""
try:
    with contextlib.ExitStack() as <+stack>:
        log.append(<$stack>.enter_context(Door('a', log)))
        <$stack>.push(Door('b', log, <w>))
        <$stack>.callback(log.append, ('late', <int>))
        <body>
        raise IndexError(<int>)
except (IndexError, OSError) as error:
    log.append((type(error).__name__, type(error.__context__).__name__))

with contextlib.ExitStack() as <+stack>:
    for name_of in 'xy':
        <$stack>.enter_context(Door(name_of, log))
    moved_stack = <$stack>.pop_all()
    <body>
moved_stack.close()

with contextlib.closing(Door('c', log)) as <+door>:
    <body>

with contextlib.suppress(ZeroDivisionError, OSError):
    <body>
    with Door('d', log, 'exit'):
        log.append(1 // <int>)

try:
    with Door('e', log), Door('f', log, 'enter'):
        <body>
except OSError as error:
    log.append(str(error))

with Door('g', log, 'quiet') as <+str>:
    <body>
    raise KeyError(<str>)

with counted(log) as <+list>, contextlib.nullcontext(3) as <+int>:
    <body>

try:
    with counted(log):
        raise ValueError('lost')
except ValueError as error:
    log.append(repr(error))

for name_of in 'pq':
    with Door(name_of, log):
        if <bool>:
            continue
        <body>

try:
    with <int>:
        pass
except (TypeError, AttributeError) as error:
    log.append(str(error))
""",
        changes="""
Door.__exit__ = lambda self, *details: None
Door.close = lambda self: None
""",
    ),
    Feature(
        "async_free_coroutines",
        setup="""
import types


class Later:
    def __init__(self, log):
        self.log = log

    def __await__(self):
        self.log.append('waiting')
        answer = yield 'ask'
        return answer

    async def __aenter__(self):
        self.log.append('aenter')
        return await self

    async def __aexit__(self, *details):
        self.log.append('aexit')


async def waits(log, t):
    async with Later(log) as first:
        log.append(first)
    try:
        second = await Later(log)
    finally:
        log.append('end')
    return t * second


async def counts(log):
    total = 0
    async for value in ticks(log):
        total += value
    return total


async def ticks(log):
    for i in range(3):
        log.append(i)
        yield i


def drive(coroutine, *answers):
    try:
        coroutine.send(None)
        for answer in answers:
            coroutine.send(answer)
    except StopIteration as stop:
        return stop.value
    coroutine.close()
    return x0
""",
        expressions="""
tensor: drive(waits(log, <tensor>), <int>, <int>)
tensor: drive(waits(log, <tensor>), <int>)
int: drive(counts(log))
""",
        statements="""
<+coroutine> = waits(log, <tensor>)
log.append(<$coroutine>.send(None))
<body>
try:
    <$coroutine>.throw(ValueError(<str>))
except ValueError as error:
    log.append(str(error))
""",
    ),
)
