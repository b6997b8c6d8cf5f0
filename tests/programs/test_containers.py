"""Lists, dicts, sets, deques, comprehensions and iterators; mutation of what belongs to the caller."""

import itertools
from collections import OrderedDict, defaultdict, deque

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class Holder:
    def __init__(self, *items):
        self.items = list(items)
        self.table = {}


@program(A)
def builds_a_list(a):
    items = []
    for i in range(3):
        items.append(a * i)
    items.insert(0, a)
    items.extend([a + 1])
    last = items.pop()
    return items, last, len(items), items[1:3], items[-1]


@program(A)
def list_methods(a):
    n = [3, 1, 2]
    n.sort()
    m = n.copy()
    m.reverse()
    m.remove(2)
    return a * n[0], n, m, n.index(2), n.count(3), n + m, n * 2, 3 in n


@program(make=lambda: ([A.clone(), B.clone()],), changed=lambda: ([A.clone()],))
def list_argument(items):
    return sum(items)


@program(make=lambda: ([A.clone()],))
def appends_to_an_argument(items):
    items.append(items[0] * 2)
    items[0] = items[0] + 1
    return items[1]


@program(make=lambda: ([1, 2, 3], A.clone()))
def deletes_from_an_argument(items, a):
    del items[0]
    items[:] = [9] + items
    return a * items[0]


@program(make=lambda: (lambda t: ([t], [t]))(A.clone()))
def same_tensor_in_two_lists(x, y):
    return x[0] is y[0], x[0] + y[0]


@program(make=lambda: (lambda s: (s, s, A.clone()))([1.0]), changed=lambda: ([1.0], [1.0], A.clone()))
def same_list_twice(x, y, a):
    x.append(2.0)
    return a * len(y)


@program(make=lambda: ({"w": A.clone(), "n": 2},), changed=lambda: ({"w": A.clone(), "n": 3},))
def dict_argument(d):
    return d["w"] * d["n"]


@program(make=lambda: ({"w": A.clone()},))
def writes_a_dict_argument(d):
    d["new"] = d["w"] + 1
    d["w"] = d["new"] * 2
    d.setdefault("z", 5)
    return d.pop("new")


@program(make=lambda: ({"a": 1, "b": 2}, A.clone()))
def reorders_a_dict_argument(d, a):
    d["a"] = d.pop("a")
    d.update(c=3)
    return a * len(d)


@program(make=lambda: ({"a": A.clone(), "b": B.clone()},), changed=lambda: ({"b": A.clone(), "a": B.clone()},))
def iterates_over_a_dict(d):
    out = None
    for k, v in d.items():
        out = v if out is None else out * 2 + v
    return out, list(d), list(d.keys())


@program(A)
def dict_operations(a):
    d = {"x": a, "y": 2}
    d |= {"z": a * 2}
    merged = {**d, "y": 3}
    return merged, d.get("q", 4), "x" in d, sorted(d), {k: v for k, v in merged.items() if k != "x"}


@program(A)
def default_dict_and_ordered_dict(a):
    d = defaultdict(list)
    d["k"].append(a)
    o = OrderedDict(b=1, a=2)
    o.move_to_end("b")
    return len(d["k"]), d["k"][0] + 1, list(o), o


@program(A)
def sets(a):
    s = {1, 2} | {3}
    s.add(4)
    s.discard(1)
    return a * len(s), 4 in s, s & {2, 9}, s - {2}, s <= {2, 3, 4, 5}


@program(make=lambda: ({1, 2}, A.clone()))
def mutates_a_set_argument(s, a):
    s.add(7)
    return a * len(s)


@program(A)
def deques(a):
    q = deque([1, 2, 3], maxlen=3)
    q.append(4)
    q.appendleft(0)
    return a * q.pop(), list(q), q


@program(A, graphs=0)
def tuples(a):
    t = (a, 2, "x")
    x, *rest = t
    return t + (3,), x, rest, t[1:], len(t), t[1:].index(2)


@program(A)
def nested_containers(a):
    d = {"rows": [[a, 1], [a * 2, 2]]}
    d["rows"][0][1] = d["rows"][1][0] + 1
    return d["rows"][0][1], d


@program(A)
def self_referring_list(a):
    x = [a]
    x.append(x)
    return x[1][1][0] + 1


