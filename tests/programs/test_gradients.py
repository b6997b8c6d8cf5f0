"""The autograd engine inside compiled code: `torch.autograd.grad`, hooks on tensors; what they read when they run."""

import torch

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
SCALES = [3.0]


def leaf():
    return (A.clone().requires_grad_(),)


def with_history():
    (a,) = leaf()
    return a * 2, a


@program(make=leaf)
def gradient_with_respect_to_an_intermediate(a):
    b = a * 2
    return torch.autograd.grad((b**2).sum(), [a, b])


@program(make=lambda: (*leaf(), *leaf()))
def gradient_of_something_unused(a, b):
    return torch.autograd.grad((a**2).sum(), [a, b], allow_unused=True)


@program(make=leaf, backward=True)
def gradient_penalty(a):
    b = (a**3).sum()
    (g,) = torch.autograd.grad(b, a, create_graph=True)
    return b + (g**2).sum()


@program(make=leaf)
def gradient_twice(a):
    b = (a**3).sum()
    (first,) = torch.autograd.grad(b, a, retain_graph=True)
    (second,) = torch.autograd.grad(b, a)
    return first + second


@program(make=leaf, graphs=1, breaks=1)
def gradient_twice_without_the_graph(a):
    b = (a**3).sum()
    (first,) = torch.autograd.grad(b, a)
    (second,) = torch.autograd.grad(b, a)
    return first + second


@program(make=with_history, graphs=2, breaks=1)
def gradient_beyond_the_arguments(b, a):
    (g,) = torch.autograd.grad((b**2).sum(), a, allow_unused=True)
    return g + 1


@program(make=leaf, breaks=1)
def gradient_of_what_needs_none(a):
    with torch.no_grad():
        b = (a**2).sum()
    return torch.autograd.grad(b, a)


@program(make=leaf)
def gradient_without_grad_mode(a):
    b = (a**2).sum()
    with torch.no_grad():
        return torch.autograd.grad(b, a)[0]


@program(make=leaf)
def batched_gradients(a):
    return torch.autograd.grad(a**2, a, torch.eye(6).reshape(6, 2, 3), is_grads_batched=True)[0]


@program(make=leaf, backward=True)
def two_hooks(a):
    b = a * 2
    b.register_hook(lambda g: g * 2)
    b.register_hook(lambda g: g + 1)
    return (b * b).sum()


@program(make=leaf, backward=True)
def hook_before_a_change_in_place(a):
    b = a * 2
    b.register_hook(lambda g: g * 3)
    b.mul_(5)
    return b.sum()


@program(make=leaf, backward=True)
def hook_and_gradient(a):
    b = a * 2
    b.register_hook(lambda g: g * 3)
    (g,) = torch.autograd.grad((b**2).sum(), a, create_graph=True)
    return g.sum()


@program(make=leaf, backward=True, graphs=2, breaks=1)
def hook_on_an_argument_and_gradient(a):
    a.register_hook(lambda g: g * 3)
    (g,) = torch.autograd.grad((a**2).sum(), a, create_graph=True)
    return g.sum()


@program(make=leaf, backward=True)
def hook_that_gives_nothing(a):
    b = a * 2
    b.register_hook(lambda g: None)
    return b.sum()


@program(make=leaf, backward=True)
def hook_over_a_tensor(a):
    w = a.detach() * 3
    b = a * 2
    b.register_hook(lambda g: g * w)
    return b.sum()


@program(make=leaf, backward=True, graphs=0, eager=1)
def hook_reads_a_variable_set_later(a):
    k = 2.0
    b = a * 2
    b.register_hook(lambda g: g * k)
    k = 5.0
    return b.sum()


@program(make=leaf, backward=True, graphs=2, breaks=1)
def hook_reads_a_global(a):
    b = a * 2
    b.register_hook(lambda g: g * SCALES[0])
    return b.sum()


@program(make=leaf, backward=True, graphs=2, breaks=1)
def hook_keeps_what_it_sees(a):
    seen = []
    b = a * 2
    b.register_hook(lambda g: seen.append(g.shape))
    return b.sum(), seen


@program(A, breaks=1)
def hook_on_what_needs_no_gradient(a):
    b = a * 2
    b.register_hook(lambda g: g)
    return b


@program(make=leaf, breaks=1, stable=False)
def hook_is_removed_after_backward(a):
    handle = a.register_hook(lambda g: g * 3)
    (a * 2).sum().backward()
    handle.remove()
    return a.grad


@program(make=leaf, backward=True)
def hook_after_accumulation(a):
    a.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2))
    return (a**2).sum()


def hooked(register, *places):
    """Return a maker of (a model with a hook on some of its parts, its argument)."""

    def make():
        torch.manual_seed(1)
        torch.utils.hooks.RemovableHandle.next_id = 1000  # handles are keys: alike in every run
        m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        for place in places:
            register(m[place] if place is not None else m)
        return m, A.clone().requires_grad_()

    return make


def twice(module, given, result):
    return result * 2


@program(make=hooked(lambda m: m.register_forward_hook(twice), 0, None), backward=True)
def forward_hooks(m, a):
    return m(a).sum()


@program(
    make=hooked(lambda m: m.register_forward_pre_hook(lambda n, a, k: ((a[0] * 2,), k), with_kwargs=True), 2),
    backward=True,
)
def forward_hook_before_with_keywords(m, a):
    return m(a).sum()


def double_gradient(m):
    m.register_full_backward_hook(lambda n, gi, go: (gi[0] * 2,))


@program(make=hooked(double_gradient, 0), backward=True, breaks=1)
def backward_hook_on_a_part(m, a):
    return m(a).sum()


@program(
    make=hooked(lambda m: m.register_full_backward_pre_hook(lambda n, go: (go[0] * 2,)), 2),
    backward=True,
    graphs=2,
    breaks=1,
)
def backward_hook_before_a_part(m, a):
    return m(a).sum()


@program(make=hooked(double_gradient, 0))
def backward_hook_without_gradients(m, a):
    with torch.no_grad():
        return m(a).sum()


@corpus.parametrize()
def test_program(program):
    check(program)
