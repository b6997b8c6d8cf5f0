"""Hooks of modules and tensors that are not run, or run once too often."""

import torch


class Doubling(torch.nn.Module):
    def forward(self, x):
        return x * 2


def test_backward_hook_registered_between_calls():
    """A full backward hook added after the first call doubles the input gradient."""
    layer = torch.nn.Linear(3, 3, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(3))
    run = torch.compile(lambda x: layer(x))
    x = torch.ones(3, requires_grad=True)
    run(x)
    layer.register_full_backward_hook(lambda module, grad_in, grad_out: tuple(g * 2 for g in grad_in))
    x = torch.ones(3, requires_grad=True)
    run(x).sum().backward()


def test_hook_of_all_modules_registered_between_calls():
    """A forward hook of all modules, registered after the first call, triples the result."""
    module = Doubling()
    run = torch.compile(lambda x: module(x))
    run(torch.ones(1))
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, args, result: result * 3)
    try:
        run(torch.ones(1))
    finally:
        handle.remove()


def test_forward_hook_registered_between_calls():
    """A forward hook of the module, registered after the first call, triples the result."""
    module = Doubling()
    run = torch.compile(lambda x: module(x))
    run(torch.ones(1))
    module.register_forward_hook(lambda module, args, result: result * 3)
    run(torch.ones(1))


def test_forward_pre_hook_removed_between_calls():
    """A forward pre-hook that is removed after the first call does not run in the second."""
    module = Doubling()
    handle = module.register_forward_pre_hook(lambda module, args: (args[0] + 10,))
    run = torch.compile(module)
    run(torch.ones(1))
    handle.remove()
    run(torch.ones(1))


def test_hook_counts_its_calls():
    """A hook that appends to a list appends once a call."""
    module, calls = Doubling(), []
    module.register_forward_hook(lambda module, args, result: calls.append(len(calls)))
    run = torch.compile(module)
    run(torch.ones(1))
    run(torch.ones(1))


def test_tensor_hook_on_an_intermediate():
    """A hook on a tensor made inside scales the gradient."""

    def wave(x):
        y = x.sin()
        y.register_hook(lambda g: g * 10)
        return y * 2

    x = torch.ones(3, requires_grad=True)
    torch.compile(wave)(x).sum().backward()


def test_tensor_hook_after_a_graph_break():
    """A hook registered after a break changes the gradient that is taken inside."""

    def slope(x):
        y = x * x
        z = y * x
        print("break")
        y.register_hook(lambda g: g * 3)
        (result,) = torch.autograd.grad(z, x)
        return result

    torch.compile(slope)(torch.tensor(1.0, requires_grad=True))


def test_tensor_hook_on_an_argument():
    """A hook that the caller set on the argument runs in backward."""
    x = torch.ones(3, requires_grad=True)
    x.register_hook(lambda g: g * 5)
    torch.compile(lambda x: x * x)(x).sum().backward()
