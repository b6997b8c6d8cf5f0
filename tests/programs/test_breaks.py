"""Graph breaks: where they come, what runs before and after, and that state is right at the break."""

import os
import random
import sys
import time

import torch

from support.programs import Corpus, check

corpus = Corpus()
TURNS = 2 if sys.version_info < (3, 12) else 3  # since 3.12 a `while` has its condition twice: before it and at its end
program = corpus.program
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)
LOG = []
CELL = {"seen": 0}


def opaque(x):
    time.sleep(0)
    return x + 1


def noted(value):
    LOG.append(value)
    print(value)


def branchy(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


def deep(x):
    return branchy(x + 1) - 1


@program(A + 2, graphs=2, breaks=1)
def data_dependent_if(a):
    b = a * 2
    if b.sum() > 0:
        b = b + 1
    else:
        b = b - 1
    return b * a


@program(A, graphs=2, breaks=1)
def prints_in_the_middle(a):
    b = a + 1
    print("middle")
    return b * 2


@program(A, B, graphs=3, breaks=2)
def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    print("woo")
    if b.sum() < 0:
        b = b * -1
    return x * b


@program(A, graphs=2, breaks=1)
def item_into_python(a):
    n = a.sum().item()
    return a * n, n


@program(A, graphs=2, breaks=1)
def float_of_a_tensor(a):
    return a * float(a.max())


@program(A, graphs=2, breaks=1)
def unknown_callee_with_graph_around(a):
    b = a * 2
    c = opaque(b)
    return c * 3


@program(A, graphs=2, breaks=1)
def break_inside_a_callee(a):
    return branchy(a) + 1


@program(A, graphs=2, breaks=1)
def break_two_calls_deep(a):
    return deep(a) * 2


@program(A, graphs=3, breaks=2)
def two_breaks(a):
    b = a + 1
    print(1)
    c = b * 2
    print(2)
    return c - 1


@program(A, graphs=2, breaks=1)
def mutation_before_a_break_is_seen(a):
    items = [1]
    a.add_(1)
    items.append(2)
    print(len(items))
    items.append(3)
    return a * len(items), items


@program(make=lambda: ({"k": 1}, A.clone()), graphs=2, breaks=1)
def argument_mutation_across_a_break(d, a):
    d["k"] = 2
    b = a * d["k"]
    print(d)
    d["j"] = 3
    return b + d["j"]


@program(A, graphs=2, breaks=1)
def closure_cell_across_a_break(a):
    n = 1

    def bump():
        nonlocal n
        n += 1

    bump()
    b = a * n
    print(n)
    bump()
    return b * n


@program(A, graphs=2, breaks=1)
def break_in_argument_position(a):
    return torch.add(a * 2, float(a.sum()))


@program(A, graphs=2, breaks=1)
def break_in_nested_call_with_methods(a):
    return a.mul(2).add(a.sum().item()).sub(1)


@program(A, graphs=2, breaks=1)
def break_inside_a_dict_display(a):
    return {"a": a + 1, "b": a.sum().item(), "c": a * 2}


@program(A, graphs=2, breaks=1)
def break_inside_try(a):
    try:
        b = a * 2
        print("in try")
        return b + 1
    except ValueError:
        return a
    finally:
        a = a - 1


@program(A, graphs=2, breaks=1)
def exception_raised_by_the_break_is_caught(a):
    try:
        b = a * 2
        n = int("not a number", 10) if b.sum() > -100 else 0
        return b + n
    except ValueError:
        return a - 1


@program(A, graphs=1, breaks=1)
def raise_from_an_unknown_callee_is_caught(a):
    try:
        os.stat(None)
    except TypeError:
        return a - 1
    return a


@program(A, graphs=2, breaks=1)
def no_grad_across_a_break(a):
    with torch.no_grad():
        b = a * 2
        print(torch.is_grad_enabled())
        c = b * 3
    return c, torch.is_grad_enabled()


@program(A.clone().requires_grad_(), graphs=2, breaks=1)
def grad_mode_inside_and_after_a_break(a):
    with torch.no_grad():
        b = a * 2
        print(1)
        c = a * 3
    d = a * 4
    return b.requires_grad, c.requires_grad, d.requires_grad, b, c, d


class Recorder:
    def __init__(self):
        self.log = []

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append("out" if kind is None else kind.__name__)
        return kind is KeyError


@program(A, graphs=2, breaks=1)
def user_context_manager_across_a_break(a):
    with Recorder() as r:
        b = a * 2
        print("inside")
        c = b + 1
    return c, r.log


@program(A, graphs=2, breaks=1)
def context_manager_swallows_the_exception_of_a_break(a):
    r = Recorder()
    with r:
        b = {}["missing" if a.sum() > -100 else ""]
        a = a + b
    return a + 1, r.log


@program(make=lambda: ([A.clone(), B.clone()],), graphs=2, breaks=2)
def loop_over_tensors_with_a_break(items):
    total = torch.zeros(2, 3)
    for x in items:
        total = total + x * 2
        print("row")
    return total


@program(torch.tensor(3))
def data_dependent_while(n):
    count = 0
    while n > 0:
        n = n - 1
        count += 1
    return n, count


@program(torch.full((5000,), 200.0), graphs=TURNS, breaks=TURNS)
def long_data_dependent_while_does_not_nest(n):
    total = torch.zeros(())
    while n.max() > 0:
        n = n - 1
        total = total + n[0]
    return total


@program(A, graphs=2, breaks=1)
def and_or_of_tensors(a):
    b = a * 2
    c = (b.sum() > 100) or (a + 1)
    return c * 2


@program(A, graphs=2, breaks=1, eager=0)
def assertion_on_data(a):
    assert a.sum() < 1000, "too big"
    return a * 2


@program(A, graphs=2, breaks=1)
def nonzero_has_a_data_dependent_shape(a):
    b = a * 2
    index = b.nonzero()
    return index + 1


@program(A, graphs=2, breaks=1)
def boolean_mask(a):
    b = a * 2
    return b[b > 0] + 1


@program(A, graphs=2, breaks=1)
def tensor_to_list(a):
    values = (a * 2).tolist()
    return a + values[0][0], values


@program(make=lambda: ((A.clone().requires_grad_() * 1).sum(),), graphs=1, breaks=1)
def backward_inside(loss):
    loss.backward()
    return loss.detach()


@program(make=lambda: (A.clone(),), graphs=1, breaks=1)
def python_random_is_drawn_every_time(a):
    random.seed(3)
    b = a * random.random()
    return b + 1


@program(make=lambda: (A.clone().numpy(),), graphs=0, breaks=0, eager=0, stable=False)
def numpy_argument(x):
    return x


@program(A, state=lambda: LOG, graphs=2, breaks=1)
def effects_come_in_order(a):
    LOG.append("before")
    b = a * 2
    print(LOG)
    LOG.append("after")
    return b + len(LOG)


@program(A)
def class_defined_inside(a):
    class Local:
        factor = 2

    return a * Local.factor + 1


@program(A, graphs=0, breaks=0, eager=1)
def exception_leaves_the_function(a):
    b = a * 2
    raise ValueError(f"shape {tuple(b.shape)}")


@program(A, graphs=1, breaks=1, eager=1)
def exception_after_a_break_leaves_the_function(a):
    b = a * 2
    print("x")
    raise KeyError(len(b))


@program(A, graphs=1, breaks=0)
def exception_caught_inside(a):
    try:
        raise KeyError("k")
    except (ValueError, KeyError) as error:
        name = error.args[0]
    else:
        name = "none"
    return a + len(name)


@program(A, graphs=1)
def finally_runs(a):
    log = []
    try:
        try:
            {}["x"]
        finally:
            log.append("finally")
    except KeyError:
        log.append("caught")
    return a * 2, log


@program(A, graphs=1)
def exception_from_a_callee(a):
    def fails(x):
        raise RuntimeError("no")

    try:
        fails(a)
    except RuntimeError as e:
        return a + 1, str(e)


@program(A, graphs=1)
def reraise_and_chain(a):
    try:
        try:
            [][1]
        except IndexError as e:
            raise ValueError("outer") from e
    except ValueError as e:
        return a + 1, str(e)


@program(A, graphs=1)
def stop_iteration_default(a):
    it = iter([1])
    next(it)
    try:
        next(it)
    except StopIteration:
        return a * 2


@program(A.clone().requires_grad_(), graphs=1)
def grad_modes(a):
    with torch.no_grad():
        b = a * 2
        with torch.enable_grad():
            c = a * 3
    torch.set_grad_enabled(False)
    d = a * 4
    torch.set_grad_enabled(True)
    return b.requires_grad, c.requires_grad, d.requires_grad, (a * 5).requires_grad, b, c, d


@torch.no_grad()
def without_gradients(x):
    return x * 2


@program(A.clone().requires_grad_(), graphs=1)
def no_grad_as_a_decorator(a):
    return without_gradients(a), a * 2


@program(A, graphs=1)
def user_context_manager(a):
    r = Recorder()
    with r as inner:
        a = a + len(inner.log)
    with Recorder() as q:
        {}["x"]
    return a * 2, r.log, q.log


@corpus.parametrize()
def test_program(program):
    check(program)