@program(A)
def comprehensions(a):
    squares = [a * i for i in range(3) if i != 1]
    pairs = {i: j for i, j in zip("ab", range(2))}
    names = {c for c in "aab"}
    return squares, pairs, len(names), [x + y for x in (1, 2) for y in (10, 20)]


@program(A)
def generator_expressions(a):
    return sum(a * i for i in range(4)), any(i > 2 for i in range(5)), all(i for i in (1, 1)), max(i for i in (1, 5, 2))


def count_up(n):
    total = 0
    for i in range(n):
        received = yield i
        total += received or 1
    return total


def delegating(n):
    result = yield from count_up(n)
    yield result * 10


@program(A)
def generators(a):
    values = list(count_up(3))
    g = count_up(3)
    next(g)
    sent = g.send(5)
    return a * sum(values), sent, list(delegating(2)), next(g)


@program(A)
def generator_with_cleanup(a):
    log = []

    def steps():
        try:
            yield 1
            yield 2
        finally:
            log.append("closed")

    g = steps()
    first = next(g)
    g.close()
    return a * first, log


@program(A)
def zip_enumerate_map_filter(a):
    out = a
    for i, (x, y) in enumerate(zip([1, 2], (3, 4)), start=1):
        out = out * i + x - y
    return out, list(map(lambda v: v * 2, [1, 2])), list(filter(None, [0, 1, 2])), list(reversed([1, 2]))


@program(A)
def partly_consumed_iterators(a):
    it = iter([1, 2, 3, 4])
    first = next(it)
    rest = [x for x in it]
    back = reversed([1, 2, 3])
    next(back)
    return a * first, rest, list(iter(back)), next(iter([]), "end")


@program(A)
def unpacking(a):
    (x, y), *z = [(1, 2), 3, 4]
    *head, tail = (a, 1, 2)
    return x, y, z, head, tail, a + x


@program(A)
def while_loop_with_break_and_else(a):
    n = 0
    while True:
        n += 1
        if n == 2:
            continue
        a = a + n
        if n > 3:
            break
    for _ in range(2):
        pass
    else:
        a = a * 2
    return a, n


@program(make=lambda: (Holder(), A.clone()), stable=False)
def grows_a_list_of_an_object(h, a):
    h.items.append(a.sum())
    h.table["k"] = len(h.items)
    return torch.stack(h.items)


@program(make=lambda: (Holder(1, 2), A.clone()))
def replaces_a_list_of_an_object(h, a):
    old = h.items
    h.items = [*old, 3]
    old.append(9)
    return a * len(h.items)


@program(make=lambda: (Holder(A.clone(), B.clone()),))
def swaps_items_of_an_argument(h):
    h.items[0], h.items[1] = h.items[1], h.items[0]
    return h.items[0] + 1


@program(A)
def walrus_and_conditional(a):
    if (n := a.shape[0]) > 1:
        a = a * n
    return a if n else None


@program(A)
def chained_comparison_and_bool_logic(a):
    n = a.shape[1]
    return a + 1 if 1 < n <= 3 and not (n == 2 or n > 5) else a


@program({"kind": "scale", "by": 3}, A, changed=lambda: ({"kind": "shift", "by": 3}, A.clone()))
def match_statement(message, a):
    match message:
        case {"kind": "scale", "by": int(by)}:
            return a * by
        case {"kind": "shift", **rest}:
            return a + rest["by"]
        case _:
            return a


@program((1, 2, 3), A)
def match_sequences(items, a):
    match items:
        case [x, y]:
            return a + x
        case (x, *rest) if len(rest) == 2:
            return a * x + rest[0]
    return a


@program(A)
def slices_as_values(a):
    s = slice(0, 2)
    return a[:, s], [1, 2, 3][s], s.stop


@program(A)
def dict_with_tuple_keys(a):
    d = {(1, "x"): a}
    d[(2, "y")] = a + 1
    return d[(1, "x")] + d[2, "y"]


@program(A)
def itertools_chain_and_product(a):
    total = sum(itertools.chain([1, 2], [3]))
    pairs = list(itertools.product([1, 2], [3, 4]))
    return a * total, pairs, list(itertools.islice([1, 2, 3], 2))


@program(A)
def sort_by_key_and_sum_of_lists(a):
    rows = [("b", 2), ("a", 3)]
    rows.sort(key=lambda r: r[0])
    return a * rows[0][1], sum([[1], [2]], []), sorted({"b": 1, "a": 2})


@corpus.parametrize()
def test_program(program):
    check(program)
