"""Functions and what they hold: cells, globals, defaults, star arguments, decorators, functools."""

import functools
import operator
from functools import cached_property, partial, partialmethod, reduce, singledispatch, wraps

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
BOX = {"n": 1, "log": []}
FACTOR = 2.0


def make_counter():
    count = 0

    def bump(x):
        nonlocal count
        count += 1
        return x + count

    return bump, lambda: count


def twice(function):
    @wraps(function)
    def both(*args, **kwargs):
        return function(function(*args, **kwargs), **kwargs)

    return both


def times(n):
    def decorate(function):
        def repeated(x):
            for _ in range(n):
                x = function(x)
            return x

        return repeated

    return decorate


@twice
def shift(x, by=1.0):
    return x + by


@times(3)
def double(x):
    return x * 2


class Traced:
    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args)


@Traced
def traced(x):
    return x - 1


@singledispatch
def described(x):
    return 1.0


@described.register
def _(x: int):
    return 2.0


@functools.lru_cache(maxsize=8)
def table_size(n):
    return n * 2


class Lazy:
    def __init__(self, x):
        self.x = x

    @cached_property
    def total(self):
        return self.x.sum()

    def scaled(self, k, by=1.0):
        return self.x * k * by

    halved = partialmethod(scaled, 0.5)


@program(A)
def reads_a_cell(a):
    k = 3.0

    def inner():
        return a * k

    return inner()


@program(A)
def writes_a_cell_in_a_loop(a):
    total = torch.zeros(2, 3)

    def add(x):
        nonlocal total
        total = total + x

    for i in range(3):
        add(a * i)
    return total


@program(A)
def cells_are_shared_between_closures(a):
    n = 1

    def up():
        nonlocal n
        n *= 3

    def get():
        return n

    up()
    up()
    return a * get(), n


@program(A)
def late_binding_in_a_loop(a):
    fs = [lambda x: x * i for i in range(3)]  # noqa: B023 - what is tested
    return sum(f(a) for f in fs)


@program(A)
def early_binding_by_default(a):
    fs = [lambda x, i=i: x * i for i in range(3)]
    return sum(f(a) for f in fs)


@program(A)
def counter_made_inside(a):
    bump, get = make_counter()
    a = bump(bump(a))
    return a * get()


@program(A)
def returned_closures_share_a_cell(a):
    bump, get = make_counter()
    a = bump(a)
    return a, bump, get


@program(make=lambda: (A.clone(), *make_counter()), graphs=1, stable=False)
def cell_of_an_argument_is_written(a, bump, get):
    return bump(a) * get()


@program(make=lambda: (A.clone(), *make_counter()), graphs=1)
def cell_of_an_argument_is_read(a, bump, get):
    return a * (get() + 1)


@program(A)
def cell_emptied_and_filled(a):
    if a.shape[0] == 2:
        k = 2.0

    def inner(x):
        return x * k

    k = 5.0
    return inner(a)


@program(A)
def deleted_local_is_unbound(a):
    k = 1.0
    del k
    try:
        return a * k  # noqa: F821 - what is tested
    except UnboundLocalError:
        return a - 1


@program(A)
def recursive_closure(a):
    def walk(x, depth):
        return x if depth == 0 else walk(x * 2, depth - 1)

    return walk(a, 3)


@program(A)
def mutually_recursive_closures(a):
    def even(n):
        return a if n == 0 else odd(n - 1)

    def odd(n):
        return -a if n == 0 else even(n - 1)

    return even(4) + odd(3)


@program(A, state=lambda: BOX)
def global_dict_through_a_closure(a):
    def note(value):
        BOX["log"].append(value)
        BOX["n"] += 1

    note(a.shape[0])
    note("x")
    return a * BOX["n"]


@program(A)
def default_is_evaluated_once(a):
    def f(x, k=FACTOR, *, j=FACTOR * 2):
        return x * k + j

    return f(a) + f(a, 1.0) + f(a, j=0.0)


@program(A)
def defaults_are_read_and_changed(a):
    def f(x, k=1.0):
        return x * k

    f.__defaults__ = (4.0,)
    return f(a)


@program(A)
def keyword_only_defaults_of_a_closure(a):
    def make(k):
        def f(x, *, scale=k):
            return x * scale

        return f

    return make(2.0)(a) + make(3.0)(a, scale=0.5)


@program(make=lambda: (A.clone(), B.clone(), 3))
def star_arguments_of_the_root(*args):
    return args[0] * args[1] + args[2], len(args)


@program(A)
def keywords_are_forwarded(a):
    def inner(x, *, alpha=1, beta=2):
        return x * alpha + beta

    def outer(x, **kwargs):
        kwargs.setdefault("beta", 5)
        return inner(x, **kwargs)

    return outer(a) + outer(a, alpha=3) + outer(a, alpha=2, beta=0)


@program(A)
def many_star_calls(a):
    def f(*args, **kwargs):
        return sum(args) + sum(kwargs.values()), tuple(kwargs)

    more = {"c": a}
    return f(*[a, a], a, *(a,), b=a, **more, **{"d": 1.0})


@program(A)
def star_in_the_middle_of_a_display(a):
    xs = [a, a + 1]
    both = [*xs, *xs, a * 2]
    keys = {**{"x": 1}, "y": 2, **{"x": 3}}
    return torch.stack(both).sum(0) * keys["x"], {*[1, 2], 2}, (*xs,)


