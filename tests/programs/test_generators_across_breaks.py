"""Suspended generators that live across a break: they are real ones in between, and go on in the next graph."""

import contextlib

import torch

import plumbline
from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)


class Problem(Exception):
    pass


def scaled(x, n, log):
    try:
        for i in range(n):
            got = yield x * i
            log.append(got)
    finally:
        log.append("finally")
    return "end"


def patient(log):
    while True:
        try:
            log.append((yield len(log)))
        except ValueError as error:
            log.append(str(error))


@contextlib.contextmanager
def noted(log, word):
    log.append(f"in {word}")
    try:
        yield word
    except Problem:
        log.append("swallowed")
    finally:
        log.append(f"out {word}")


@plumbline.disable
def take(generator):
    return next(generator)


def delegating(x, log):
    result = yield from scaled(x, 3, log)
    log.append(result)


@program(A, graphs=2, breaks=1)
def goes_on_behind_the_break(a):
    log = []
    g = scaled(a, 3, log)
    b = next(g)
    plumbline.graph_break()
    c = g.send("sent")
    return b + c, list(g), log


@program(A, graphs=1, breaks=1)
def not_started_before_the_break(a):
    g = (a * i for i in range(3))
    plumbline.graph_break()
    return sum(g)


@program(A, graphs=2, breaks=1)
def ended_before_the_break(a):
    log = []
    g = scaled(a, 2, log)
    b = sum(g)
    plumbline.graph_break()
    return b + 1, log


@program(A, graphs=2, breaks=1)
def throw_and_close_behind_the_break(a):
    log = []
    g, other = patient(log), scaled(a, 2, log)
    next(g)
    b = next(other)
    plumbline.graph_break()
    n = g.throw(ValueError("thrown"))
    other.close()
    return b * n, log


@program(A, graphs=2, breaks=1)
def generator_block(a):
    log = []
    with noted(log, "w") as word:
        b = a * 2
        plumbline.graph_break()
        b = b + len(word)
    return b, log


@program(A, graphs=2, breaks=1)
def generator_block_and_an_exception(a):
    log = []
    with noted(log, "w"):
        b = a * 2
        plumbline.graph_break()
        raise Problem
    return b + 1, log


@program(A, graphs=2, breaks=1)
def generator_block_of_the_caller(a):
    log = []

    def f(x):
        with noted(log, "inner"):
            y = x * 2
            plumbline.graph_break()
            return y + 1

    with noted(log, "outer"):
        b = f(a)
    return b * 2, log


@program(A, graphs=3, breaks=2)
def exit_stack_of_generator_blocks(a):
    log = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(noted(log, "first"))
        b = a * 2
        plumbline.graph_break()
        stack.enter_context(noted(log, "second"))
        b = b + 1
        plumbline.graph_break()
        b = b * 3
    return b, log


@program(A, graphs=2, breaks=2)
def plain_python_takes_one(a):
    log = []
    g = scaled(a, 4, log)
    b = next(g)
    c = take(g)
    d = next(g)
    return b + c, d, log


@program(A, graphs=2, breaks=1)
def generator_is_returned(a):
    log = []
    g = scaled(a, 3, log)
    next(g)
    plumbline.graph_break()
    next(g)
    return list(g), log, g.__name__


@program(A, graphs=2, breaks=1)
def one_generator_by_two_names(a):
    log = []
    g = scaled(a, 4, log)
    holder = {"g": g}
    b = next(g)
    plumbline.graph_break()
    return b + next(g), holder["g"] is g, next(holder["g"]), log


@program(A, graphs=2, breaks=1)
def generator_over_a_generator(a):
    inner = (a * i for i in range(4))
    outer = (x + 1 for x in inner)
    next(outer)
    plumbline.graph_break()
    return next(outer), next(inner), list(outer)


@program(A, graphs=2, breaks=1)
def generator_with_a_closure(a):
    total = 0

    def counted():
        nonlocal total
        for i in (1, 2, 3):
            total += i
            yield a * total

    g = counted()
    b = next(g)
    plumbline.graph_break()
    total += 10
    return b + next(g), total


@program(A, graphs=3, breaks=3)
def loop_over_a_generator_breaks(a):
    log, out = [], []
    for x in scaled(a, 3, log):
        out.append(x + 1)
        plumbline.graph_break()
    return out, log


@program(A, breaks=1)
def generator_itself_breaks(a):
    def loud(x):
        x = x * 2
        plumbline.graph_break()
        yield x
        yield x + 1

    return list(loud(a)), a + 1


@program(A, graphs=2, breaks=1)
def yield_from_goes_on_where_it_stood(a):
    log = []
    g = delegating(a, log)
    b = next(g)
    plumbline.graph_break()
    return b + 1, list(g), log


@corpus.parametrize()
def test_program(program):
    check(program)
