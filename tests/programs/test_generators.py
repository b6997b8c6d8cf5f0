"""Generators and the iterators of itertools: laziness, send, throw, close, delegation."""

import contextlib
import itertools
import operator

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


@program(A)
def gen_send(a):
    def g():
        total = 0
        while True:
            x = yield total
            if x is None:
                return "done"
            total = total + x

    it = g()
    next(it)
    r = it.send(a)
    r2 = it.send(a)
    try:
        it.send(None)
    except StopIteration as e:
        v = e.value
    return r, r2, v


@program(A)
def gen_throw(a):
    log = []

    def g():
        try:
            yield 1
        except ValueError as e:
            log.append(str(e))
            yield 2
        finally:
            log.append("fin")

    it = g()
    x = next(it)
    y = it.throw(ValueError("boo"))
    z = list(it)
    return a + x + y, log, z


@program(A)
def gen_throw_class(a):
    def g():
        try:
            yield 1
        except KeyError:
            yield 5

    it = g()
    next(it)
    return a * it.throw(KeyError)


@program(A)
def gen_close(a):
    log = []

    def g():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    it = g()
    x = next(it)
    it.close()
    it.close()
    return a + x, log, list(it)


@program(A, graphs=0)
def gen_close_ignored(a):
    def g():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    it = g()
    next(it)
    try:
        it.close()
    except RuntimeError as e:
        return a, str(e)


@program(A)
def yield_from_value(a):
    def inner():
        x = yield 1
        y = yield x
        return y

    def outer():
        r = yield from inner()
        yield r * 2

    o = outer()
    next(o)
    p = o.send(a)
    q = o.send(a + 1)
    return p, q


@program(A)
def yield_from_throw(a):
    log = []

    def inner():
        try:
            yield 1
        except ValueError:
            log.append("inner")
            yield 9

    def outer():
        yield from inner()
        yield from [7]

    o = outer()
    next(o)
    x = o.throw(ValueError("x"))
    return a * x, log, list(o)


@program(A)
def gen_return_value_loop(a):
    def g():
        yield from (i for i in range(3))
        return a * 2

    def h():
        v = yield from g()
        yield v

    return list(h())


@program(A, graphs=0)
def gen_stopiter_runtime(a):
    def g():
        yield 1
        raise StopIteration

    try:
        list(g())
    except RuntimeError as e:
        return a, str(e), type(e.__cause__).__name__


@program(A)
def gen_sum_in(a):
    return (
        a * sum(i for i in range(4)),
        3 in (i for i in range(10)),
        max(i * i for i in range(5)),
        any(i > 3 for i in range(9)),
        sorted((-i for i in range(3))),
    )


@program(A, graphs=0)
def gen_in_stops(a):
    it = iter([1, 2, 3, 4, 5])
    found = 3 in it
    return a, found, list(it)


@program(A, graphs=0)
def gen_just_started_send(a):
    def g():
        yield 1

    it = g()
    try:
        it.send(5)
    except TypeError as e:
        return a, str(e)


@program(A, graphs=0)
def gen_already_executing(a):
    def g():
        yield next(it)

    it = g()
    try:
        next(it)
    except ValueError as e:
        return a, str(e)


@program(A)
def it_chain(a):
    return a * sum(itertools.chain([1, 2], (3,), {4})), list(itertools.chain.from_iterable([[1], [2, 3]]))


@program(A)
def it_count_cycle(a):
    c = itertools.count(5, 2)
    cy = itertools.cycle("ab")
    return a * next(c) * next(c), [next(cy) for _ in range(5)], list(itertools.islice(itertools.count(0.5, 0.5), 3))


@program(A)
def it_accumulate(a):
    return (
        list(itertools.accumulate([a, a, a])),
        list(itertools.accumulate([1, 2, 3], initial=100)),
        list(itertools.accumulate([3, 1, 2], max)),
        list(itertools.accumulate([1, 2, 3], operator.mul, initial=None)),
    )


@program(A, graphs=0)
def it_groupby(a):
    return (
        a,
        [(k, list(g)) for k, g in itertools.groupby("aabbbc")],
        [(k, [x for x in g]) for k, g in itertools.groupby([1, 3, 2, 4], key=lambda v: v % 2)],
    )


@program(A, graphs=0)
def it_pairwise(a):
    return a, list(itertools.pairwise([1, 2, 3])), list(itertools.zip_longest([1, 2], [3], fillvalue=0))


