"""What Python says when an operation is refused: type and words of the errors are its own."""

import dataclasses
import enum
import math
import operator
from collections import deque, namedtuple
from dataclasses import dataclass, field
from typing import Any

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class Pt:
    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    @property
    def low(self):
        return self.name.lower()

    @classmethod
    def default(cls):
        return cls.GREEN

    def twice(self):
        return self.value * 2


CNT = namedtuple("CNT", "a b c", defaults=[7])


@dataclass
class DC:
    x: int
    y: Any = 3
    z: list = field(default_factory=list)


@dataclass(order=True)
class ODC:
    k: int
    v: str = field(default="", compare=False)


@dataclass(kw_only=True)
class KDC:
    x: int
    y: int = 2

    def __post_init__(self):
        self.s = self.x + self.y


@program(A, graphs=0)
def missing_arg_message(a):
    def f(x, y, *, k):
        return x

    out = []
    for args, kw in (
        ((a,), {}),
        ((a, 1), {}),
        ((a, 1, 2), {"k": 1}),
        ((a,), {"y": 1, "k": 2, "z": 3}),
        ((a, 1), {"x": 2, "k": 1}),
    ):
        try:
            f(*args, **kw)
        except TypeError as e:
            out.append(str(e))
    return a, out


@program(A)
def unbound_local(a):
    out = []

    def f():
        if len(out) > 5:
            y = 1
        return y

    try:
        f()
    except UnboundLocalError as e:
        out.append(str(e))

    def g():
        del q  # noqa: F821 - unbound is what is tested
        q = 1

    try:
        g()
    except UnboundLocalError as e:
        out.append(str(e))
    try:
        undefined_name_xyz
    except NameError as e:
        out.append(str(e))
    return a + 1, out


@program(A)
def unbound_free(a):
    out = []

    def f():
        return z

    try:
        f()
    except NameError as e:
        out.append(str(e))
    z = 1
    return a + f(), out


@program(A)
def del_cell(a):
    z = 3

    def f():
        return z  # noqa: F821 - unbound is what is tested

    r = f()
    del z
    try:
        f()
    except NameError as e:
        return a * r, str(e)


@program(A, graphs=0)
def minmax_errors(a):
    out = []
    for f in (lambda: max([]), lambda: min(()), lambda: max(1), lambda: max(1, 2, default=3), lambda: max([1, "a"])):
        try:
            f()
        except (ValueError, TypeError) as e:
            out.append((type(e).__name__, str(e)))
    return a, out


@program(A, graphs=0)
def sum_errors(a):
    try:
        sum(["a", "b"])
    except TypeError as e:
        x = str(e)
    try:
        sum(["a"], "")
    except TypeError as e:
        y = str(e)
    return a, x, y


@program(A, graphs=0)
def list_slice_errors(a):
    out = []
    row = [1, 2, 3]

    def bad1():
        row[::2] = [1]

    def bad2():
        row["a"]

    def bad3():
        row[5]

    def bad4():
        row[5] = 1

    def bad5():
        tuple([1, 2])["a"]

    def bad6():
        (1, 2)[7]

    def bad7():
        del row[9]

    def bad8():
        row.remove(77)

    def bad9():
        row.index(55)

    def bad10():
        [].pop()

    def bad11():
        [1].pop(4)

    def bad12():
        (1,).index(3)

    def bad13():
        row["a"] = 1

    def bad14():
        "abc"[9]

    def bad15():
        [1] + (2,)

    def bad16():
        (1,) + [2]

    def bad17():
        [1] * "a"

    def bad18():
        row + 1

    def bad19():
        1 + "a"

    def bad20():
        "a" + 1

    def bad21():
        [] < ()

    def bad22():
        [1] < ["a"]

    def bad23():
        len(5)

    def bad24():
        iter(5)

    def bad25():
        next([])

    def bad26():
        {}["x"]

    def bad27():
        {[]: 1}

    def bad28():
        hash([])

    def bad29():
        row.append(1, 2)

    def bad30():
        x, y = (1,)

    def bad31():
        x, y = 1, 2, 3

    def bad32():
        x, *y, z = (1,)

    def bad33():
        x, y = 5

    def bad34():
        None.foo

    def bad35():
        (1).foo

    def bad36():
        [].foo

    def bad37():
        {}.foo

    def bad38():
        (1,).foo

    def bad39():
        int("5")()

    def bad40():
        str("a")()

    def bad41():
        row[1.5]

    def bad42():
        int("x")

    def bad43():
        float("y")

    def bad44():
        1 / 0

    def bad45():
        1 % 0

    def bad46():
        -"a"

    def bad47():
        ~1.5

    def bad48():
        None + 1

    def bad49():
        3 in 5

    def bad50():
        isinstance(1, 5)

    for f in (
        bad1,
        bad2,
        bad3,
        bad4,
        bad5,
        bad6,
        bad7,
        bad8,
        bad9,
        bad10,
        bad11,
        bad12,
        bad13,
        bad14,
        bad15,
        bad16,
        bad17,
        bad18,
        bad19,
        bad20,
        bad21,
        bad22,
        bad23,
        bad24,
        bad25,
        bad26,
        bad27,
        bad28,
        bad29,
        bad30,
        bad31,
        bad32,
        bad33,
        bad34,
        bad35,
        bad36,
        bad37,
        bad38,
        bad39,
        bad40,
        bad41,
        bad42,
        bad43,
        bad44,
        bad45,
        bad46,
        bad47,
        bad48,
        bad49,
        bad50,
    ):
        try:
            f()
        except Exception as e:
            out.append((f.__name__, type(e).__name__, str(e)))
    return a, out


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
def enum_err(a):
    out = []
    for f in (lambda: Color(9), lambda: Color["Q"], lambda: Color.NOPE):
        try:
            f()
        except (ValueError, KeyError, AttributeError) as e:
            out.append((type(e).__name__, str(e)))
    return a, out


