"""What changes in a call and is nothing of the program's: sound programs that were called wrong."""

import enum
import os

import torch

import plumbline
from plumbline.oracle import VerdictKind, check

COUNTED = plumbline.compile(lambda x: x.sin() + 1, backend="eager")


class Rights(enum.IntFlag):
    READ = 4
    WRITE = 2
    RUN = 1


def combined(x, number):
    return x * (Rights.READ | Rights(number))


def calls_a_compiled_function(x):
    return COUNTED(x) * 2


def later(x):
    yield x + 1
    x.add_(1)
    yield x * 2


def loads_a_compiler(x):
    os.environ.setdefault("TORCHINDUCTOR_OF_A_TEST", "1")
    return x * 2


def test_combinations_of_flags_are_a_cache() -> None:
    assert check(combined, (torch.ones(3), 2), compiled=lambda x, number: x * 6).kind is VerdictKind.EQUAL


def test_what_a_compiled_function_counts_is_its_own() -> None:
    assert check(calls_a_compiled_function, (torch.ones(3),), compiled=lambda x: (x.sin() + 1) * 2).kind is (
        VerdictKind.EQUAL
    )


def test_what_a_generator_writes_when_it_is_looked_at_is_no_write_of_the_call() -> None:
    x = torch.ones(3)
    assert check(later, (x,), compiled=later).kind is VerdictKind.EQUAL
    assert x.tolist() == [1, 1, 1]


def test_variables_of_compilers_are_those_of_compilers(monkeypatch) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_OF_A_TEST", raising=False)
    assert check(loads_a_compiler, (torch.ones(3),), compiled=lambda x: x * 2).kind is VerdictKind.EQUAL
