"""Programs that write, draw and count, and then fail on data: compiled ones end as eager does and leave its state."""

import linecache
import random

import pytest
import torch

from plumbline.compiler.base.events import CompilerFailed, recording
from support.failing_programs import program
from support.programs import compiled

BACKENDS = {"eager": 60, "aot_eager": 40, "inductor": 12}  # programs; one of inductor is a second


def loaded(text):
    """Return the namespace of a module of this text; its lines are there for tracebacks."""
    name = f"<failing {hash(text)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace = {"__name__": "failing_program"}
    exec(compile(text, name, "exec"), namespace)
    return namespace


def ending(function, namespace, place, grad):
    """Return all that can be seen of one call: what came out, the log, every state, the generator."""
    torch.manual_seed(4)
    log, index = [], torch.tensor(place)
    x, w = torch.linspace(0.1, 2, 6).reshape(2, 3), torch.tensor([1.0, 2.0, 3.0], requires_grad=grad)
    try:
        result = function(x, w, index, log)
        if result.requires_grad:
            result.backward()
    except Exception as error:
        result = type(error).__name__, str(error) if isinstance(error, KeyError) else ""
    names = ("BUFFER", "COUNT", "MEAN", "VARIANCE")
    state = [namespace[name].clone() for name in names], namespace["STATE"]["n"], namespace["HOLDER"].steps
    return result, log, x, w.grad, state, x.requires_grad, torch.rand(1), torch.is_grad_enabled()


def same(left, right):
    if isinstance(left, torch.Tensor):
        close = isinstance(right, torch.Tensor) and left.shape == right.shape
        return close and torch.allclose(left.detach(), right.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)
    if isinstance(left, tuple | list):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


@pytest.mark.cc
@pytest.mark.parametrize("dynamic", [False, None])
@pytest.mark.parametrize("backend", BACKENDS)
def test_failing_programs_end_as_in_eager(backend, dynamic):
    chosen, failures = random.Random(f"{backend} {dynamic}"), 0
    for seed in (chosen.randrange(10**6) for _ in range(BACKENDS[backend])):
        text = program(seed)
        plain, other = loaded(text), loaded(text)
        run = compiled(other["whole"], backend=backend, dynamic=dynamic)
        with recording() as events:
            for place, grad in ((1, True), (7, True), (0, False), (7, False), (-5, True)):
                expected, actual = ending(plain["whole"], plain, place, grad), ending(run, other, place, grad)
                assert same(expected, actual), f"seed {seed}, {place}\n{text}\n{expected}\nbut found\n{actual}"
                failures += isinstance(expected[0], tuple) or "IndexError" in expected[1]
        assert not [event for event in events if isinstance(event, CompilerFailed)], text
    assert failures > BACKENDS[backend] // 2
