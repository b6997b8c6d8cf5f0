"""Exceptions in detail: fields, contexts, notes, groups, what blocks do with them."""

import contextlib
import sys

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class Problem(Exception):
    def __init__(self, msg, code=0):
        super().__init__(msg)
        self.code = code

    def __str__(self):
        return f"P({self.args[0]}, {self.code})"


class Sub(Problem):
    pass


class CM:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, t, v, tb):
        self.log.append((t.__name__ if t else None, str(v) if v else None))
        return self.swallow


class Closer:
    def __init__(self):
        self.n = 0

    def close(self):
        self.n += 1


@program(A)
def try_else_finally(a):
    log = []
    for k in range(3):
        try:
            if k == 1:
                raise ValueError("v")
            log.append("body")
        except ValueError as e:
            log.append(str(e))
            continue
        else:
            log.append("else")
        finally:
            log.append("fin")
    return a * len(log), log


@program(A)
def raise_from(a):
    try:
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise Problem("x", 3) from e
    except Problem as p:
        return (
            a * p.code,
            str(p),
            repr(p),
            type(p.__cause__).__name__,
            p.__suppress_context__,
            type(p.__context__).__name__,
        )


@program(A, graphs=0)
def context(a):
    try:
        try:
            raise KeyError("k")
        except KeyError:
            raise ValueError("v")
    except ValueError as e:
        return a, type(e.__context__).__name__, e.__cause__, e.__suppress_context__, str(e.__context__)


@program(A, graphs=0)
def raise_from_none(a):
    try:
        try:
            raise KeyError("k")
        except KeyError:
            raise ValueError("v") from None
    except ValueError as e:
        return a, type(e.__context__).__name__, e.__cause__, e.__suppress_context__


@program(A)
def reraise(a):
    def f():
        try:
            raise Sub("s", code=2)
        except Problem:
            raise

    try:
        f()
    except Sub as e:
        return a * e.code, isinstance(e, Problem), e.args


@program(A)
def return_in_finally(a):
    def f():
        try:
            return 1
        finally:
            return 2

    def g():
        for i in range(3):
            try:
                continue
            finally:
                pass
        return i

    def h():
        try:
            raise ValueError
        finally:
            return 5

    return a * f() * g() * h()


@program(A, graphs=0)
def except_tuple_and_name_cleared(a):
    try:
        [][0]
    except (KeyError, IndexError) as e:
        m = str(e)
    try:
        e  # noqa: F821 - unbound is what is tested
    except UnboundLocalError:
        m += "!"
    return a, m


@program(A, graphs=0)
def except_dynamic(a):
    kinds = (ValueError,) + (KeyError,)
    try:
        {}["q"]
    except kinds as e:
        return a, repr(e), e.args


@program(A, graphs=0)
def exc_in_except_str(a):
    out = []
    for e in (
        KeyError("a"),
        ValueError(),
        ValueError(1, 2),
        OSError(2, "no"),
        StopIteration(3),
        Exception("x"),
        KeyError(),
        UnicodeDecodeError("utf8", b"a", 0, 1, "bad"),
        SystemExit(3),
        AttributeError("x", name="n", obj=1),
        ImportError("m", name="q"),
    ):
        out.append((str(e), repr(e), e.args))
    return a, out


@program(A, graphs=0)
def exc_attrs(a):
    e = OSError(2, "no", "f.txt")
    f = StopIteration(7)
    g = AttributeError("x", name="n", obj=1)
    h = ImportError("m", name="q", path="p")
    k = SystemExit(3)
    return a, e.errno, e.strerror, e.filename, f.value, g.name, g.obj, h.name, h.path, h.msg, k.code


@program(A, graphs=0)
def exc_notes(a):
    e = ValueError("x")
    e.add_note("n1")
    try:
        raise e
    except ValueError as f:
        return a, f.__notes__, f is e


@program(A, graphs=0)
def exc_eq(a):
    e = ValueError("x")
    return a, e == e, e == ValueError("x"), e != ValueError("x"), bool(e), {e: 1}[e]


@program(A, graphs=0)
def exception_group(a):
    out = []
    try:
        raise ExceptionGroup("g", [ValueError("v"), TypeError("t"), KeyError("k")])
    except* ValueError as eg:
        out.append(("V", len(eg.exceptions), str(eg)))
    except* (TypeError, KeyError) as eg:
        out.append(("T", [type(e).__name__ for e in eg.exceptions], eg.message))
    return a, out


@program(A, graphs=0)
def exception_group_naked(a):
    try:
        raise ValueError("q")
    except* ValueError as eg:
        r = (eg.message, [str(e) for e in eg.exceptions])
    return a, r


