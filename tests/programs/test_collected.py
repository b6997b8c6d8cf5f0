"""Containers of collections, sets, dictionaries, lists and what they hold."""

import types
from collections import Counter, OrderedDict, defaultdict, deque

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


@program(A)
def ordereddict(a):
    o = OrderedDict([("a", 1), ("b", a)])
    o["c"] = 3
    o.move_to_end("a")
    o.move_to_end("c", last=False)
    x = o.popitem()
    y = o.popitem(last=False)
    return (
        o["b"] * 2,
        x,
        y,
        list(o),
        OrderedDict(a=1) == OrderedDict(a=1),
        OrderedDict([("a", 1), ("b", 2)]) == OrderedDict([("b", 2), ("a", 1)]),
        OrderedDict([("a", 1), ("b", 2)]) == {"b": 2, "a": 1},
        list(reversed(OrderedDict(x=1, y=2))),
        OrderedDict(a=1) | {"b": 2},
        repr(OrderedDict(a=1)),
    )


@program(A)
def default_dict(a):
    d = defaultdict(list)
    d["x"].append(1)
    d["x"].append(a)
    e = defaultdict(int)
    e["q"] += 1
    f = defaultdict(lambda: 5, z=1)
    n = defaultdict(lambda: defaultdict(int))
    n["a"]["b"] += 2
    return (
        d["x"][1] * 2,
        dict(e),
        f["new"],
        f["z"],
        len(f),
        d.default_factory is list,
        "zz" in d,
        d.get("zz"),
        n,
        e | {"r": 2},
        e.copy(),
        repr(e),
        sorted(f),
    )


@program(A)
def counted(a):
    c = Counter("aabbbc")
    c.update("a")
    c["z"] -= 1
    d = Counter(a=1, b=2)
    return (
        a * c["b"],
        c["nope"],
        c.most_common(2),
        sorted(c.elements()),
        c + d,
        c - d,
        c & d,
        c | d,
        c.total(),
        dict(c),
        Counter([1, 1, 2]),
        +c,
        -c,
        c == Counter("x"),
        c.subtract("ab"),
        c["a"],
        d.pop("a"),
        repr(d),
        len(d),
        Counter({"x": 2}) <= Counter({"x": 3}),
    )


@program(A, graphs=0)
def deques(a):
    q = deque([1, 2, 3], maxlen=4)
    q.appendleft(0)
    q.append(a)
    q.rotate(1)
    q.extend([8])
    q.extendleft([9])
    r = deque([1, 2])
    r.insert(1, 5)
    r.remove(2)
    r.reverse()
    return (
        q[1],
        len(q),
        q.maxlen,
        r,
        r.pop(),
        r.popleft(),
        deque("ab") + deque("c"),
        deque([1]) * 2,
        deque([1]) == deque([1]),
        1 in deque([1]),
        list(deque([1, 2])),
        deque([1, 2, 1]).count(1),
        deque([1, 2]).index(2),
        r.copy(),
        deque([1], 3),
        bool(deque()),
        deque([1, 2, 3])[-1],
        list(reversed(deque([1, 2]))),
    )


@program(A)
def set_algebra(a):
    s, t = {1, 2, 3}, {2, 3, 4}
    u = set(s)
    u |= {9}
    u &= {1, 9}
    v = set(s)
    v -= {1}
    v ^= {7}
    w = set()
    w.add(1)
    w.discard(5)
    w.update([2], (3,))
    x = s.copy()
    x.remove(1)
    p = {5}
    pp = p.pop()
    i = {1, 2, 3}
    i.intersection_update([2, 3], {2})
    j = {1, 2}
    j.difference_update([1])
    k = {1, 2}
    k.symmetric_difference_update({2, 3})
    return (
        a * len(s & t),
        s | t,
        s - t,
        s ^ t,
        s <= t,
        s < s | t,
        s >= {1},
        s > {1},
        s == {3, 2, 1},
        s != t,
        u,
        v,
        w,
        x,
        pp,
        p,
        i,
        j,
        k,
        s.union(t, [9]),
        s.isdisjoint({9}),
        s.issubset(range(9)),
        s.issuperset([1]),
        frozenset([1, 2]) | {3},
        {1} | frozenset([2]),
        type(frozenset([1]) | {2}),
        hash(frozenset([1])) == hash(frozenset([1])),
        {frozenset([1]): 2}[frozenset([1])],
        {n % 3 for n in range(9)},
        len({1, 1.0, True}),
        2 in s,
        sorted(s, reverse=True),
        sum(s),
        max(s),
        min(t),
        list(s),
        [*s],
        set("abc") == set("cab"),
        {1, 2} & {1: 0}.keys(),
        bool(set()),
        {(1, 2), (3, 4)},
        {None, "a"} == {"a", None},
    )


