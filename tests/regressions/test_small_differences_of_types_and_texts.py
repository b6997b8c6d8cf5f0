"""What random Python programs showed: types of bound methods, names of C types in errors, written module attributes."""

import collections
import functools
import threading
import types
import warnings

import pytest
import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.pipeline import compile_callable, make_family
from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.arange(6.0).reshape(2, 3)
LOCK = threading.Lock()
PART = functools.partial(print)
STATE = types.ModuleType("state_of_the_test")
STATE.number = 1


@program(A)
def types_of_bound_methods(x):
    kinds = (type((1).__eq__), type(x.__len__), type([].__len__), type([].append), type("".__eq__), type(x.size))
    return [kind.__name__ for kind in kinds], x * 2


def refused(manager):
    try:
        with manager:
            pass
    except TypeError as error:
        return str(error)


@program(A)
def names_of_c_types_in_errors(x):
    words = [refused(one) for one in (PART, collections.OrderedDict(), [1], 5)]
    try:
        format(LOCK, ">9")
    except TypeError as error:
        words.append(str(error))
    return words, x * 2


@program(A)
def type_of_an_ordered_view(x):
    view = collections.OrderedDict(a=1).items()
    try:
        view()
    except TypeError as error:
        return str(error), x * 2


@program(A, state=lambda: vars(STATE))
def a_written_module_attribute_is_read_again(x):
    STATE.number += 1
    STATE.number += 1
    STATE.fresh = x.dim()
    seen = STATE.number, STATE.fresh, hasattr(STATE, "fresh")
    return x * STATE.number, seen


@corpus.parametrize()
def test_programs(program):
    check(program)


def warned(function):
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        function(A.clone())
    return [str(one.message) for one in noted]


@pytest.fixture
def warn_always():
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    yield
    torch.set_warn_always(before)


def test_a_result_that_is_resized_warns_once_in_the_words_of_the_operation(warn_always):
    def run(x):
        base = torch.zeros(3)
        torch.add(x.sum(), 1, out=base[1:])
        return base

    family = make_family("eager", Options(strict=True), fullgraph=False, dynamic=None)
    assert warned(compile_callable(run, family)) == warned(run)


def test_type_of_a_slot_of_an_exception():
    error = ValueError("a")

    def run(x):
        return type(error.__lt__).__name__, type(error.with_traceback).__name__, x + 1

    family = make_family("eager", Options(strict=True), fullgraph=False, dynamic=None)
    assert compile_callable(run, family)(A)[:2] == run(A)[:2]