@program(A, graphs=0)
def namedtuple_err(a):
    out = []
    for f in (
        lambda: CNT(),
        lambda: CNT(1),
        lambda: CNT(1, 2, 3, 4),
        lambda: CNT(1, 2, z=3),
        lambda: CNT(1, 2, a=3),
        lambda: CNT(1, 2)._replace(z=3),
        lambda: CNT._make([1]),
        lambda: setattr(CNT(1, 2), "a", 3),
        lambda: setattr(CNT(1, 2), "zz", 3),
        lambda: CNT(1, 2).foo,
    ):
        try:
            f()
        except (TypeError, ValueError, AttributeError) as e:
            out.append((type(e).__name__, str(e)))
    return a, out


@program(A, graphs=0)
def dataclass_err(a):
    out = []
    for f in (
        lambda: DC(),
        lambda: DC(1, 2, 3, 4),
        lambda: DC(1, q=2),
        lambda: KDC(1),
        lambda: ODC(1) < 5,
        lambda: dataclasses.replace(DC(1), qq=1),
        lambda: dataclasses.fields(5),
    ):
        try:
            f()
        except TypeError as e:
            out.append(str(e))
    return a, out


@program(A, graphs=0)
def match_err(a):
    try:
        match Pt(1, 2):
            case Pt(1, 2, 3):
                pass
    except TypeError as e:
        r = str(e)
    try:
        match Pt(1, 2):
            case Pt(1, x=3):
                pass
    except TypeError as e:
        q = str(e)
    return a, r, q


@program(A, graphs=0)
def math_err(a):
    out = []
    for f in (lambda: math.sqrt(-1), lambda: math.log(0), lambda: math.floor("x"), lambda: math.factorial(-1)):
        try:
            f()
        except (ValueError, TypeError) as e:
            out.append((type(e).__name__, str(e)))
    return a, out


