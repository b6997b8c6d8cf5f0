"""A slice of a list by what is no number ended in an error of ours."""

import pytest

import plumbline
from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.known_compilers import find_compiler


def assigned(items, start):
    items[start:] = [1]


def deleted(items, start):
    del items[start:]


def read(items, start):
    return items[start:]


def stepped(items, start):
    items[:: 0 if start else 1] = [1]


@pytest.mark.parametrize("step", [assigned, deleted, read, stepped])
def test_pythons_own_error_is_raised(step):
    def outcome(step):
        try:
            return step([1, 2], len)
        except (TypeError, ValueError) as error:
            return repr(error)

    plumbline.reset()
    candidate = find_compiler("plumbline", "eager").compile(
        lambda: outcome(step), "eager", CompileRequest(), rng="eager"
    )
    assert candidate() == outcome(step)
    assert [event for event in candidate.statistics().events if event.kind == "internal_error"] == []
