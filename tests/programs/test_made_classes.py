"""Classes that a program makes, and attributes of classes that it sets."""

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class Prop:
    def __init__(self):
        self._x = 1

    @property
    def x(self):
        "docx"
        return self._x

    @x.setter
    def x(self, v):
        self._x = v * 2

    @x.deleter
    def x(self):
        self._x = -1

    ro = property(lambda self: 5)
    wo = property(None, lambda self, v: setattr(self, "_w", v))


class Attr:
    count = 0
    table = {}


class Reg:
    count = 0
    items = []

    def __init__(self):
        Reg.count += 1
        type(self).items.append(Reg.count)


class Sub(Reg):
    @classmethod
    def bump(cls):
        cls.count += 10
        return cls.count


@program(A)
def type3(a):
    made = type("K", (), {"x": 5, "f": lambda self: self.x})
    return a * made().f(), made.__name__


@program(A)
def class_inside(a):
    n = 3

    class L:
        k = n

        def __init__(self, v):
            self.v = v

        def go(self):
            return self.v * self.k * n

    class M(L):
        def go(self):
            return super().go() + 1

    return L(a).go(), M(a).go(), L.__name__, L.__qualname__, isinstance(M(1), L)


@program(A)
def class_inside_attr(a):
    class Cfg:
        lr = 0.1
        dims = [1, 2]

    return a * Cfg.lr, Cfg.dims


@program(A, graphs=0)
def class_returned(a):
    class R:
        def __init__(self):
            self.x = a

    return R().x


@program(A)
def class_attr_write(a):
    Attr.count = 5
    Attr.count += 1
    return a * Attr.count


@program(A)
def class_attr_dict(a):
    Attr.table["x"] = 3
    return a * Attr.table["x"]


@program(A)
def class_attr_del(a):
    Attr.tmp = 4
    r = a * Attr.tmp
    del Attr.tmp
    return r, hasattr(Attr, "tmp")


@program(A, graphs=0)
def class_dict(a):
    return (
        a,
        "count" in Attr.__dict__,
        sorted(k for k in vars(Prop) if not k.startswith("__")),
        Attr.__module__,
        Prop.__init__.__name__,
        getattr(Attr, "count"),
        hasattr(Attr, "zz"),
        Attr.__dict__["table"],
    )


@program(A)
def class_attr_inherit(a):
    class B:
        x = 1

    class C(B):
        pass

    B.x = 5
    r = C.x
    C.x = 7
    return a * r, B.x, C.x, C().x


@program(A)
def classmethod_write(a):
    r = Sub.bump(), Sub.bump()
    del Sub.count
    return a * r[0], r, Sub.count


@program(A)
def setattr_class(a):
    setattr(Reg, "extra", a)
    r = Reg.extra * 2
    delattr(Reg, "extra")
    return r, hasattr(Reg, "extra"), getattr(Reg, "extra", 3)


@program(A)
def monkeypatch_method(a):
    def new(self):
        return 42

    class K:
        def m(self):
            return 1

    k = K()
    x = k.m()
    K.m = new
    return a * x, k.m(), K().m()


@program(A)
def property_inside(a):
    class P:
        def __init__(self):
            self._v = 1

        @property
        def v(self):
            return self._v

        @v.setter
        def v(self, x):
            self._v = x * 2

        @staticmethod
        def s(x):
            return x + 1

        @classmethod
        def c(cls, x):
            return cls, x

    p = P()
    p.v = 4
    return a * p.v, P.s(1), P.c(3)[1], P.c(1)[0] is P


@program(A)
def class_escapes(a):
    class R:
        tag = "t"

        def __init__(self, v):
            self.v = v

        def twice(self):
            return self.v * 2

    r = R(a)
    return r.twice(), r.tag, R.__name__, type(r).__qualname__


@program(A)
def exception_class_inside(a):
    class MyErr(ValueError):
        def __init__(self, m, code):
            super().__init__(m)
            self.code = code

    try:
        raise MyErr("x", 5)
    except ValueError as e:
        return a * e.code, str(e), type(e).__name__, isinstance(e, MyErr)


@program(A)
def closure_class(a):
    k = 3

    def make(n):
        class Z:
            factor = n * k

            def go(self, x):
                return x * self.factor + k

        return Z

    return make(2)().go(a), make(3).factor


@corpus.parametrize()
def test_program(program):
    check(program)
