"""Breaks at random places of random call trees: the compiled program ends as eager does, and leaves the same state."""

import linecache

import torch
from hypothesis import given, settings

from plumbline.compiler.base.events import CompilerFailed, recording
from support.programs import compiled
from support.random_breaks import programs


def loaded(text):
    """Return the namespace of a module of this text; its lines are there for tracebacks."""
    name = f"<random {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"__name__": "random_program"}
    exec(compile(text, name, "exec"), namespace)
    return namespace


def ending(function, namespace, sign):
    """Return (what came out, log, state) of one call."""
    log = []
    try:
        result = function(torch.linspace(-1, 2, 6).reshape(2, 3) * sign, log)
    except Exception as error:
        result = chain(error)
    return result, log, dict(namespace["STATE"])


def chain(error):
    """Return type and arguments of an exception and of what it came from."""
    found = []
    while error is not None:
        found.append((type(error).__name__, str(error), error.__suppress_context__))
        error = error.__cause__ or error.__context__
    return found


def same(left, right):
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and torch.equal(left, right)
    if isinstance(left, tuple | list):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def agrees(text, **options):
    plain, other = loaded(text), loaded(text)
    run = compiled(other["f0"], **options)
    with recording() as events:
        for sign in (1, -1, 1):
            expected, actual = ending(plain["f0"], plain, sign), ending(run, other, sign)
            assert same(expected, actual), f"{text}\nexpected {expected}\nbut found {actual}"
    assert not [event for event in events if isinstance(event, CompilerFailed)]


@settings(max_examples=40, deadline=None)
@given(programs())
def test_random_breaks(text):
    agrees(text)