@program(A)
def dict_ops(a):
    d = {"a": 1, "b": 2}
    e = {"b": 3, "c": 4}
    d2 = dict(d)
    d2 |= e
    d3 = {**d, **e, "z": 0}
    d4 = d | e
    d5 = dict.fromkeys("ab", 0)
    d6 = {k: v for k, v in d.items() if v > 1}
    d7 = dict(d)
    d7.update(e, q=9)
    d7.update([("m", 1)])
    p = d7.pop("m")
    q = d7.pop("zz", None)
    r = d7.setdefault("nn", [])
    r.append(1)
    it = d7.popitem()
    d8 = d.copy()
    d8.clear()
    return (
        a * d["a"],
        d2,
        d3,
        d4,
        d5,
        d6,
        d7,
        p,
        q,
        it,
        d8,
        len(d),
        list(d),
        list(d.values()),
        list(d.items()),
        "a" in d,
        d.get("x", 5),
        d == {"b": 2, "a": 1},
        d != e,
        sorted(d.keys() & e.keys()),
        sorted(d.keys() | e.keys()),
        sorted(d.keys() - e.keys()),
        sorted(d.keys() ^ e.keys()),
        sorted(d.items() & {("a", 1)}),
        d.keys() == {"a", "b"},
        d.keys() <= {"a", "b", "c"},
        "a" in d.keys(),
        1 in d.values(),
        ("a", 1) in d.items(),
        sorted(d, key=d.get, reverse=True),
        max(d, key=d.get),
        [*d],
        dict(zip(d.values(), d)),
        {1: "i", **{1.0: "f"}, **{True: "t"}},
        {(1, 2): 3}[(1, 2)],
        list(reversed(d)),
        sum(d.values()),
        any(v > 1 for v in d.values()),
        next(iter(d)),
        d.keys().isdisjoint({"q"}),
        len(d.items()),
        repr(d.keys()),
        dict(d.items()),
        str(d),
        d.__contains__("a"),
        d.__getitem__("a"),
        d.__len__(),
        {None: 1}[None],
        d.keys().mapping["a"],
    )


@program(A)
def dict_tensor_vals(a):
    d = {"x": a, 1: a + 1, (2, "k"): [a]}
    e = {k: v for k, v in d.items()}
    vs = list(d.values())
    return vs[0] + d[1] + e[(2, "k")][0], len(d), "x" in d


@program(A, B)
def dict_tensor_keys(a, b):
    d = {a: 1, b: 2}
    return d[a] * a, a in d, len(d), {a, b, a}.__len__()


@program(A)
def mappingproxy(a):
    d = {"a": 1}
    m = types.MappingProxyType(d)
    d["b"] = 2
    out = []
    try:
        m["c"] = 1
    except TypeError as e:
        out.append(str(e))
    return (
        a * m["a"],
        len(m),
        list(m),
        m.get("z"),
        "b" in m,
        out,
        m | {"q": 1},
        isinstance(m, types.MappingProxyType),
        m == d,
        dict(m),
        m.copy(),
    )


@program(A, graphs=0)
def list_ops(a):
    row = [3, 1, 2]
    row.sort()
    m = row.copy()
    m.reverse()
    n = row + m
    n *= 2
    o = [0] * 3
    o[1] = a
    p = [[0] * 2 for _ in range(2)]
    p[0][0] = 1
    row.insert(0, 9)
    row.insert(-1, 8)
    row.insert(100, 7)
    x = row.pop()
    y = row.pop(0)
    row.extend(c for c in "ab")
    row += (1, 2)
    z = row.count(1)
    q = row.index("a", 2)
    row.remove("a")
    r = [*row, *m]
    l2 = row
    l2.append(5)
    del row[0]
    row[1:1] = [7, 7]
    return (
        o[1],
        row,
        m,
        n,
        p,
        x,
        y,
        z,
        q,
        r,
        row is l2,
        row == list(row),
        row != [],
        [1, 2] < [1, 3],
        [1] < [1, 0],
        [1, 2] >= [1, 2],
        3 in row,
        99 not in row,
        len(row),
        row[-1],
        [1, [2, [3]]] == [1, [2, [3]]],
        row.__len__(),
        [1, 2].__contains__(1),
        sorted([[2], [1]]),
        [] or "x",
        [1] and "y",
        not [],
        [x * y for x in range(3) if x for y in range(x)],
        [[j for j in range(i)] for i in range(3)],
    )


@program(A, graphs=0)
def list_self(a):
    row = [1]
    row.append(row)
    return a, row[1] is row, row[1][1][0], len(row)


@program(A)
def tuple_ops(a):
    t = (1, 2, 3)
    x, *y, z = t
    (p, q), r = (1, 2), 3
    (*u,) = t
    (x2,) = (5,)
    s, t2 = t[:2]
    s, t2 = t2, s
    return (
        a * x,
        y,
        z,
        p,
        q,
        r,
        u,
        x2,
        s,
        t2,
        t + (4,),
        t * 2,
        t.count(1),
        t.index(2),
        t < (1, 2, 4),
        t == (1, 2, 3),
        hash(t) == hash((1, 2, 3)),
        t[1:],
        2 in t,
        len(t),
        (*t, *[4]),
        (),
        (1,),
        tuple([a])[0] is a,
        t.__getitem__(0),
        tuple(range(3)),
        max(t),
        sum(t),
        () == (),
        (1, "a") != (1, "b"),
        (a, 1)[0] is a,
    )


@corpus.parametrize()
def test_program(program):
    check(program)
