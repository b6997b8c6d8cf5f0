"""State that a compiled call leaves otherwise than eager, each kind planted and caught."""

import contextlib
import contextvars
import gc
import os
import random
import sys

import numpy
import pytest
import torch

from plumbline.oracle import JudgeOptions, check
from plumbline.oracle.harness.boundary import Boundary
from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.known_compilers import find_compiler

X = torch.linspace(-2, 2, 4)
VARIABLE = contextvars.ContextVar("planted", default=0)


def _environment():
    os.environ["A_VARIABLE_OF_THE_PROGRAM"] = "1"


# What a compiled call may leave on, and how it is put back.
LEFT = {
    "grad mode": (lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True)),
    "default dtype": (
        lambda: torch.set_default_dtype(torch.float64),
        lambda: torch.set_default_dtype(torch.float32),
    ),
    "default device": (lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None)),
    "deterministic": (
        lambda: torch.use_deterministic_algorithms(True),
        lambda: torch.use_deterministic_algorithms(False),
    ),
    "autocast": (
        lambda: torch.set_autocast_enabled("cpu", True),
        lambda: torch.set_autocast_enabled("cpu", False),
    ),
    "autocast dtype": (
        lambda: torch.set_autocast_dtype("cpu", torch.float16),
        lambda: torch.set_autocast_dtype("cpu", torch.bfloat16),
    ),
    "autocast cache": (
        lambda: torch.set_autocast_cache_enabled(False),
        lambda: torch.set_autocast_cache_enabled(True),
    ),
    "anomaly mode": (
        lambda: torch.autograd.set_detect_anomaly(True),
        lambda: torch.autograd.set_detect_anomaly(False),
    ),
    "matmul precision": (
        lambda: torch.set_float32_matmul_precision("medium"),
        lambda: torch.set_float32_matmul_precision("highest"),
    ),
    "threads": (
        lambda: torch.set_num_threads(torch.get_num_threads() + 1),
        lambda: torch.set_num_threads(torch.get_num_threads() - 1),
    ),
    "always warning": (lambda: torch.set_warn_always(True), lambda: torch.set_warn_always(False)),
    "numpy errors": (lambda: numpy.seterr(divide="raise"), lambda: numpy.seterr(divide="warn")),
    "recursion limit": (
        lambda: sys.setrecursionlimit(sys.getrecursionlimit() - 7),
        lambda: sys.setrecursionlimit(sys.getrecursionlimit() + 7),
    ),
    "garbage collection": (gc.disable, gc.enable),
    "environment": (_environment, lambda: os.environ.pop("A_VARIABLE_OF_THE_PROGRAM", None)),
}


@pytest.mark.parametrize("name", LEFT)
def test_a_mode_that_is_left_on(name):
    change, put_back = LEFT[name]

    def compiled(x):
        change()
        return x * 2

    try:
        assert check(lambda x: x * 2, (X,), compiled=compiled).failed
    finally:
        put_back()


@pytest.mark.parametrize(
    "name", sorted(LEFT.keys() - {"recursion limit"})
)  # one that is higher than eager's harms nobody
def test_a_mode_that_is_not_set(name):
    change, put_back = LEFT[name]

    def eager(x):
        change()
        return x * 2

    try:
        assert check(eager, (X,), compiled=lambda x: x * 2).failed
    finally:
        with contextlib.suppress(Exception):
            if name != "threads":
                put_back()


def test_a_context_variable_that_is_not_set():
    def eager(x):
        VARIABLE.set(1)
        return x * 2

    assert check(eager, (X,), compiled=lambda x: (VARIABLE, x * 2)[1]).failed
    assert VARIABLE.get() == 0


GENERATORS = {
    "torch": (lambda: torch.Generator().manual_seed(0), lambda one: torch.rand(1, generator=one)),
    "numpy": (lambda: numpy.random.default_rng(0), lambda one: float(one.random())),
    "old numpy": (lambda: numpy.random.RandomState(0), lambda one: float(one.random_sample())),
    "python": (lambda: random.Random(0), lambda one: one.random()),
}


@pytest.mark.parametrize("place", ["argument", "closure", "list"])
@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_of_the_programs_own_is_advanced_once_more(name, place):
    make, draw = GENERATORS[name]
    generator = make()

    def eager(x, held):
        one = {"argument": held, "closure": generator, "list": [held][0]}[place]
        return x + draw(one)

    def compiled(x, held):
        result = eager(x, held)
        draw(generator)
        return result

    assert check(eager, (X, generator), compiled=compiled).failed


class Kept:
    """Memory that nobody finds who starts from a call's arguments and its function."""

    __slots__ = ("calls", "tensor")


def test_memory_of_an_output_that_the_next_call_writes_to():
    kept = Kept()
    kept.calls = 0

    def compiled(x):
        found = next(one for one in gc.get_objects() if type(one).__name__ == "Kept")
        found.calls += 1
        if found.calls > 1:
            found.tensor.zero_()
        found.tensor = x * 2
        return found.tensor

    assert check(lambda x: x * 2, (X,), compiled=compiled).failed


BITS = {
    "inference": (lambda x: x * 2, lambda x: _inference(x)),
    "negative": (lambda x: -x, lambda x: torch._neg_view(x.clone())),
    "conjugate": (lambda x: torch.view_as_complex(x.view(-1, 2)).conj().resolve_conj(), lambda x: _conjugate(x)),
}


def _inference(x):
    with torch.inference_mode():
        return x * 2


def _conjugate(x):
    return torch.view_as_complex(x.view(-1, 2)).clone().conj()


@pytest.mark.parametrize("name", BITS)
def test_what_a_tensor_says_of_itself(name):
    eager, compiled = BITS[name]
    assert check(eager, (X.clone(),), compiled=compiled).failed


def test_a_number_that_never_came_from_a_tensor():
    assert check(lambda x: (x * 2, 0.1), (X,), compiled=lambda x: (x * 2, 0.1 + 1e-6)).failed
    read = check(lambda x: (x * 2, x.sum().item() + 0.1), (X,), compiled=lambda x: (x * 2, x.sum().item() + 0.1 + 1e-8))
    assert not read.failed


def test_a_number_is_part_of_what_is_judged_anew():
    def f(x, number):
        return x * number

    boundary = Boundary(f, "f", CompileRequest(), find_compiler("plumbline", "eager"), "eager", JudgeOptions())
    judged = [boundary.call((X, number), {}) is not None for number in (1, 1, 1, 2, 2, 1, 3)]
    assert judged == [True, True, False, True, False, False, True]
