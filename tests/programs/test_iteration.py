"""Loops and what they run over: comprehensions, generators, built-in iterators, itertools, slices, unpacking, match."""

import itertools
from collections import deque
from dataclasses import dataclass

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


def naturals(stop=None):
    n = 0
    while stop is None or n < stop:
        yield n
        n += 1


def halves(x, log):
    try:
        while True:
            log.append("give")
            x = x / 2
            yield x
    finally:
        log.append("closed")


def running_total():
    total = 0
    while True:
        got = yield total
        if got is None:
            return "done"
        total = total + got


class Countdown:
    def __init__(self, start):
        self.left = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left


class Indexed:
    def __getitem__(self, index):
        if index >= 3:
            raise IndexError(index)
        return index * 2.0


class Sized:
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __iter__(self):
        return iter(self.items)

    def __contains__(self, item):
        return item in self.items

    def __reversed__(self):
        return iter(self.items[::-1])


class Tree:
    def __init__(self, value, children=()):
        self.value, self.children = value, children

    def __iter__(self):
        yield self.value
        for child in self.children:
            yield from child


@dataclass
class Point:
    x: int
    y: int


@program(A)
def nested_comprehension(a):
    return sum(x * y for x in [a, a + 1] for y in range(3) if y != 1)


@program(A)
def dict_and_set_comprehension(a):
    d = {k: a * v for k, v in zip("abc", range(3))}
    return sum(d.values()) + len({v % 2 for v in range(5)}), list(d)


@program(A)
def comprehension_reads_closure_and_argument(a):
    k = 2

    def f(n):
        return [[a * i * j * k for i in range(n)] for j in range(n)]

    return f(2)


@program(A)
def comprehension_variable_does_not_leak(a):
    i = 10
    _ = [i for i in range(3)]
    return a * i


@program(A)
def walrus_in_a_comprehension(a):
    kept = [y for x in range(5) if (y := x * 2) > 3]
    return a * y + len(kept)


@program(A)
def generator_with_state(a):
    g = naturals()
    return a * next(g) + next(g) + next(g)


@program(A)
def generator_to_containers(a):
    return a + sum(naturals(4)), list(naturals(3)), tuple(naturals(2)), set(naturals(2)), dict(enumerate(naturals(2)))


@program(A)
def send_and_return_value(a):
    g = running_total()
    next(g)
    g.send(a)
    total = g.send(a * 2)
    try:
        g.send(None)
    except StopIteration as stop:
        return total, stop.value


@program(A)
def yield_from_returns(a):
    def inner():
        yield a
        return a * 2

    def outer():
        last = yield from inner()
        yield last + 1

    return list(outer())


@program(A)
def closing_a_generator(a):
    log = []
    g = halves(a, log)
    x = next(g) + next(g)
    g.close()
    return x, log


@program(A)
def throwing_into_a_generator(a):
    def g():
        try:
            yield a
        except ValueError as error:
            yield a * len(str(error))

    it = g()
    first = next(it)
    return first + it.throw(ValueError("four"))


@program(A)
def generator_is_lazy(a):
    log = []

    def g():
        for i in range(5):
            log.append(i)
            yield a * i

    for x in g():
        if len(log) == 3:
            break
    return x, log


@program(A)
def generator_expression_is_lazy(a):
    seen = []
    g = (seen.append(i) or a * i for i in range(10))
    first, second = next(g), next(g)
    return first + second, seen


@program(A)
def any_all_stop_early(a):
    seen = []

    def note(i):
        seen.append(i)
        return i > 1

    return a * any(note(i) for i in range(5)), all(note(i) for i in range(5)), seen


@program(A)
def recursive_generator(a):
    tree = Tree(a, [Tree(a * 2, [Tree(a * 3)]), Tree(a * 4)])
    return sum(tree)


@program(A)
def returned_generator_is_consumed_later(a):
    b = a * 2
    return (b * i for i in range(2)) if a.dim() == 0 else [b * i for i in range(2)]


@program(A)
def user_iterator(a):
    return sum(a * i for i in Countdown(3)), list(Countdown(2))


@program(make=lambda: (A.clone(), Countdown(3)), stable=True)
def user_iterator_of_an_argument(a, it):
    next(it)
    return a * next(it)


@program(A)
def sequence_protocol(a):
    return sum(a * x for x in Indexed()), list(Indexed()), 4.0 in Indexed()


