"""Breaks inside inlined callees: the callee goes on, then its callers, in one graph."""

import contextlib
import functools
import inspect
import traceback

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported
from plumbline.compiler.base.events import Broke, Captured, recording
from support.programs import Corpus, check, compiled
from support.sameness import assert_alike

corpus = Corpus()
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
SEEN = []
COUNT = {"n": 0}


class Problem(Exception):
    pass


class Note:
    def __init__(self, log, word, swallow=False):
        self.log, self.word, self.swallow = log, word, swallow

    def __enter__(self):
        self.log.append(f"enter {self.word}")
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(f"exit {self.word} {kind.__name__ if kind else None}")
        return self.swallow


class Loud(Note):
    def __enter__(self):
        self.log.append("entering")
        plumbline.graph_break()
        return super().__enter__()

    def __exit__(self, *error):
        self.log.append("leaving")
        plumbline.graph_break()
        return super().__exit__(*error)


def broken(x):
    y = x * 2
    plumbline.graph_break()
    return y + 1


def twice(x):
    y = broken(x + 1)
    plumbline.graph_break()
    return y * 3


def refuses(x):
    raise Problem(float(x.sum()) > -100)


def sized(x, *rest, k=2, **more):
    y = x * k + len(rest)
    plumbline.graph_break()
    return y + sum(rest) + sum(more.values())


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) + 1

    return wrapper


@wrapped
def decorated(x):
    y = x - 1
    plumbline.graph_break()
    return y * x


def recursive(x, n):
    x = x + n
    if n == 0:
        return x
    plumbline.graph_break()
    return recursive(x, n - 1) * 2


def hidden_state(x, item):
    COUNT["n"] += 1
    y = x * COUNT["n"]
    plumbline.graph_break()
    COUNT["n"] += 1
    item.append(COUNT["n"])
    return y + COUNT["n"]


class Counter:
    def __init__(self):
        self.n = 0

    def bump(self, x):
        self.n += 1
        y = x * self.n
        plumbline.graph_break()
        self.n += 1
        return y + self.n

    def __call__(self, x):
        return self.bump(x) - 1


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        torch.nn.init.constant_(self.linear.weight, 0.5)
        torch.nn.init.constant_(self.linear.bias, 0.1)

    def forward(self, x):
        y = self.linear(x)
        plumbline.graph_break()
        return torch.relu(y)


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(Inner(), Inner())

    def forward(self, x):
        return self.layers(x * 2) + 1


class Built:
    def __init__(self, x, log):
        self.log = log
        self.x = x * 2
        plumbline.graph_break()
        self.y = self.x + 1
        log.append("built")


class BuiltOnIt(Built):
    def __init__(self, x, log):
        super().__init__(x, log)
        self.z = self.y * 3
        plumbline.graph_break()
        if len(log) > 1:
            raise Problem("too many")


class Child(Counter):
    def bump(self, x):
        return super().bump(x) * 2


@program(A, list, graphs=2, breaks=1)
def break_inside_an_initialiser(a, make):
    log = make()
    made = Built(a, log)
    return made.x + made.y, log, made.log is log


@program(A, lambda: [], graphs=3, breaks=2)
def breaks_in_an_initialiser_and_the_one_above(a, make):
    made = BuiltOnIt(a, make())
    return made.x + made.y + made.z


@program(A, lambda: ["before"], graphs=3, breaks=2)
def initialiser_raises_after_its_break(a, make):
    log = make()
    try:
        return BuiltOnIt(a, log).z, log
    except Problem:
        return a - len(log), log


@program(A, graphs=2, breaks=1)
def tails_share_a_graph(a):
    return broken(a) * 3


@program(A, graphs=3, breaks=2)
def two_breaks_in_one_chain(a):
    return twice(a) - 1


@program(A, graphs=2, breaks=1)
def three_calls_deep(a):
    def middle(x):
        return broken(x - 1) * 2

    def outer(x):
        return middle(x) + x

    return outer(a) * a


@program(A, graphs=3, breaks=2)
def callee_after_callee(a):
    return broken(a) + broken(a * 2)


@program(A, graphs=2, breaks=1)
def operands_wait_in_the_caller(a):
    return (a + 1) * broken(a) - (a - 1)


@program(A, graphs=2, breaks=1)
def arguments_wait_in_the_caller(a):
    return torch.where(a > 0, broken(a), a)


@program(A, graphs=3, breaks=2, changed=lambda: (A - 5,))
def callee_decides_twice(a):
    def decide(x):
        if x.sum() > 0:
            return x * 2
        return x * 3

    return decide(a) + decide(a + 1)


@program(A, B, graphs=2, breaks=1)
def stars_and_defaults(a, b):
    return sized(a, 1, 2, z=3) + b


@program(A, graphs=2, breaks=1)
def star_call_of_a_callee(a):
    args, more = (a, 1), {"k": 3}
    return sized(*args, **more) * 2