@program(A, graphs=0)
def it_product(a):
    return (
        a,
        list(itertools.product([1, 2], "ab")),
        list(itertools.product([0, 1], repeat=2)),
        list(itertools.permutations([1, 2, 3], 2)),
        list(itertools.combinations(range(4), 2)),
        list(itertools.combinations_with_replacement("ab", 2)),
    )


@program(A, graphs=0)
def it_islice(a):
    return (
        a,
        list(itertools.islice(range(10), 2, 8, 3)),
        list(itertools.islice([1, 2, 3], 2)),
        list(itertools.islice([1, 2, 3], 1, None)),
    )


@program(A, graphs=0)
def it_takedrop(a):
    return (
        a,
        list(itertools.takewhile(lambda v: v < 3, [1, 2, 5, 1])),
        list(itertools.dropwhile(lambda v: v < 3, [1, 2, 5, 1])),
        list(itertools.filterfalse(lambda v: v % 2, range(5))),
        list(itertools.filterfalse(None, [0, 1, 2])),
        list(itertools.compress("abc", [1, 0, 1])),
    )


@program(A, graphs=0)
def it_tee(a):
    x, y = itertools.tee(iter([1, 2, 3]))
    next(x)
    return a, list(x), list(y)


@program(A)
def it_starmap_repeat(a):
    return (
        a * sum(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.repeat(a, 2)),
        list(zip(itertools.repeat(1), [1, 2])),
        list(map(pow, [1, 2], itertools.repeat(2))),
    )


@program(A, graphs=0)
def it_groupby_lazy(a):
    g = itertools.groupby([1, 1, 2])
    k, grp = next(g)
    k2, grp2 = next(g)
    return a, k, k2, list(grp), list(grp2)


@program(A, graphs=0)
def zip_strict_errors(a):
    out = []
    for rows in (([1, 2], [1]), ([1], [1, 2]), ([1], [1], [])):
        try:
            list(zip(*rows, strict=True))
        except ValueError as e:
            out.append(str(e))
    return a, out


@program(A, graphs=0)
def enumerate_start(a):
    return a, list(enumerate("ab", 5)), list(enumerate([a], start=-1))


@program(A, graphs=0)
def reversed_user(a):
    class R:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            return i * 10

    class Q:
        def __reversed__(self):
            return iter([3, 2, 1])

    return (
        a,
        list(reversed(R())),
        list(reversed(Q())),
        list(reversed(range(4))),
        list(reversed({"a": 1, "b": 2})),
        list(reversed({"a": 1}.items())),
        list(reversed("abc")),
    )


@program(A, graphs=0)
def iter_sentinel(a):
    it = iter([1, 2, 0, 3])
    return a, list(iter(lambda: next(it), 0))


@program(A, graphs=0)
def map_filter(a):
    return (
        a,
        list(map(lambda x, y: x + y, [1, 2], [3, 4])),
        list(filter(None, [0, 1, "", "x"])),
        list(map(str, [1, 2])),
        tuple(map(int, "123")),
    )


@program(A, graphs=0)
def iter_length_hint(a):
    return a, operator.length_hint([1, 2]), operator.length_hint(iter([1, 2, 3]))


@program(A)
def gen_expr_nested_fn(a):
    def outer():
        for i in range(3):
            yield (lambda x: x * i)

    return [f(a) for f in outer()]


@program(A)
def gen_pipeline(a):
    def nums():
        for i in range(5):
            yield i

    def sq(it):
        for x in it:
            yield x * x

    def flt(it):
        return (x for x in it if x % 2 == 0)

    return a * sum(flt(sq(nums())))


@program(A)
def gen_with_ctx(a):
    log = []

    @contextlib.contextmanager
    def cm(n):
        log.append(f"in{n}")
        try:
            yield n
        finally:
            log.append(f"out{n}")

    def g():
        with cm(1) as x:
            yield x
            with cm(2) as y:
                yield y

    r = list(g())
    it = g()
    next(it)
    it.close()
    return a * sum(r), log


@program(A)
def recursive_gen(a):
    def walk(t):
        if isinstance(t, (list, tuple)):
            for x in t:
                yield from walk(x)
        elif isinstance(t, dict):
            for k in t:
                yield from walk(t[k])
        else:
            yield t

    return sum(walk([1, (a, {"q": [2, a]})]))


@corpus.parametrize()
def test_program(program):
    check(program)
