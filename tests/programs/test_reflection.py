"""What a program asks about itself: names, frames, functions, identities."""

import sys
import types

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


class CopyMe:
    def __init__(self, x):
        self.x = x
        self.l = [1]

    def __eq__(self, o):
        return self.x == o.x


GW0 = 3


def helper(x, y=[1]):
    return x


@program(A, graphs=0)
def global_del(a):
    global GD
    GD = 1
    del GD
    try:
        GD
    except NameError as e:
        return a, str(e)


@program(A)
def globals_read(a):
    return a * globals()["GW0"] * GW0, "GW0" in globals(), globals().get("nope", 3), __name__ == globals()["__name__"]


@program(A, graphs=0)
def local_names(a):
    x = 1
    return a, sorted(locals())


@program(A, graphs=0)
def locals_nested(a):
    def f(p, q=2):
        r = 3
        return locals()

    return a, f(1)


@program(A, graphs=0)
def names_of_things(a):
    return a, "append" in dir([]), "x" in dir(CopyMe(1)), "names_of_things" in dir(sys.modules[__name__])


@program(A, graphs=0)
def namespaces_of_things(a):
    return a, vars(CopyMe(1))["x"], sorted(vars(types.SimpleNamespace(p=1)))


@program(A, graphs=0)
def docs_and_names(a):
    def f():
        "docstring"

    return (
        a,
        f.__doc__,
        docs_and_names.__doc__,
        f.__name__,
        f.__qualname__,
        f.__module__,
        f.__defaults__,
        f.__annotations__,
        len.__doc__[:6],
        CopyMe.__doc__,
        f.__code__.co_name,
        f.__dict__,
        f.__kwdefaults__,
        f.__closure__,
    )


@program(A, graphs=0)
def func_attrs(a):
    def f(x, y=2, *, k=3) -> int:
        return x

    f.tag = 5
    f.__name__ = "g"
    f.__doc__ = "D"
    f.__defaults__ = (7,)
    return (
        a,
        f.tag,
        f.__name__,
        f.__doc__,
        f.__defaults__,
        f.__kwdefaults__,
        f.__annotations__,
        hasattr(f, "zz"),
        callable(f),
        f.__dict__,
        f.__code__.co_argcount,
        f.__code__.co_varnames,
    )


@program(A, state=lambda: helper.__dict__)
def func_attr_outer(a):
    helper.n = getattr(helper, "n", 0) + 1
    return a * helper.n, helper(1)


@program(A, graphs=0)
def hash_id(a):
    return a, hash("x") == hash("x"), hash((1, 2)) == hash((1, 2)), id(a) == id(a), hash(1.5), hash(None) == hash(None)


@program(A, graphs=0)
def id_compare(a):
    row = [1]
    m = row
    return a, id(row) == id(m), id(a) != id(row), {id(a): 1}[id(a)]


@corpus.parametrize()
def test_program(program):
    check(program)
