"""Hooks were called with None where eager calls none: a compiled graph was one step of history for all its results."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "a result that is not part of the other": """
def step():
    return w1 * 2, w2 * 3

def play(step):
    a, b = step()
    watch(a=a, b=b)
    a.sum().backward(retain_graph=True)
    b.sum().backward()
""",
    "inputs with hooks of which a result needs one": """
def step():
    return w1 * 2, w2 * 3

def play(step):
    watch(w1=w1, w2=w2)
    a, b = step()
    a.sum().backward(retain_graph=True)
    b.sum().backward()
""",
    "an input that no gradient leads to": """
def step():
    return w1 * w2.detach()

def play(step):
    a = step()
    watch(w1=w1, w2=w2)
    a.sum().backward()
""",
    "a view as an argument": """
def step(view):
    return w1 * 2, view * 3

def play(step):
    view = w2[:1]
    watch(view=view)
    a, b = step(view)
    a.sum().backward(retain_graph=True)
    b.sum().backward()
""",
    "gradients of one result, and retained ones": """
def step():
    return w1 * 2, w1 * w2

def play(step):
    a, b = step()
    a.retain_grad()
    b.retain_grad()
    seen.append(torch.autograd.grad(a.sum(), w1, retain_graph=True))
    seen.append((a.grad, b.grad))
    seen.append(torch.autograd.grad(b.sum(), [w1, w2], retain_graph=True))
    (a.sum() * b.sum()).backward()
    seen.append((a.grad, b.grad))
""",
    "hooks of the program on a result": """
def step():
    a = w1 * 2
    b = (w2 * 3).sum()
    watch(a=a)
    b.backward(retain_graph=True)
    return a

def play(step):
    step().sum().backward()
""",
    "hooks of the program on a result of which another is made": """
def step():
    a = w1 * 2
    b = (a * 3).sum()
    watch(a=a)
    a.retain_grad()
    b.backward(retain_graph=True)
    seen.append(a.grad)
    return a

def play(step):
    step().sum().backward()
""",
    "hooks of the program on inputs": """
def step():
    w1.register_hook(lambda gradient: seen.append(('w1', gradient)))
    w2.register_hook(lambda gradient: seen.append(('w2', gradient)))
    return w1 * 2, w2 * 3

def play(step):
    a, b = step()
    a.sum().backward()
""",
    "writes to a result": """
def step():
    return w1 * 2, w2 * 3

def play(step):
    a, b = step()
    watch(a=a)
    a.mul_(2)
    watch(a=a, b=b)
    a.sum().backward()
    seen.append((a.is_leaf, a._is_view(), b._is_view()))
""",
}


def _outcome(text, wrap):
    seen = []

    def watch(**tensors):
        for name, tensor in tensors.items():
            tensor.register_hook(lambda gradient, name=name: seen.append((name, gradient)))
            if tensor.is_leaf:
                tensor.register_post_accumulate_grad_hook(lambda leaf, name=name: seen.append((name, leaf.grad)))

    scope = {"torch": torch, "seen": seen, "watch": watch}
    scope["w1"] = torch.tensor([1.0, 2.0], requires_grad=True)
    scope["w2"] = torch.tensor([3.0, 4.0], requires_grad=True)
    exec(text, scope)
    scope["play"](wrap(scope["step"]))
    return repr((seen, scope["w1"].grad, scope["w2"].grad))


@pytest.mark.parametrize("name", PROGRAMS)
def test_hooks_are_called_as_in_eager(name):
    compiled = _outcome(PROGRAMS[name], lambda step: plumbline.compile(step, backend="aot_eager"))
    assert compiled == _outcome(PROGRAMS[name], lambda step: step)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_complex_results_have_no_step_of_their_own(backend):
    """Torch has none for them: the compiled graph stopped, and the program ran eagerly."""

    def program(x):
        return torch.complex(x, x * 2), x.sin()

    x = torch.ones(3, requires_grad=True)
    compiled = plumbline.compile(program, backend=backend, options={"strict": True})
    numbers, others = compiled(x)
    (gradient,) = torch.autograd.grad([torch.view_as_real(numbers).sum(), others.sum()], [x])
    assert torch.allclose(gradient, 3 + torch.ones(3).cos())
