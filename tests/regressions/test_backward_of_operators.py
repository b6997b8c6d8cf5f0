"""Backwards that a program registers for its operators (`register_autograd`), which read and write its state."""

from types import SimpleNamespace

import pytest
import torch

from plumbline.compiler import api
from plumbline.compiler.base.events import Broke, Captured, Recompiled, recording
from plumbline.compiler.controls import allow_in_graph

BACKENDS = ["eager", "aot_eager", "inductor"]
STATE = SimpleNamespace(factor=2.0)
FACTOR = 2.0
SEEN: list[str] = []


def operator(name, backward, setup=None, schema="(Tensor x) -> Tensor", run=lambda x: x * 2):
    """Return an operator of this test's library with a registered derivative."""
    library = torch.library.Library("backward_of_operators", "FRAGMENT")
    library.define(name + schema)
    library.impl(name, run, "CompositeExplicitAutograd")
    formulas = {"setup_context": setup or (lambda ctx, inputs, output: None), "lib": library}
    torch.library.register_autograd(f"backward_of_operators::{name}", backward, **formulas)
    LIBRARIES.append(library)
    return getattr(torch.ops.backward_of_operators, name)


LIBRARIES: list[torch.library.Library] = []


def keep_scale(ctx, inputs, output):
    ctx.scale = STATE.factor


def note(ctx, gradient):
    SEEN.append("backward")
    return gradient * 2


def by_method(ctx, gradient):
    ctx.calls = getattr(ctx, "calls", 0) + 1
    return gradient * ctx.calls


READING = operator("reading", lambda ctx, gradient: gradient * STATE.factor)
NOTING = operator("noting", note)
SETTING = operator("setting", lambda ctx, gradient: gradient * ctx.scale, keep_scale)
CONSTANT = operator("constant", lambda ctx, gradient: gradient * FACTOR)
COUNTING = operator("counting", by_method)
LISTS = operator(
    "lists",
    lambda ctx, gradients, other: ([one * STATE.factor for one in gradients], other * 3),
    schema="(Tensor[] xs, Tensor y) -> (Tensor[], Tensor)",
    run=lambda xs, y: ([x * 2 for x in xs], y * 3),
)


def keep_both(ctx, inputs, keyword_only_inputs, output):
    ctx.scale = inputs[1] * keyword_only_inputs["by"]
    ctx.save_for_backward(inputs[0])


KEYWORDS = operator(
    "keywords",
    lambda ctx, gradient: (gradient * ctx.scale * ctx.saved_tensors[0], None),
    keep_both,
    schema="(Tensor x, float scale=3.0, *, float by=2.0) -> Tensor",
    run=lambda x, scale=3.0, *, by=2.0: x * x * scale * by / 2,
)


def gradient(function):
    x = torch.linspace(1, 2, 3).requires_grad_()
    function(x).sum().backward()
    return x.grad


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("step", [READING, SETTING, COUNTING], ids=["reading", "setting", "counting"])
def test_state_is_read_when_eager_reads_it(step, backend, monkeypatch):
    run = api.compile(lambda x: step(x) + 1, backend=backend)
    for factor in (2.0, 3.0, 2.0):
        monkeypatch.setattr(STATE, "factor", factor)
        assert torch.equal(gradient(run), gradient(lambda x: step(x) + 1))


@pytest.mark.parametrize("backend", BACKENDS)
def test_state_that_changes_between_forward_and_backward(backend, monkeypatch):
    x = torch.ones(3, requires_grad=True)
    y = api.compile(lambda x: READING(x) + 1, backend=backend)(x)
    monkeypatch.setattr(STATE, "factor", 7.0)
    y.sum().backward()
    assert x.grad.tolist() == [7.0] * 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_of_a_backward_are_not_lost(backend):
    SEEN.clear()
    run = api.compile(lambda x: NOTING(x) + 1, backend=backend)
    for _ in range(3):
        gradient(run)
    assert len(SEEN) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_of_tensors(backend, monkeypatch):
    def function(x):
        parts, other = LISTS([x, x * 2], x)
        return parts[0] + parts[1] * 2 + other

    run = api.compile(function, backend=backend)
    for factor in (2.0, 3.0):
        monkeypatch.setattr(STATE, "factor", factor)
        assert torch.equal(gradient(run), gradient(function))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_reads_its_arguments_stays_in_the_graph(backend):
    def function(x):
        return KEYWORDS(x) + KEYWORDS(x, 2.0) + KEYWORDS(x, scale=1.5, by=4.0)

    run = api.compile(function, backend=backend)
    with recording() as events:
        found = [gradient(run), gradient(run)]
    assert all(torch.equal(one, gradient(function)) for one in found)
    assert [type(one) for one in events if isinstance(one, Broke | Captured | Recompiled)] == [Captured]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_constant_is_guarded(backend, monkeypatch):
    run = api.compile(lambda x: CONSTANT(x) + 1, backend=backend)
    assert gradient(run).tolist() == [2.0] * 3
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    assert gradient(run).tolist() == [5.0] * 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_allowed_function_is_searched_too(backend, monkeypatch):
    class Reading(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * STATE.factor

    def inside(x):
        return Reading.apply(x.sin()).cos()

    allow_in_graph(inside)
    run = api.compile(lambda x: inside(x) + 1, backend=backend)
    for factor in (2.0, 3.0):
        monkeypatch.setattr(STATE, "factor", factor)
        torch.testing.assert_close(gradient(run), gradient(inside))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_exception_of_a_backward_arrives_there(backend):
    class Refusing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            raise KeyError("refused")

    def function(x):
        try:
            return Refusing.apply(x) + 1
        except KeyError:
            return x * 100

    x = torch.ones(2, requires_grad=True)
    y = api.compile(function, backend=backend)(x)
    assert y.tolist() == [3.0, 3.0]
    with pytest.raises(KeyError, match="refused"):
        y.sum().backward()
