"""Breaks while an exception is being handled: it stays the handled one, with its traceback and context."""

import re
import sys
import traceback

import torch

import plumbline
from support.programs import Corpus, check, compiled

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)


class Problem(Exception):
    pass


class Note:
    def __init__(self, log, swallow=False):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.log.append(kind.__name__ if kind else None)
        plumbline.graph_break()
        self.log.append(str(error))
        return self.swallow


def now():
    return repr(sys.exc_info()[1])


@plumbline.disable
def text():
    return traceback.format_exc()


def raises(x):
    raise Problem("two", x.dim())


@program(A, graphs=2, breaks=1)
def handled_exception_is_seen_at_the_break(a):
    try:
        raises(a * 2)
    except Problem:
        a = a + 1
        seen = text()
        b = a * 2
    return b, seen.splitlines()[-1]


@program(A, breaks=2)
def nothing_is_handled_afterwards(a):
    try:
        raises(a)
    except Problem:
        plumbline.graph_break()
    after = text()
    return a * 2, after


@program(A, graphs=2, breaks=1)
def bare_raise_after_a_break(a):
    try:
        try:
            raises(a)
        except Problem:
            b = a * 2
            plumbline.graph_break()
            raise
    except Problem as problem:
        return b * problem.args[1], len(traceback.extract_tb(problem.__traceback__)) if a.dim() == 5 else 0


@program(A, graphs=2, breaks=1)
def context_of_an_exception_after_a_break(a):
    b = a * 2
    try:
        try:
            raises(b)
        except Problem:
            plumbline.graph_break()
            raise ValueError("second")
    except ValueError as error:
        return b + 1, repr(error.__context__), error.__cause__


@program(A, graphs=2, breaks=1)
def cause_across_a_break(a):
    b = a * 2
    try:
        try:
            raises(b)
        except Problem as problem:
            plumbline.graph_break()
            raise ValueError("second") from problem
    except ValueError as error:
        return b + 1, repr(error.__cause__), error.__suppress_context__


@program(A, graphs=2, breaks=1)
def break_raises_inside_a_handler(a):
    b = a * 2
    try:
        try:
            raises(b)
        except Problem:
            int("no number", base=int((b * 0).sum()) + 10)
    except ValueError as error:
        return b + 1, repr(error.__context__)


@program(A, graphs=2, breaks=1)
def handlers_in_handlers(a):
    log = []
    try:
        raises(a)
    except Problem as first:
        try:
            raises(a + 1)
        except Problem as second:
            b = a * 2
            plumbline.graph_break()
            log.append(repr(second.__context__) == repr(first))
        log.append(now())
    log.append(now())
    return b + 1, log


@program(A, graphs=2, breaks=1)
def return_from_a_handler(a):
    try:
        raises(a)
    except Problem:
        b = a * 2
        plumbline.graph_break()
        return b + 1
    finally:
        a.add_(1)


@program(A, graphs=2, breaks=1)
def finally_entered_by_an_exception(a):
    log = []
    try:
        try:
            raises(a)
        finally:
            b = a * 2
            plumbline.graph_break()
            log.append(now())
    except Problem:
        log.append("caught")
    return b + 1, log


@program(A, graphs=2, breaks=1)
def exit_with_an_exception_breaks(a):
    log = []
    b = a * 2
    with Note(log, swallow=True):
        raises(b)
    return b + 1, log


@program(A, graphs=2, breaks=1)
def exit_breaks_and_the_exception_goes_on(a):
    log = []
    b = a * 2
    try:
        with Note(log):
            raises(b)
    except Problem as problem:
        b = b * problem.args[1]
    return b + 1, log


@program(A, graphs=2, breaks=1)
def callee_breaks_while_the_caller_handles(a):
    def f(x):
        y = x * 2
        plumbline.graph_break()
        return y, now()

    try:
        raises(a)
    except Problem:
        b, seen = f(a)
        b = b + 1
    return b, seen, now()


@program(A, graphs=2, breaks=1)
def callee_handles_and_the_caller_handles(a):
    def f(x):
        try:
            raise ValueError("inner")
        except ValueError:
            y = x * 2
            plumbline.graph_break()
            z = now()
        return y, z, now()

    try:
        raises(a)
    except Problem:
        b, inner, outer = f(a)
        c = b + 1
    return c, inner, outer, now()


@program(A, graphs=2, breaks=2)
def loop_in_a_handler(a):
    seen = []
    try:
        raises(a)
    except Problem as problem:
        for word in problem.args:
            a = a * 2
            plumbline.graph_break()
            seen.append(word)
    return a, seen


@corpus.parametrize()
def test_program(program):
    check(program)


def failing_twice(x):
    try:
        raises(x)
    except Problem:
        y = x + 1
        return y, text()


def test_traceback_names_the_lines_that_raised():
    marks = re.compile(r"^ *[~^]+\n", re.MULTILINE)  # where in the line, which 3.13 says more often
    assert compiled(failing_twice)(A)[1] == marks.sub("", failing_twice(A)[1])