@program(A, graphs=0)
def exception_group_rest(a):
    r = []
    try:
        try:
            raise ExceptionGroup("g", [ValueError("v"), TypeError("t")])
        except* ValueError:
            r.append(1)
    except ExceptionGroup as e:
        r.append([type(x).__name__ for x in e.exceptions])
    return a, r


@program(A, graphs=0)
def exception_group_split(a):
    g = ExceptionGroup("g", [ValueError("v"), ExceptionGroup("h", [TypeError("t"), ValueError("w")])])
    m, r = g.split(ValueError)
    return a, len(m.exceptions), len(r.exceptions), g.subgroup(KeyError), str(g), repr(m)


@program(A, graphs=0)
def sys_exc_info(a):
    try:
        raise ValueError("v")
    except ValueError:
        t, v, tb = sys.exc_info()
        r = (t.__name__, str(v))
    return a, r, sys.exc_info()


@program(A, graphs=0)
def nested_handlers(a):
    log = []
    try:
        try:
            raise ValueError("1")
        except ValueError:
            try:
                raise KeyError("2")
            except KeyError as e:
                log.append(str(e))
            raise
    except ValueError as e:
        log.append(str(e))
    return a, log


@program(A, graphs=0)
def with_traceback(a):
    try:
        raise ValueError("x").with_traceback(None)
    except ValueError as e:
        return a, e.__traceback__ is not None


@program(A, graphs=0)
def exc_pass_through_frames(a):
    def f(n):
        if n == 0:
            raise Sub("deep", n)
        try:
            return f(n - 1)
        finally:
            log.append(n)

    log = []
    try:
        f(3)
    except Sub as e:
        log.append(e.code)
    return a, log


@program(A)
def exc_new_override(a):
    class E(Exception):
        def __new__(cls, *args):
            self = super().__new__(cls, *args)
            self.extra = 5
            return self

    try:
        raise E(1, 2)
    except E as e:
        return a * e.extra, e.args


@program(A)
def with_basic(a):
    log = []
    with CM(log, True) as c, CM(log) as d:
        raise ValueError("q")
    with CM(log):
        pass
    return a * len(log), log


@program(A)
def with_return(a):
    log = []

    def f():
        with CM(log):
            return 7

    def g():
        for i in range(5):
            with CM(log):
                if i == 1:
                    continue
                if i == 2:
                    break
        return i

    return a * f() * g(), log


@program(A)
def contextmanager(a):
    log = []

    @contextlib.contextmanager
    def cm(k):
        log.append("enter")
        try:
            yield k
        except ValueError as e:
            log.append(str(e))
        finally:
            log.append("exit")

    with cm(3) as k:
        r = a * k
    with cm(4):
        raise ValueError("swallowed")
    try:
        with cm(5):
            raise KeyError("through")
    except KeyError:
        log.append("K")
    return r, log


@program(A)
def contextdecorator(a):
    log = []

    @contextlib.contextmanager
    def cm():
        log.append("in")
        yield
        log.append("out")

    @cm()
    def f(x):
        return x + 1

    class D(contextlib.ContextDecorator):
        def __enter__(self):
            log.append("D")
            return self

        def __exit__(self, *e):
            return False

    @D()
    def g(x):
        return x * 2

    return f(g(f(a))), log


@program(A)
def exitstack(a):
    log = []
    with contextlib.ExitStack() as s:
        s.enter_context(CM(log))
        s.callback(log.append, "cb")
        s.push(lambda *e: log.append("push"))
        k = s.enter_context(contextlib.nullcontext(5))
    return a * k, log


@program(A, graphs=0)
def exitstack_exc(a):
    log = []
    with contextlib.ExitStack() as s:
        s.enter_context(CM(log, True))
        s.callback(log.append, "cb")
        raise ValueError("inner")
    return a, log


@program(A, graphs=0)
def exitstack_popall(a):
    log = []
    with contextlib.ExitStack() as s:
        s.callback(log.append, 1)
        t = s.pop_all()
    log.append(0)
    t.close()
    return a, log


@program(A)
def suppress(a):
    with contextlib.suppress(KeyError, IndexError):
        {}["a"]
    with contextlib.suppress():
        pass
    return a + 1


@program(A)
def closing(a):
    c = Closer()
    with contextlib.closing(c) as d:
        d.n += 10
    return a * c.n


@program(A, graphs=0)
def nullcontext(a):
    with contextlib.nullcontext() as n, contextlib.nullcontext(a) as b:
        pass
    return b, n


@program(A, graphs=0)
def cm_generator_raises(a):
    @contextlib.contextmanager
    def cm():
        yield 1
        raise ValueError("late")

    try:
        with cm():
            pass
    except ValueError as e:
        return a, str(e)


@corpus.parametrize()
def test_program(program):
    check(program)
