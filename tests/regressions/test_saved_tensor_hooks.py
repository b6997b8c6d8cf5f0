"""Compiled code under saved-tensor hooks of its caller, as of `torch.utils.checkpoint`.

Captures ran fake tensors through the hooks. An error raised in a hook was taken for one of the graph, which ran again.
"""

import contextlib
import functools

import pytest
import torch
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]
recomputed = functools.partial(checkpoint, use_reentrant=False)


@pytest.fixture(autouse=True)
def no_error_of_ours(monkeypatch):
    monkeypatch.setenv("PLUMBLINE_STRICT", "1")


class Stop(Exception):
    """What a hook of the program raises."""


def block():
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.GELU(), torch.nn.Dropout(0.5)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(4, 4))


def around(compiled, x, module):
    return recomputed(compiled(module), x)


def reentrant(compiled, x, module):
    return checkpoint(compiled(module), x, use_reentrant=True)


def inside(compiled, x, module):
    return compiled(lambda x: recomputed(module, x) * 2)(x)


def nested(compiled, x, module):
    run = compiled(module)
    return recomputed(lambda x: recomputed(run, x * 2).sin(), x)


def nested_inside(compiled, x, module):
    return compiled(lambda x: recomputed(lambda y: recomputed(module, y * 2).sin(), x))(x)


def around_and_inside(compiled, x, module):
    return recomputed(compiled(lambda x: recomputed(module, x).sin()), x)


def without_early_stop(compiled, x, module):
    with set_checkpoint_early_stop(False):
        return recomputed(compiled(module), x)


def across_a_break(compiled, x, module):
    def body(x):
        y = module(x)
        print(end="")
        return module(y)

    return recomputed(compiled(body), x)


def under_autocast(compiled, x, module):
    def body(x):
        with torch.autocast("cpu", enabled=False):
            return module(x).sin()

    return recomputed(compiled(body), x)


def sequence(compiled, x, module):
    for run in (compiled(module), compiled(block())):
        x = recomputed(run, x)
    return x


def kept_elsewhere(compiled, x, module):
    with save_on_cpu():
        return compiled(module)(x)


CALLS = [
    around,
    reentrant,
    inside,
    nested,
    nested_inside,
    around_and_inside,
    without_early_stop,
    across_a_break,
    under_autocast,
    sequence,
    kept_elsewhere,
]


def outcome(call, compiled):
    """Return the results of two steps, their gradients, the statistics and the state of the generator."""
    module, found = block(), []
    torch.manual_seed(1)
    run = functools.cache(compiled)
    for rows in (3, 5):
        x = torch.randn(rows, 4, requires_grad=True)
        y = call(run, x, module)
        torch.rand(3)  # what is recomputed draws from a state of its own
        y.sum().backward()
        found += [y.detach(), x.grad, torch.rand(1)]
    return [*found, *(parameter.grad for parameter in module.parameters()), *module.buffers()]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("call", CALLS)
def test_checkpoints(call, backend):
    expected = outcome(call, lambda function: function)
    actual = outcome(call, lambda function: plumbline.compile(function, backend=backend))
    for one, other in zip(actual, expected, strict=True):
        torch.testing.assert_close(one, other)


class Hook:
    """A hook that raises at its second call, in several forms."""

    def __init__(self):
        self.calls = 0

    def __call__(self, tensor):
        self.calls += 1
        if self.calls == 2:
            raise Stop
        return tensor

    def method(self, tensor):
        return self(tensor)


FORMS = {
    "object": lambda hook: hook,
    "method": lambda hook: hook.method,
    "function": lambda hook: lambda tensor: hook(tensor),
    "partial": lambda hook: functools.partial(lambda hook, tensor: hook(tensor), hook),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", FORMS)
def test_an_error_in_a_hook_reaches_the_caller_once(form, backend):
    def body(x, weight):
        x.add_(0.5)
        return (weight.sin() * weight.cos() * x).exp()

    run = plumbline.compile(body, backend=backend)
    for _ in range(2):
        hook, x = Hook(), torch.ones(3)
        with pytest.raises(Stop), saved_tensors_hooks(FORMS[form](hook), lambda tensor: tensor):
            run(x, torch.ones(3, requires_grad=True))
        assert hook.calls == 2
        assert torch.equal(x, torch.full((3,), 1.5))  # as in eager: written before the hook was called
    x = torch.ones(3)
    torch.testing.assert_close(run(x, torch.ones(3)), body(torch.ones(3), torch.ones(3)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_in_a_hook_that_the_program_handles(backend):
    class Once(Hook):
        def __call__(self, tensor):
            self.calls += 1
            if self.calls == 1:
                raise Stop
            return tensor

    def body(x):
        try:
            y = x.sin()
        except Stop:
            y = x.cos()
        return y

    run = plumbline.compile(body, backend=backend)
    x = torch.ones(3, requires_grad=True)
    with saved_tensors_hooks(Once(), lambda tensor: tensor):
        y = run(x)
    assert torch.equal(y, x.cos())
    assert torch.equal(run(x), x.sin())


def refuse(tensor):
    raise Stop


@pytest.mark.parametrize("backend", BACKENDS)
def test_hooks_of_the_program_are_left_when_one_raises(backend):
    def body(x):
        with saved_tensors_hooks(refuse, lambda tensor: tensor):
            return x.sin() * x.cos()

    run = plumbline.compile(body, backend=backend)
    for _ in range(2):
        with contextlib.suppress(Stop):
            run(torch.ones(3, requires_grad=True))
            pytest.fail("the error was swallowed")
        assert torch.ones(3, requires_grad=True).sin().requires_grad  # no hook is left over


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_in_a_hook_that_unpacks(backend):
    run = plumbline.compile(lambda x: x.sin() * x.cos(), backend=backend)
    with saved_tensors_hooks(lambda tensor: tensor, refuse):
        y = run(torch.ones(3, requires_grad=True))
    with pytest.raises(Stop):
        y.sum().backward()
