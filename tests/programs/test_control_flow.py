"""Control flow of torch: cond, while_loop, associative_scan. Eager itself compiles them, so few programs stand here."""

import torch
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.while_loop import while_loop

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
SEEN = []


class Choice(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first = nn.Linear(3, 3)
        self.second = nn.Linear(3, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.first, self.second, (x,))


@program(A, then=((lambda: (A + 1,), False),))
def branch_by_data(a):
    w = a * 2
    return torch.cond(a.sum() > 1, lambda z: (z + w, {"k": z}["k"] * 2), lambda z: (z - w, z + 1), (a,))


@program(A)
def branch_by_a_known_value(a):
    return torch.cond(a.shape[0] > 1, lambda z: z.sin(), lambda z: z.cos(), (a,))


@program(A)
def branch_in_a_branch(a):
    def inner(z):
        return torch.cond(z.max() > 0, lambda u: u * 2, lambda u: u + torch.rand(2, 3), (z,))

    return torch.cond(a.sum() > 0, inner, lambda z: z.cos(), (a,))


@program(make=lambda: (Choice(), A.clone()))
def branches_are_modules(m, a):
    with torch.no_grad():
        return m(a)


@program(make=lambda: (A.clone().requires_grad_(),), backward=True)
def branch_with_gradients(a):
    return torch.cond(a.sum() > 0, lambda z: z.sin(), lambda z: z.cos(), (a,)).sum()


@program(A, breaks=1)
def branch_that_gives_its_operand(a):
    return torch.cond(a.sum() > 0, lambda z: z, lambda z: z.cos(), (a,))


@program(A, breaks=1)
def branch_that_writes(a):
    return torch.cond(a.sum() > 0, lambda z: z.add_(1).sin(), lambda z: z.cos(), (a,))


@program(A, breaks=1)
def branch_with_an_effect(a):
    return torch.cond(a.sum() > 0, lambda z: (SEEN.append(1), z.sin())[1], lambda z: z.cos(), (a,))


@program(A)
def loop_by_data(a):
    k = a.sum() * 0 + 2
    return while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * k), (torch.tensor(0), a))


@program(A)
def loop_without_a_turn(a):
    return while_loop(lambda i, z: i < 0, lambda i, z: (i + 1, z * 2), (torch.tensor(0), a))


@program(make=lambda: (A.clone().requires_grad_(),), backward=True)
def running_products(a):
    return associative_scan(lambda x, y: x * y, a, 1, combine_mode="generic").sum()


@program(A, A + 2)
def linear_recurrence(a, b):
    def step(x, y):
        return x[0] * y[0], x[1] * y[0] + y[1]

    return associative_scan(step, (a, b), dim=0, reverse=True, combine_mode="generic")


@program(A, graphs=2, breaks=1)
def branch_that_draws_and_has_gradients(a):
    w = a.clone().requires_grad_()
    return torch.cond(a.sum() > 0, lambda z: z * torch.rand(2, 3), lambda z: z.cos() * torch.rand(2, 3), (w,)).sum()


@program(make=lambda: (A.clone().requires_grad_(),), backward=True)
def loop_with_gradients(a):
    return while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * a.sin()), (torch.tensor(0), a))[1]


@program(A, dynamic=True)
def branch_with_an_open_size(a):
    return torch.cond(a.sum() > 0, lambda z: z * a.shape[0], lambda z: z.cos(), (a,))


@corpus.parametrize()
def test_program(program):
    check(program)