@program(A)
def sized_and_reversed_objects(a):
    s = Sized([1, 2, 3])
    return a * len(s), list(reversed(s)), 2 in s, 9 not in s, bool(Sized([])), [*s], max(s)


@program(make=lambda: ([A.clone(), B.clone()], [1.0, 2.0]))
def zip_of_arguments(xs, ks):
    return sum(x * k for x, k in zip(xs, ks, strict=True))


@program(A)
def strict_zip_raises(a):
    try:
        return [x for x, _ in zip([a, a], [1], strict=True)]
    except ValueError:
        return a - 1


@program(A)
def zip_star_transposes(a):
    names, values = zip(*[("x", a), ("y", a + 1)])
    return values[0] * values[1], names


@program(A)
def enumerate_with_start(a):
    return [x * i for i, x in enumerate([a, a], start=2)], list(enumerate("ab", 1))


@program(A)
def map_with_two_iterables(a):
    return list(map(lambda x, y: x * y, [a, a + 1], [2, 3])), list(map(str, range(3)))


@program(A)
def filter_with_none_and_function(a):
    return a * len(list(filter(None, [0, 1, "", 2]))), list(filter(lambda n: n % 2, range(5)))


@program(A)
def reversed_of_kinds(a):
    return a + sum(reversed([1, 2])), list(reversed(range(3))), list(reversed((1, 2))), list(reversed({"a": 1, "b": 2}))


@program(A)
def iter_with_sentinel(a):
    n = Countdown(5)
    return a * sum(iter(lambda: next(n), 2))


@program(A)
def next_with_default(a):
    it = iter([1])
    return a * next(it, 5) + next(it, 5), next(iter([]), None)


@program(A)
def iterator_shared_by_two_loops(a):
    it = iter(range(6))
    first = [x for x in it if x < 3 or True][:0]
    it = iter(range(6))
    for x in it:
        if x == 2:
            break
    return a * sum(it), first


@program(A)
def pairs_by_zipping_an_iterator_with_itself(a):
    it = iter([1, 2, 3, 4])
    return [a * x + y for x, y in zip(it, it)]


@program(A)
def itertools_slicing_and_counting(a):
    return (
        [a * i for i in itertools.islice(itertools.count(1, 2), 3)],
        list(itertools.islice(itertools.cycle("ab"), 1, 5)),
        list(itertools.islice(range(9), 2, None, 3)),
        list(itertools.repeat(2, 3)),
    )


@program(A)
def itertools_accumulate(a):
    return list(itertools.accumulate([a, a * 2, a * 3])), list(itertools.accumulate([1, 2, 3], lambda x, y: x * y))


@program(A)
def itertools_combinatorics(a):
    return (
        sum(a * x * y for x, y in itertools.combinations(range(4), 2)),
        list(itertools.permutations("abc", 2)),
        list(itertools.product([0, 1], repeat=2)),
        list(itertools.combinations_with_replacement("ab", 2)),
    )


@program(A)
def itertools_grouping(a):
    groups = [(k, list(v)) for k, v in itertools.groupby([1, 1, 2, 3, 3], key=lambda n: n)]
    return a * len(groups), groups


@program(A)
def itertools_takes_and_drops(a):
    return (
        a + sum(itertools.takewhile(lambda n: n < 3, range(9))),
        list(itertools.dropwhile(lambda n: n < 3, range(5))),
        list(itertools.filterfalse(lambda n: n % 2, range(5))),
        list(itertools.compress("abcd", [1, 0, 1, 0])),
        list(itertools.starmap(pow, [(2, 3), (3, 2)])),
        list(itertools.pairwise([1, 2, 3])),
        list(itertools.zip_longest([1], [2, 3], fillvalue=0)),
    )


@program(A)
def itertools_tee_and_chain(a):
    x, y = itertools.tee([1, 2, 3])
    return a * next(x) + sum(y), list(itertools.chain.from_iterable([[1], [2, 3]])), list(itertools.chain("a", [1]))


@program(A)
def else_of_loops(a):
    for i in range(3):
        if i == 5:
            break
    else:
        a = a + 1
    while True:
        break
    else:
        a = a * 100
    return a


@program(A)
def continue_and_nested_break(a):
    total = 0
    for i in range(4):
        if i % 2:
            continue
        for j in range(4):
            if j > i:
                break
            total += j
    return a * total


@program(A)
def loop_variable_survives(a):
    for i, (x, y) in enumerate([(1, 2), (3, 4)]):
        a = a * x + y
    return a + i + x + y


