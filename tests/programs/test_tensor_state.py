"""What a tensor is beside its elements: data, requires_grad, history, place in its storage, parameters."""

import torch
from torch import nn

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)
B = torch.arange(6.0).reshape(2, 3)


def leaf():
    return (A.clone().requires_grad_(),)


def linear():
    torch.manual_seed(1)
    return nn.Linear(3, 2), A.clone()


class Late(nn.Module):
    def forward(self, x):
        if not hasattr(self, "scale"):
            self.scale = nn.Parameter(torch.ones(3) * 2)
        return x * self.scale


def with_its_row():
    a = A.clone()
    return a, a[0]


@program(A, B)
def data_becomes_that_of_another(a, b):
    a.data = b
    b.add_(1)
    return a + 1


@program(A, B)
def data_is_set_twice(a, b):
    row = a[0]
    a.data = b * 2
    a.add_(1)
    a.data = a.data.reshape(3, 2)
    row.add_(1)
    return a, row


@program(A)
def data_becomes_a_view_of_itself(a):
    a.data = a.data[0]
    a.mul_(2)
    return a.shape, a


@program(make=with_its_row, changed=lambda: (A.clone(), A.clone()[0]))
def data_is_set_under_a_view(a, row):
    a.data = torch.zeros(2, 3)
    row.add_(1)
    a.add_(2)
    return a + 0


@program(A, graphs=2, breaks=1)
def data_is_set_before_a_break(a):
    a.data = a * 3
    print("here")
    return a + 1


@program(make=linear)
def data_of_a_parameter_is_set(m, a):
    m.weight.data = torch.ones(2, 3)
    return m(a)


@program(make=leaf, backward=True)
def detached_in_place_after_use(a):
    b = a * 2
    c = b * 3
    b.detach_()
    return (c + b).sum(), b.is_leaf, b


@program(make=leaf)
def detached_under_its_view(a):
    b = a * 2
    row = b[0]
    b.detach_()
    b.add_(1)
    return row, b


@program(make=leaf, breaks=1)
def views_cannot_be_detached_in_place(a):
    b = (a * 2)[0]
    b.detach_()
    return b


@program(A)
def leaf_made_of_an_argument(a):
    t = a.clone().requires_grad_()
    (g,) = torch.autograd.grad((t**3).sum(), t, create_graph=True)
    return g.detach()


@program(A)
def fresh_leaf_is_returned(a):
    t = a * 2
    t.requires_grad = True
    return t, t * 3


@program(A, breaks=1)
def whole_numbers_have_no_gradient(a):
    t = torch.ones(3, dtype=torch.long)
    t.requires_grad_()
    return t


@program(A, backward=True)
def requires_grad_of_an_argument(a):
    a.requires_grad_()
    return (a * 2).sum()


@program(make=leaf)
def requires_grad_is_taken_back_for_a_while(a):
    a.requires_grad_(False)
    b = a * 2
    a.add_(1)
    a.requires_grad = True
    return a, b, a * 3


@program(make=linear)
def layers_are_frozen(m, a):
    for p in m.parameters():
        p.requires_grad_(False)
    return m(a)


@program(make=linear, backward=True)
def data_of_a_parameter_between_uses(m, a):
    b = m(a).sum()
    m.weight.data = m.weight.data * 3
    return b + m(a).sum()


@program(make=lambda: (lambda w: (w, w.detach()))(nn.Parameter(A.clone())))
def data_of_a_parameter_with_a_twin(w, v):
    w.data = torch.zeros(2, 3)
    v.add_(1)
    return w + v


@program(make=linear)
def gradient_is_given(m, a):
    g = torch.ones(2, 3)
    m.weight.grad = g
    g.add_(1)
    m.bias.grad = m.weight.grad[:, 0]
    return m.weight.grad + 1, g


@program(make=linear, graphs=1, breaks=1)
def gradient_of_another_shape_is_refused(m, a):
    m.weight.grad = torch.ones(3)


@program(make=linear)
def steps_of_its_own(m, a):
    w = torch.zeros(3, requires_grad=True)
    for _ in range(3):
        (g,) = torch.autograd.grad(((a @ w - 1) ** 2).mean(), w)
        w = (w - 0.1 * g).detach().requires_grad_()
    return w


@program(A)
def module_is_made_and_returned(a):
    m = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.LayerNorm(4))
    return m(a), m


@program(make=lambda: (Late(), A.clone()), stable=False, backward=True)
def parameter_is_made_at_the_first_call(m, a):
    return (m(a) + m(a * 2)).sum()


@program(make=linear, stable=False)
def parameter_is_replaced(m, a):
    m.weight = nn.Parameter(torch.ones(2, 3))
    m.register_parameter("scale", nn.Parameter(a[0, :2].clone()))
    m.register_buffer("shift", a[1, :2] + 1)
    return m(a) * m.scale + m.shift


@program(A)
def parameter_over_an_argument(a):
    p = nn.Parameter(a)
    with torch.no_grad():
        p.add_(1)
    return a, isinstance(p, nn.Parameter), p.requires_grad


@program(A)
def parameter_is_returned(a):
    p = nn.Parameter(a * 2)
    return p, (p * 3).sum()


@program(make=leaf)
def parameter_forgets_history(a):
    p = nn.Parameter(a * 2)
    return p, p.is_leaf


@program(A)
def parameter_without_gradient(a):
    p = nn.Parameter(a, requires_grad=False)
    p.add_(1)
    return p, a


@program(torch.arange(12.0).reshape(4, 3))
def place_of_a_row(a):
    return a[2].storage_offset(), a[1:].storage_offset(), a + 1


@program(make=lambda: (torch.arange(12.0).reshape(4, 3)[1:],), changed=lambda: (torch.arange(12.0).reshape(4, 3)[:3],))
def place_of_an_argument(a):
    return a.storage_offset(), a[1].storage_offset(), a + 1


@program(A)
def constructors_of_old(a):
    return (
        torch.Tensor([1, 2.5]),
        torch.FloatTensor([[1], [2]]),
        torch.LongTensor((1, 2)),
        torch.Tensor(2, 3).shape,
        torch.Tensor(a.shape).shape,
        torch.BoolTensor(3).dtype,
        torch.DoubleTensor([0.1]) + a[0, 0],
    )


@program(A, graphs=0, breaks=1)
def constructor_of_old_over_a_tensor(a):
    return torch.Tensor(a)


@program(make=leaf)
def history_is_asked_for(a):
    b = a * 2
    return a.grad_fn is None, b.grad_fn is not None, bool(b.grad_fn), b.detach().grad_fn, b


@program(make=leaf, breaks=2)
def history_is_looked_into(a):
    b = a * 2
    return b.grad_fn.name()


@corpus.parametrize()
def test_program(program):
    check(program)