@program(A, graphs=2, breaks=1)
def decorated_callee(a):
    return decorated(a) * 2


@program(A, graphs=2, breaks=1)
def partial_callee(a):
    return functools.partial(sized, k=4)(a) * 2


@program(A, graphs=2, breaks=1)
def lambda_callee(a):
    scale = 3
    double = lambda x: broken(x) * scale  # noqa: E731 - a lambda is what is tested
    return double(a) + scale


@program(A, graphs=2, breaks=1)
def method_callee(a):
    counter = Counter()
    return counter.bump(a) * 2, counter.n


@program(make=lambda: (A.clone(), Counter()), graphs=2, breaks=1)
def method_of_an_argument(a, counter):
    b = counter.bump(a)
    counter.n *= 10
    return b * 2, counter.n


@program(A, graphs=2, breaks=1)
def callable_object(a):
    counter = Counter()
    return counter(a) * counter.n


@program(A, graphs=2, breaks=1)
def inherited_method(a):
    child = Child()
    return child.bump(a) + child.n


@program(make=lambda: (Outer(), A.clone()), graphs=3, breaks=2)
def module_calls(net, a):
    return net(a) * 2


@program(make=lambda: (Outer(), A.clone().requires_grad_()), graphs=3, breaks=2, backward=True)
def gradients_through_module_calls(net, a):
    return net(a) * 2


@program(A, graphs=4, breaks=3)
def recursion(a):
    return recursive(a, 3) + 1


@program(A, graphs=9, breaks=8)
def deep_recursion(a):
    return recursive(a, 7) + 1


@program(A, graphs=2, breaks=1, state=lambda: COUNT)
def globals_are_seen_by_both(a):
    COUNT["n"] = 5
    items = [1]
    b = hidden_state(a, items)
    items.append(COUNT["n"])
    COUNT["n"] = 0
    return b * 2, items


@program(A, graphs=2, breaks=1)
def nonlocal_is_written_on_both_sides(a):
    total = 1

    def add(x):
        nonlocal total
        total += 1
        y = x * total
        plumbline.graph_break()
        total += 1
        return y + total

    b = add(a)
    total *= 2
    return b * total, total


@program(A, graphs=2, breaks=2)
def closure_of_a_closure(a):
    log = []

    def outer(x):
        scale = 2

        def inner(y):
            nonlocal scale
            log.append(scale)
            plumbline.graph_break()
            scale += 1
            return y * scale

        return inner(x) + inner(x) + scale

    return outer(a), log


@program(make=lambda: ([1], {"k": A.clone()}), graphs=2, breaks=1)
def containers_of_the_caller(items, table):
    def fill(some):
        some.append(2)
        table["k"] = table["k"] * 2
        plumbline.graph_break()
        some.append(3)
        table["j"] = table["k"] + len(some)
        return some

    same = fill(items)
    same.append(4)
    return same is items, table["j"] * 2, items


@program(make=lambda: (A.clone(),), graphs=2, breaks=1)
def tensor_is_changed_on_both_sides(a):
    def change(x):
        x.add_(1)
        plumbline.graph_break()
        x.mul_(2)
        return x

    return change(a) is a, a + 1


@program(A, graphs=2, breaks=1)
def caller_catches_what_the_tail_raises(a):
    def f(x):
        y = x * 2
        plumbline.graph_break()
        if y.dim() == 2:
            raise Problem("two")
        return y

    try:
        b = f(a)
    except Problem as problem:
        b = a * len(problem.args[0])
    return b + 1


@program(A, graphs=2, breaks=1)
def caller_catches_what_the_break_raises(a):
    def f(x):
        y = x * 2
        return int("no number", base=int((y * 0).sum()) + 10)

    try:
        return f(a)
    except ValueError:
        a = a * 5
    return a + 1


@program(A, graphs=2, breaks=1)
def handler_two_frames_up(a):
    log = []

    def f(x):
        with Note(log, "f"):
            y = x + 1
            plumbline.graph_break()
            raise Problem(y.dim())

    def g(x):
        log.append("g")
        return f(x) * 2

    try:
        b = g(a)
    except Problem as problem:
        b = a * problem.args[0]
    return b, log


@program(A, graphs=2, breaks=1)
def finally_in_both(a):
    log = []

    def f(x):
        try:
            y = x * 2
            plumbline.graph_break()
            return y + 1
        finally:
            log.append("inner")

    try:
        b = f(a)
    finally:
        log.append("outer")
    return b * 2, log


@program(A, graphs=2, breaks=1)
def blocks_in_both(a):
    log = []

    def f(x):
        with Note(log, "inner"):
            y = x * 2
            plumbline.graph_break()
            log.append("on")
            return y + 1

    with Note(log, "outer"):
        b = f(a)
    return b * 2, log