@program(A)
def range_facts(a):
    r = range(10, 0, -3)
    return a * len(r) + r[1], r.start, r.stop, r.step, 7 in r, list(r[1:]), r == range(10, 0, -3), r.index(4)


@program(A)
def nested_unpacking(a):
    (x, [y, *z]), w = (a, [1, 2, 3]), "w"
    head, *middle, tail = "abcd"
    return x * y + sum(z), w, head, middle, tail


@program(A, graphs=0)
def unpacking_errors(a):
    seen = []
    for values in ([1], [1, 2, 3]):
        try:
            x, y = values
        except ValueError as error:
            seen.append(str(error))
    return a, seen


@program(A)
def swap_and_multiple_assignment(a):
    x = y = a
    x, y = y + 1, x * 2
    i, xs = 0, [0, 0, 0]
    i, xs[i] = 2, 9
    return x, y, i, xs


@program(A, graphs=0)
def slices_of_lists(a):
    xs = list(range(10))
    xs[2:4] = ["a"]
    xs[::4] = [a, a, a]
    del xs[1]
    del xs[-2:]
    return xs, xs[::-1][:2], xs[slice(1, None, 2)]


@program(A)
def slice_objects_on_tensors(a):
    s = slice(0, 1)
    return a[s], a[s, slice(None, None, 2)], a[(Ellipsis, 1)], a[..., -1:], s.start, s.indices(5)


@program(A)
def slice_assignment_on_tensors(a):
    b = a.clone()
    b[:, 0] = 1.0
    b[1, 1:] = a[0, :2]
    b[b.shape[0] - 1] += 1
    b[None, ..., 2] *= 2
    return b


@program(A)
def tensor_indexing_by_lists(a):
    return a[[0, 1], [1, 2]], a[torch.tensor([1, 0])], a[:, [0, 2]], a[0][1], a[-1, -1]


@program(A)
def walrus_in_conditions(a):
    if (n := a.shape[0]) > 1 and (m := a.shape[1]) > 2:
        a = a * n + m
    while (n := n - 1) > 0:
        a = a + n
    return a, n


@program(A, 3, changed=lambda: (A.clone(), "x"))
def match_values_and_guards(a, v):
    match v:
        case 0 | 1:
            return a
        case int(n) if n > 2:
            return a * n
        case str() as s:
            return a + len(s)
        case _:
            return -a


@program(make=lambda: (A.clone(), {"op": "scale", "by": 2.0, "more": 1}), changed=lambda: (A.clone(), {"op": "neg"}))
def match_mappings(a, message):
    match message:
        case {"op": "scale", "by": k, **rest}:
            return a * k + len(rest)
        case {"op": "neg"}:
            return -a


@program(make=lambda: (A.clone(), Point(1, 2)), changed=lambda: (A.clone(), Point(0, 5)))
def match_classes(a, p):
    match p:
        case Point(x=0, y=y):
            return a * y
        case Point(x, y):
            return a * x + y


@program(A)
def match_on_the_shape(a):
    match tuple(a.shape), a.dtype:
        case (2, n), torch.float32:
            return a * n
        case _:
            return a


@program(make=lambda: (A.clone(), deque([1, 2, 3])))
def deque_iteration(a, d):
    d.rotate(1)
    d.appendleft(a.shape[0])
    return a * sum(d), d.pop(), [*d]


@program(A)
def sum_min_max_forms(a):
    return (
        sum([a, a], start=torch.ones(3)),
        min(3, 1, 2),
        max([1, 5, 2], default=0),
        min([], default=7),
        max("b", "a", key=ord),
        sum([[1], [2]], []),
        divmod(7, 2),
        round(2.567, 1),
        abs(-3),
        pow(2, 3, 5),
    )


@program(A)
def sorting(a):
    rows = [("b", 2), ("a", 2), ("c", 1)]
    rows.sort(key=lambda r: r[1], reverse=True)
    return a * rows[0][1], rows, sorted("hello"), sorted([3, 1, 2], reverse=True)


@program(make=lambda: ({"x": A.clone(), "y": B.clone()},))
def loop_over_dict_items_of_an_argument(d):
    out = {}
    for name, value in d.items():
        out[name + "!"] = value * len(name)
    return out


@program(make=lambda: ({"x": A.clone()},))
def changing_a_dict_while_iterating_raises(d):
    try:
        for name in d:
            d[name + "x"] = 1
    except RuntimeError as error:
        return d["x"] + 1, str(error)


@corpus.parametrize()
def test_program(program):
    check(program)