@program(A, graphs=0)
def dunder_err(a):
    class N:
        pass

    class M:
        def __add__(self, o):
            return NotImplemented

        def __lt__(self, o):
            return NotImplemented

        def __bool__(self):
            return 5

        def __len__(self):
            return -1

        def __index__(self):
            return "x"

        def __iter__(self):
            return 5

        def __hash__(self):
            return "q"

        __contains__ = None

        def __str__(self):
            return 5

        def __call__(self):
            return 1

    n, m = N(), M()
    out = []
    fs = [
        lambda: n + 1,
        lambda: 1 + n,
        lambda: m + 1,
        lambda: m + m,
        lambda: n < m,
        lambda: m < n,
        lambda: m < m,
        lambda: -n,
        lambda: ~n,
        lambda: n[0],
        lambda: n(),
        lambda: len(n),
        lambda: iter(n),
        lambda: next(n),
        lambda: 1 in n,
        lambda: bool(m),
        lambda: len(m),
        lambda: [1][m],
        lambda: iter(m),
        lambda: list(m),
        lambda: hash(m),
        lambda: {m: 1},
        lambda: 1 in m,
        lambda: str(m),
        lambda: f"{m}",
        lambda: m(3),
        lambda: n.foo,
        lambda: N.foo,
        lambda: N(1),
        lambda: N(x=1),
        lambda: int(n),
        lambda: float(n),
        lambda: abs(n),
        lambda: round(n),
        lambda: n @ n,
        lambda: n**2,
        lambda: divmod(n, 2),
        lambda: [1, 2][n],
        lambda: [n] < [n],
        lambda: sorted([n, n]),
        lambda: reversed(n),
        lambda: {**n},
        lambda: [*n],
        lambda: (lambda: 1)(*n),
        lambda: (lambda **k: 1)(**n),
        lambda: n.__enter__,
        lambda: isinstance(1, n),
        lambda: issubclass(n, int),
        lambda: format(n, "x"),
        lambda: n | 1,
        lambda: sum([n]),
        lambda: max(n, n),
        lambda: "a" + n,
        lambda: [1] + n,
        lambda: n * [1],
        lambda: setattr(1, "x", 2),
        lambda: delattr(n, "x"),
        lambda: vars(1),
        lambda: complex(n),
        lambda: range(n),
        lambda: "".join([n]),
        lambda: dict(n),
        lambda: set(n),
        lambda: tuple(n),
        lambda: zip(n),
        lambda: map(1, n),
        lambda: enumerate(n),
        lambda: hasattr(n, 1),
        lambda: getattr(n, "zz"),
        lambda: operator.index(n),
    ]

    def i1():
        x = n
        x += 1

    def i2():
        n[0] = 1

    def i3():
        del n[0]

    def i4():
        a, b = n

    for i, f in enumerate([*fs, i1, i2, i3, i4]):
        try:
            f()
            out.append((i, "ok"))
        except Exception as e:
            out.append((i, type(e).__name__, str(e)))
    return a, out


@program(A, graphs=0)
def deque_err(a):
    out = []

    def sl():
        deque([1, 2])[0:1]

    for f in (
        lambda: deque().pop(),
        lambda: deque().popleft(),
        lambda: deque([1])[5],
        sl,
        lambda: deque([1]).remove(4),
        lambda: deque([1]).index(4),
        lambda: deque([1], -1),
        lambda: deque([1], 1).insert(0, 3),
    ):
        try:
            f()
        except (IndexError, TypeError, ValueError) as e:
            out.append((type(e).__name__, str(e)))
    return a, out


@program(A, graphs=0)
def set_err(a):
    out = []
    for f in (
        lambda: {1}.remove(2),
        lambda: set().pop(),
        lambda: {[]},
        lambda: {1} | [2],
        lambda: {1} < [1],
        lambda: set([1])[0],
        lambda: {1} + {2},
        lambda: frozenset().add(1),
        lambda: {1} & 5,
        lambda: {1} == [1],
        lambda: set(5),
        lambda: {1}.union(5),
    ):
        try:
            out.append(f())
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return a, out


@program(A, graphs=0)
def dict_err(a):
    out = []

    def it():
        d = {"a": 1}
        for k in d:
            d[k + "x"] = 1

    def it2():
        d = {"a": 1, "b": 2}
        for k in d:
            del d[k]

    def it3():
        s = {1, 2}
        for k in s:
            s.add(k + 10)

    for f in (
        lambda: {}["a"],
        lambda: {}.popitem(),
        lambda: {}.pop("a"),
        lambda: {}.pop(),
        lambda: {[]: 1},
        lambda: {"a": 1} | [],
        lambda: {"a": 1} < {},
        lambda: dict(5),
        lambda: dict([1]),
        lambda: dict([(1, 2, 3)]),
        it,
        it2,
        it3,
        lambda: {}.keys()[0],
        lambda: dict([(1, 2)])(3),
        lambda: (lambda **k: 1)(**{1: 2}),
        lambda: (lambda x: 1)(1, **{"x": 2}),
        lambda: {}.nope,
        lambda: {}.get(),
        lambda: {} + {},
        lambda: hash({}),
        lambda: dict(a=1, **{"a": 2}),
    ):
        try:
            f()
            out.append("ok")
        except Exception as e:
            out.append((type(e).__name__, str(e)))
    return a, out


@program(A, graphs=0)
def raise_nonexc(a):
    try:
        raise 5
    except TypeError as e:
        m = str(e)
    try:
        raise ValueError("x") from 5
    except TypeError as e:
        n = str(e)
    return a, m, n


@program(A, graphs=0)
def bare_raise(a):
    try:
        raise
    except RuntimeError as e:
        return a, str(e)


@program(A, graphs=0)
def with_no_exit(a):
    class N:
        pass

    out = []
    try:
        with N():
            pass
    except TypeError as e:
        out.append(str(e))
    try:
        with 5:
            pass
    except TypeError as e:
        out.append(str(e))
    return a, out


@corpus.parametrize()
def test_program(program):
    check(program)