@program(A, graphs=2, breaks=1)
def block_of_the_caller_swallows(a):
    log = []

    def f(x):
        log.append("f")
        plumbline.graph_break()
        log.append("on")
        raise Problem("swallowed")

    b = a * 2
    with Note(log, "outer", swallow=True):
        log.append("in")
        b = f(b) + 1
    return b * 3, log


@program(A, graphs=2, breaks=2)
def enter_and_exit_break(a):
    log = []
    with Loud(log, "loud") as note:
        a = a * 2
        log.append(note.word)
    return a + 1, log


@program(A, graphs=2, breaks=1)
def grad_mode_of_the_caller(a):
    a = a.clone().requires_grad_()

    def f(x):
        y = x * 2
        plumbline.graph_break()
        return y * x

    with torch.no_grad():
        b = f(a)
    return b.requires_grad, (a * 2).requires_grad, b + 1


@program(A, graphs=2, breaks=1)
def grad_mode_of_the_callee(a):
    a = a.clone().requires_grad_()

    def f(x):
        with torch.no_grad():
            y = x * 2
            plumbline.graph_break()
            y = y + x
        return y + x

    b = f(a)
    return b.requires_grad, b.detach() * 2


@program(A, graphs=2, breaks=1)
def caller_deletes_and_rebinds(a):
    b = a * 2
    c = broken(b)
    del b
    a = c
    return a - 1


@program(A, graphs=2, breaks=1)
def unpacked_result(a):
    def pair(x):
        x = x * 2
        plumbline.graph_break()
        return x * 2, x + 1

    def halves(x):
        y = x + 1
        first, second = pair(y)
        return second, first

    low, high = halves(a)
    return low - high


@program(make=lambda: ([A.clone(), B.clone()],), graphs=3, breaks=2)
def loop_of_the_caller(items):
    out = []
    for item in items:
        out.append(broken(item) * 2)
    return out


@program(A, breaks=1)
def not_a_plain_call(a):
    def key(x):
        y = x * 2
        plumbline.graph_break()
        return y

    return sorted([3, 1, 2], key=key), a + 1


@program(A, breaks=1)
def result_is_thrown_away(a):
    log = []

    def f(x):
        log.append(x.dim())
        plumbline.graph_break()
        log.append("on")

    f(a)
    return a * 2, log


@program(A, graphs=2, breaks=1)
def context_manager_function_around_a_callee(a):
    log = []

    @contextlib.contextmanager
    def noted():
        log.append("in")
        yield
        log.append("out")

    with contextlib.ExitStack() if a.dim() > 5 else contextlib.nullcontext():
        b = broken(a)
    with noted():
        c = b * 2
    return c, log


@corpus.parametrize()
def test_program(program):
    check(program)


def counted(function, calls):
    with recording() as events:
        run = compiled(function)
        for call in calls:
            assert_alike(function(*call), run(*call))
    return [event for event in events if isinstance(event, Captured)], [e for e in events if isinstance(e, Broke)]


def test_break_is_attributed_to_the_innermost_line():
    def inner(x):
        y = x * 2
        plumbline.graph_break()
        return y

    _, breaks = counted(lambda x: inner(x) + 1, [(A,)])
    assert [event.reason for event in breaks] == ["explicit-break"]
    place = breaks[0].origin
    assert (place.function, place.line) == ("inner", inner.__code__.co_firstlineno + 2)
    assert place.caller.function == "<lambda>"


def test_traceback_shows_the_line_of_the_callee():
    def inner(x):
        y = x * 2
        int("no number", base=int((y * 0).sum()) + 10)

    def outer(x):
        return inner(x) + 1

    try:
        compiled(outer)(A)
    except ValueError as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
    assert (last.name, last.lineno) == ("inner", inner.__code__.co_firstlineno + 2)


def test_loop_with_a_break_in_a_callee_converges_and_does_not_nest_calls():
    depths = set()

    @plumbline.disable
    def note():
        depths.add(len(inspect.stack(0)))

    def inner(x):
        y = x + 1
        note()
        return y * 2

    def outer(x, n):
        while n > 0:
            n = n - 1
            x = inner(x)
        return x

    outer_compiled = compiled(outer)
    with recording() as events:
        result = outer_compiled(A * 0, torch.tensor(40.0))
    assert torch.equal(result, outer(A * 0, torch.tensor(40.0)))
    assert sum(isinstance(event, Captured) for event in events) <= 4
    depths.clear()
    outer_compiled(A * 0, torch.tensor(40.0))
    assert len(depths) <= 2


def test_recursion_does_not_make_units_without_bound():
    captures, _ = counted(recursive, [(A, 30)])
    assert len(captures) <= 40


def test_full_graph_names_the_innermost_line():
    with pytest.raises(Unsupported, match="graph_break") as caught:
        compiled(twice, fullgraph=True)(A)
    assert f":{broken.__code__.co_firstlineno + 2}" in str(caught.value)
