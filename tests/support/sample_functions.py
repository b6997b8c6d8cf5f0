"""Functions of plain Python whose frames hold everything that a frame can hold, each with a maker of its arguments.

Written as users write, some of it oddly on purpose. They append to a log where they have effects, and use no
generators, so that they can be continued from everywhere.
"""

from collections.abc import Callable
from typing import Any

SAMPLES: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {}
LIMIT = 3


def sample(*arguments: Any, make: Callable[[], tuple[Any, ...]] | None = None) -> Callable[..., Any]:
    """Register a function; arguments are immutable, or made again by `make`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        name, count = function.__name__, 2
        while name in SAMPLES:
            name, count = f"{function.__name__}_{count}", count + 1
        SAMPLES[name] = (function, make or (lambda: arguments))
        return function

    return register


class Manager:
    """A context manager that keeps a log and may swallow what is raised inside."""

    def __init__(self, log: list[Any], swallows: bool = False) -> None:
        self.log = log
        self.swallows = swallows

    def __enter__(self) -> "Manager":
        self.log.append("enter")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        self.log.append(("exit", kind))
        return self.swallows


class Point:
    """Something to match."""

    __match_args__ = ("x", "y")

    def __init__(self, x: int, y: int) -> None:
        self.x, self.y = x, y


class Base:
    """A parent."""

    def value(self, k: int) -> int:
        return k * 2


class Child(Base):
    """Calls its parent."""

    def value(self, k: int) -> int:
        first = super().value(k)
        second = super(Child, self).value(k + 1)
        return first + second


@sample(2, 5)
def arithmetic(a, b):
    c = a + b * 3 - -a
    c += a // 2
    return c**2 % 7, ~c, c << 1, c / b, not c


@sample(make=lambda: (3, []))
def loop(n, log):
    total = 0
    for i in range(n):
        for j, k in enumerate("ab"):
            if i == 1:
                continue
            log.append((i, j, k))
            total += i * j
    else:
        total += 100
    return total, log


@sample(make=lambda: (0, []))
def while_loop(n, log):
    while n < 5:
        n += 1
        if n == 2:
            continue
        if n == 4:
            break
        log.append(n)
    else:
        log.append("never")
    return n, log


@sample(make=lambda: ([1, 2, 3], []))
def calls(xs, log):
    log.append(max(len(xs), min(*xs), key=lambda v: -v))
    log.append(dict(a=1, **{"b": len(xs)}))
    print_like = "{}-{b}".format
    return print_like(sum(xs), b=sorted(xs, reverse=True)), log


@sample(4)
def closure_written(n):
    total = n

    def add(v):
        nonlocal total
        total += v
        return total

    first = add(1)
    total += 10
    return first, add(2), total


@sample(4)
def closure_over_an_argument(n):
    def double():
        return n * 2

    before = double()
    n += 1
    return before, double(), (lambda: n)()


def _outer():
    shared = [0]
    count = 5

    @sample(7)
    def free_variables(a):
        nonlocal count
        count = 5
        shared[0] = a
        count += shared[0]

        def inner():
            return count + a

        return inner() + count

    @sample()
    def free_variables_alone():
        return len(shared) + max(1, 2)

    return count, free_variables, free_variables_alone


_outer()


@sample(make=lambda: ([3, 1, 2], 2))
def comprehensions(xs, k):
    a = [x * k for x in xs if x > 1]
    b = {x: y for x in xs for y in (x + k,)}
    c = {x % 2 for x in a}
    d = [[x + y for x in xs] for y in range(k)]
    return a, b, c, d, k


@sample(make=lambda: ([3, 1, 2],))
def comprehension_variable_outside(xs):
    x = "kept"
    ys = [x for x in xs]
    return x, ys, [lambda: x for x in xs][0]()


@sample(make=lambda: ([3, 1, 2], []))
def comprehension_that_raises(xs, log):
    x = "kept"
    try:
        return [1 // (x - 1) for x in xs]
    except ZeroDivisionError as error:
        log.append((x, str(error)))
    return x, log


@sample(make=lambda: ("12", []))
@sample(make=lambda: ("x", []))
@sample(make=lambda: (None, []))
def try_except_else_finally(text, log):
    try:
        value = int(text)
    except ValueError as error:
        log.append(("value", len(str(error)) > 0))
        value = -1
    except TypeError:
        log.append("type")
        return "early", log
    else:
        log.append("else")
    finally:
        log.append("finally")
    return value, log


@sample(make=lambda: ([],))
def nested_try(log):
    try:
        try:
            log.append("in")
            raise KeyError("k")
        except IndexError:
            log.append("wrong")
        finally:
            log.append("cleanup")
    except KeyError as error:
        try:
            raise ValueError("v") from error
        except ValueError as second:
            log.append((type(second.__cause__), second.args))
    return log


@sample(make=lambda: ([],))
def raises_out(log):
    for i in range(3):
        try:
            log.append(i)
            if i == 1:
                raise RuntimeError(f"at {i}")
        finally:
            log.append("f")
    return log


@sample(make=lambda: ([],))
def bare_raise(log):
    try:
        try:
            [].pop()
        except IndexError:
            log.append("again")
            raise
    except LookupError as error:
        log.append(type(error))
    return log


@sample(make=lambda: ([], False))
@sample(make=lambda: ([], True))
def with_block(log, fails):
    with Manager(log) as first, Manager(log, swallows=True) as second:
        log.append(first is not second)
        if fails:
            raise ValueError(fails)
        log.append("body")
    for _ in range(2):
        with Manager(log):
            if _ == 0:
                continue
            return "from inside", log
    return "end", log


@sample(make=lambda: ([],))
def with_block_around_a_loop(log):
    total = 0
    with Manager(log):
        for i in range(LIMIT):
            with Manager(log, swallows=True):
                total += i
                if i == 1:
                    raise KeyError
                log.append(total)
    return total, log


@sample((1, (2, 3)))
@sample({"kind": "a", "rest": 5})
@sample(make=lambda: (Point(0, 4),))
@sample(make=lambda: (Point(3, 4),))
@sample("text")
@sample(7)
def match_statement(subject):
    match subject:
        case (int(a), (b, *c)) if a > 0:
            return "sequence", a, b, c
        case {"kind": str(k), **others}:
            return "mapping", k, others
        case Point(0, y):
            return "zero", y
        case Point(x=x, y=y):
            return "point", x + y
        case "text" | "more":
            return "text"
        case int() as n:
            return "number", n
    return None


@sample(make=lambda: ([1, 2, 3, 4, 5],))
def unpacking(xs):
    a, *b, c = xs
    (d, e), f = b[:2], [*b, a, *xs[1:3]]
    g = {**{"a": a}, "c": c}
    b[0:1] = [c, c]
    b[1], a = a, b[-1]
    del b[0]
    return a, b, c, d, e, f, g, (*f, 1), {*f}


@sample(3, "s")
def text(n, s):
    width = 6
    return f"{n:>{width}} {s!r} {s!s:^5} {n + 1} {{}} {n=}", "%d-%s" % (n, s), s.upper().join(["a", "b"])


@sample(None, 3)
@sample(0, "x")
def conditions(a, b):
    c = a or b
    d = a and b
    e = 1 if a is None else 2 if a is not None and b in (3, 4) else 3
    if a is None and not (b == 3) or 1 < len(str(b)) <= 2:
        c = "changed"
    while a is not None:
        a = None
    return c, d, e, b != a, (y := b), y


@sample(3)
def deleted_and_unbound(n):
    a = n
    del a
    try:
        return a
    except UnboundLocalError:
        a = "bound again"
    for i in range(n):
        if i:
            late = i
    del i
    return a, late


@sample(make=lambda: (Child(), 3))
def objects(child, k):
    child.k = k
    child.k += 1
    child.method = child.value
    del child.method
    return child.value(child.k), Child.value(child, 2), child.k


@sample(make=lambda: (2, 3, 4))
def defaults_and_star_arguments(a, *rest, key=5, **named):
    def inner(x, y=a, *more, z=key, **kwargs):
        return x, y, more, z, kwargs

    args, kwargs = (1, *rest), {"q": a, **named}
    return inner(*args, **kwargs), inner(a), inner(a, z=1)


@sample()
def no_locals():
    return len("abc") + max(int("4"), 2)


@sample()
def no_locals_but_a_cell():
    value = 3

    def inner():
        return value

    return inner() + (lambda: value)()


@sample(make=lambda: ([],))
def imports_and_globals(log):
    global LIMIT
    import math
    from collections import OrderedDict as Ordered

    LIMIT = 3
    log.append(LIMIT)
    LIMIT += 0
    return math.floor(2.5), list(Ordered(a=1)), log


@sample(make=lambda: (1, []))
def assertion(n, log):
    try:
        assert n > 1, f"only {n}"
    except AssertionError as error:
        log.append(str(error))
    assert n
    return log


@sample(2)
def class_inside(n):
    class Local(Base):
        factor = n

        def value(self, k):
            return super().value(k) * self.factor

    return Local().value(3)


@sample(1)
def many_constants_and_jumps(n):
    a = [n + 1000, n + 1007, n + 1009]
    total = 0
    for value in a:
        if value % 2:
            total += value * 3 - 7 + (value // 3) * 11 + (value % 5) * 13 + (value ^ 21) + (value & 77) + (value | 5)
            total -= value * 5 - 9 + (value // 7) * 17 + (value % 9) * 19 + (value ^ 23) + (value & 79) + (value | 6)
            total += value * 7 - 8 + (value // 5) * 23 + (value % 3) * 29 + (value ^ 25) + (value & 71) + (value | 7)
            total -= value * 9 - 6 + (value // 9) * 31 + (value % 7) * 37 + (value ^ 27) + (value & 73) + (value | 8)
            if total % 1001 == 1:
                continue
        elif value > 1008:
            break
        else:
            total += max(value, total, key=lambda v: v % (n + 6))
            total += value * 2 - 1 + (value // 2) * 41 + (value % 4) * 43 + (value ^ 29) + (value & 75) + (value | 9)
    return total