@program(A)
def duplicate_keyword_is_an_error(a):
    def f(x, k=1):
        return x * k

    try:
        return f(a, **{"k": 2}, **{"k": 3})
    except TypeError:
        return a + 7


@program(A)
def missing_argument_is_an_error(a):
    def f(x, y, *, z):
        return x

    words = []
    for call in (lambda: f(a), lambda: f(a, 1), lambda: f(a, 1, z=2, q=3), lambda: f(a, 1, 2, z=1)):
        try:
            call()
        except TypeError as error:
            words.append(str(error))
    return a * len(words), words


@program(A)
def positional_only_by_keyword_is_an_error(a):
    def f(x, /, **kwargs):
        return kwargs

    try:
        (lambda x, /: x)(x=a)
    except TypeError:
        return a * 2, f(a, x=1)


@program(A)
def decorator_with_wraps(a):
    return shift(a, by=2.0), shift.__name__, shift.__wrapped__(a)


@program(A)
def decorator_with_arguments(a):
    return double(a)


@program(A, state=lambda: vars(traced), stable=False)
def decorator_that_is_an_object(a):
    return traced(traced(a))


@program(A)
def decorator_applied_inside(a):
    @twice
    def f(x, by=0.5):
        return x * by

    @times(2)
    def g(x):
        return x + 1

    return f(g(a))


@program(A)
def partial_of_partial(a):
    f = partial(partial(lambda x, y, z=0: x * y + z, a), z=5)
    return f(2.0) + f(y=3.0, z=1) + f.keywords["z"] + len(f.args)


@program(make=lambda: (A.clone(), partial(torch.add, alpha=2)))
def partial_as_an_argument(a, f):
    return f(a, a)


@program(make=lambda: (A.clone(), [partial(operator.mul, 3.0), partial(operator.add, 1.0)]))
def partials_in_a_list(a, fs):
    for f in fs:
        a = f(a)
    return a


@program(A)
def reduce_with_lambda_and_start(a):
    return reduce(lambda x, y: x * 2 + y, [1.0, 2.0, 3.0], a)


@program(A)
def lru_cache_on_constants(a):
    return a * table_size(a.shape[0]) + table_size(5)


@program(A)
def single_dispatch(a):
    return a * described(3) + described("x")


@program(A)
def cached_property_of_a_new_object(a):
    lazy = Lazy(a * 2)
    return lazy.total + lazy.total, "total" in lazy.__dict__


@program(make=lambda: (Lazy(A.clone()),))
def cached_property_of_an_argument(lazy):
    return lazy.total * 2 + lazy.total


@program(make=lambda: (Lazy(A.clone()),))
def partial_method(lazy):
    return lazy.halved() + lazy.halved(by=3.0)


@program(A)
def operator_helpers(a):
    get, name, call = operator.itemgetter(1), operator.attrgetter("shape"), operator.methodcaller("sum", 0)
    return get([1.0, 2.0]) * call(a), name(a)[0], operator.itemgetter(0, 2)("abc"), operator.index(3)


@program(A)
def function_attributes(a):
    def f(x):
        f.count += 1
        return x * f.count

    f.count = 1
    return f(a) + f(a), f.count, f.__name__


@program(A)
def functions_in_a_dict(a):
    table = {"relu": torch.relu, "neg": operator.neg, "own": lambda x: x + 1, "method": a.mul}
    return table["relu"](a) + table["neg"](a) + table["own"](a) + table["method"](2)


@program(A)
def conditional_expression_chooses_a_function(a):
    f = torch.sin if a.dim() == 2 else torch.cos
    return (f if f is not None else torch.tan)(a)


@program(A)
def immediately_called_lambda(a):
    return (lambda x, *rest, k=2, **more: x * k + len(rest) + len(more))(a, 1, 2, z=3)


@program(A)
def compose(a):
    def chain(*fs):
        return reduce(lambda f, g: lambda x: g(f(x)), fs)

    return chain(torch.relu, lambda x: x + 1, torch.exp)(a)


@program(A)
def currying(a):
    return (lambda x: lambda y: lambda z: x * y + z)(a)(2.0)(3.0)


@program(A)
def callable_checks(a):
    return a * sum([callable(print), callable(3), callable(lambda: 0), callable(Lazy), callable(Lazy(a))])


@program(A)
def locals_in_a_nested_function(a):
    def f(x, y=2):
        return sorted(locals())

    return a + len(f(a))


@program(A)
def global_function_is_looked_up_late(a):
    return defined_below(a) + 1


def defined_below(x):
    return x * 10


@program(A)
def nested_nonlocal_two_levels(a):
    n = 1

    def middle():
        def inner():
            nonlocal n
            n += 10

        inner()
        return n

    return a * middle() + n


@program(A)
def class_body_closure(a):
    k = 2.0

    def method(self, x):
        return x * k + self.b

    holder = type("Holder", (), {"b": 1.0, "go": method})()
    return holder.go(a)


@program(A)
def map_over_methods(a):
    return sum(map(torch.Tensor.sum, [a, a * 2])) + sum(x.sum() for x in map(a.mul, [1.0, 2.0]))


@program(A)
def sorted_by_closure(a):
    weights = {"x": 3, "y": 1, "z": 2}
    order = sorted(weights, key=lambda name: weights[name])
    return a * weights[order[0]], order, max(weights, key=weights.get)


@program(A)
def bound_methods_compare_and_call(a):
    xs = []
    push = xs.append
    push(1)
    push(2)
    return a * len(xs), push.__self__ is xs


@corpus.parametrize()
def test_program(program):
    check(program)
