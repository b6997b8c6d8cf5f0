"""Tensor functions without control flow: arguments, constants, attributes, operators, in-place changes."""

import math

import torch
import torch.nn.functional as F  # noqa: N812 - as everyone writes it

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
SCALE = 3.0
TABLE = torch.arange(6.0).reshape(2, 3)
A, B = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(0.5, 2, 6).reshape(2, 3)


@program(A, B)
def adds_two_tensors(a, b):
    return a + b


@program(A, 2.0, changed=lambda: (A.clone(), 3.0))
def multiplies_by_a_number(a, k):
    return a * k


@program(A, changed=lambda: (torch.ones(4, 4),))
def uses_shape(a):
    return a / a.shape[0] + a.size(1) + len(a)


@program(A, changed=lambda: (A.double(),))
def casts_to_its_own_dtype(a):
    return torch.ones(2, 3, dtype=a.dtype) + a


@program(A)
def reads_global_number(a):
    return a * SCALE


@program(A)
def reads_global_tensor(a):
    return a * TABLE


@program(A)
def calls_math(a):
    return a * math.sqrt(a.shape[-1]) + math.pi


@program(A, B)
def keyword_arguments_of_torch(a, b):
    return torch.add(a, b, alpha=2) + torch.sum(a, dim=0, keepdim=True)


@program(A)
def method_chain(a):
    return a.abs().sqrt().clamp(min=0.1).t().contiguous()


@program(A)
def functional_calls(a):
    return F.softmax(F.relu(a), dim=-1) + F.layer_norm(a, (3,))


@program(A)
def in_place_on_a_fresh_tensor(a):
    y = a.clone()
    y.add_(1).mul_(2)
    y[0] = 5
    y[:, 1] += 1
    return y


@program(A)
def in_place_on_an_argument(a):
    a.add_(1)
    return a * 2


@program(A, graphs=0)
def returns_its_argument(a):
    return a


@program(A)
def index_assignment_on_an_argument(a):
    a[0, 1] = 7
    a[1] = a[0] * 2
    return a.sum()


@program(A)
def augmented_assignment(a):
    b = a
    b += 1
    return a, b


@program(A)
def slices(a):
    return a[:, 1:], a[..., None], a[1], a[:, ::2], a[None]


@program(A)
def boolean_comparisons(a):
    return (a > 0) & (a < 1) | (a == -1), ~(a > 0)


@program(A)
def where_and_masks(a):
    return torch.where(a > 0, a, -a).masked_fill(a > 0.5, 0)


@program(A)
def reflected_operators(a):
    return 1 - a, 2 / (a + 3), 2**a, -a, +a, abs(a)


@program(A)
def matmul_operator(a):
    return a @ a.T


@program(A)
def returns_many(a):
    return {"sum": a.sum(), "parts": [a.mean(), (a.max(), 3)], "name": "x", "none": None}


@program(A)
def torch_max_with_indices(a):
    best = torch.max(a, dim=1)
    values, indices = a.min(dim=0)
    return best.values + 1, best.indices, values, indices


@program(A)
def result_structure_is_returned(a):
    return torch.max(a, dim=1)


@program(A)
def split_and_chunk(a):
    first, second = a.chunk(2)
    return torch.cat([first, second], dim=1), a.split(1, dim=1)


@program(A)
def unpacks_a_tensor(a):
    first, second = a
    return first * second


@program(A)
def iterates_over_rows(a):
    total = torch.zeros(3)
    for row in a:
        total = total + row
    return total


@program(A)
def factory_functions(a):
    n = a.shape[0]
    return torch.zeros(n, 3) + torch.arange(3) + torch.full((n, 1), 2.0) + torch.tensor([1.0, 2.0, 3.0])


@program(A)
def like_functions(a):
    return torch.zeros_like(a) + torch.ones_like(a) + a.new_full((3,), 2.0)


@program(A)
def dtype_and_device_attributes(a):
    return torch.zeros(3, dtype=a.dtype, device=a.device) + a.to(torch.float64), a.is_floating_point(), a.ndim


@program(A)
def random_draws(a):
    return a + torch.rand(2, 3) + torch.randn_like(a)


@program(A)
def dropout_in_training(a):
    return F.dropout(a, 0.5, training=True)


@program(A)
def einsum(a):
    return torch.einsum("ij,kj->ik", a, a)


@program(A)
def view_attributes(a):
    return a.T, a.mT, a.real


@program(A, graphs=0)
def constant_only_result_beside_tensor(a):
    return a.dim(), a.numel(), a.stride(), a.size(), tuple(a.shape)


@program(A.clone().requires_grad_())
def keeps_requires_grad(a):
    return (a * 2).sum(), a.requires_grad, a.detach() * 3


@program(A, graphs=0)
def no_tensor_operation(a):
    return 3, a


@program(3, 4, graphs=0, changed=lambda: (3, 5))
def only_numbers(a, b):
    return a * b + a // b


@program(A)
def same_tensor_twice_in_result(a):
    y = a + 1
    return y, y


@program(make=lambda: (lambda t: (t, t))(A.clone()), changed=lambda: (A.clone(), A.clone()))
def aliased_arguments_and_mutation(a, b):
    a.add_(1)
    return a is b, b * 2


@program(make=lambda: (lambda t: (t, t[0]))(A.clone()), changed=lambda: (A.clone(), A[0].clone()))
def view_argument_and_mutation(a, b):
    a.mul_(2)
    return b + 1


@program(A, None, graphs=0, changed=lambda: (A.clone(), A.clone()))
def optional_argument(a, b):
    return a if b is None else a + b


@program(A, A.double())
def type_promotion(a, b):
    return a + b, a * 2, (a > 0) + 1


@program(torch.tensor([3, 1, 2]))
def integer_tensors(a):
    return a // 2, a % 2, a.sort().values, a.float().mean()


@program(torch.randn(2, 3, dtype=torch.complex64))
def complex_tensors(a):
    return a.conj() * a, a.real + a.imag


@program(A)
def operations_through_torch_ops(a):
    return torch.ops.aten.add.Tensor(a, 1) + torch.ops.aten.relu(a)


@program(A)
def unbound_tensor_methods(a):
    return torch.Tensor.add(a, 1) + torch.Tensor.sin(a)


@program(A)
def gather_and_scatter(a):
    index = torch.tensor([[0, 1, 2], [2, 1, 0]])
    return a.gather(1, index), torch.zeros(2, 3).scatter_add(1, index, a)


@program(A, graphs=0, eager=0, breaks=1)
def a_shape_error_is_that_of_eager(a):
    return a @ a


@corpus.parametrize()
def test_program(program):
    check(program)
