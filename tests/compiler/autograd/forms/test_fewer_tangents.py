"""Backwards for some results, cut out of the one for all: what eager gives, and what a new trace would have been."""

import itertools
import random
import warnings
import zlib

import pytest
import torch
from torch import nn
from torch.nn import functional

import plumbline
from plumbline.fuzz.operator_sweep.argument_trees import tensors_of
from plumbline.fuzz.operator_sweep.torch_samples import OPERATORS
from support.cut_backwards import CutAccount, compared_cuts
from support.sampled_operators import cases_of, program_of


def matrices(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(4, 6, generator=generator, requires_grad=True) for _ in range(2)]


def loss_and_logits(x, w):
    logits = functional.linear(x, w).tanh()
    return logits, functional.cross_entropy(logits, torch.tensor([0, 1, 2, 3])), x.exp()


def keys_that_lie_otherwise(x, w):
    keys = (x * w).view(2, 2, 2, 3).transpose(1, 2)
    scores = (keys.transpose(-1, -2) @ keys).softmax(-1)
    return keys.sin(), keys.transpose(1, 2).reshape(4, 6).mm(w.t()), scores.sum(), keys


def sums_of_sums(x, w):
    a = x.sin()
    b = a * w
    c = b + a
    return a.exp(), b.exp(), c.exp(), (c * c).sum(), a.sum(0)


def written_views(x, w):
    y = x * 2
    y[1:3] = w[:2].cos()
    y.select(0, 0).mul_(3)
    return y, y.sum(0), (y * w).sum()


def in_half_precision(x, w):
    h = (x.bfloat16() @ w.bfloat16().t()).float()
    return h, h.relu().sum(), h.bfloat16()


PROGRAMS = [loss_and_logits, keys_that_lie_otherwise, sums_of_sums, written_views, in_half_precision]


class Pair(torch.autograd.Function):
    """Two results of one step; a missing gradient is zeros, and no absent one."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x.sin(), w.cos()

    @staticmethod
    def backward(ctx, first, second):
        x, w = ctx.saved_tensors
        return first * x.cos(), second * w


class PairWithoutZeros(Pair):
    """Two results of one step, whose backward is another one where a gradient is missing."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.set_materialize_grads(False)
        return Pair.forward(ctx, x, w)

    @staticmethod
    def backward(ctx, first, second):
        x, w = ctx.saved_tensors
        return (x if first is None else first * x.cos()), (None if second is None else second * w)


class Constant(torch.autograd.Function):
    """A step whose gradient is the same whatever it is given."""

    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        return torch.ones(4, 6)


class Drawing(torch.autograd.Function):
    """A step that draws in its backward."""

    @staticmethod
    def forward(ctx, x):
        return x.sin()

    @staticmethod
    def backward(ctx, gradient):
        return gradient * torch.rand(4, 6)


def pair(x, w):
    first, second = Pair.apply(x, w)
    return first.exp(), second.exp(), x * w


def pair_without_zeros(x, w):
    first, second = PairWithoutZeros.apply(x, w)
    return first.exp(), second.exp(), x * w


def constant(x, w):
    return Constant.apply(x).exp(), (x * w).sum(), w.exp()


def drawing(x, w):
    return Drawing.apply(x).exp(), (x * w).sum(), w.exp()


def parts_of_one(x, w):
    mean, spread = torch.var_mean(x, 0)
    first, second, third = (x * w).unbind(0)[:3]
    return mean.exp(), spread.exp(), first.exp(), second.exp(), third.sin()


def on_paths_of_their_own(x, w):
    return x.sin(), w.sin()


STEPS_OF_SEVERAL = [pair, pair_without_zeros, constant, drawing, parts_of_one, on_paths_of_their_own]


def gradients(function, chosen):
    torch.manual_seed(1)
    inputs = matrices()
    results = function(*inputs)
    return torch.autograd.grad([results[place].sum() for place in chosen], inputs, allow_unused=True)


def compare(program, backend, patterns, **options):
    account = CutAccount()
    compiled = plumbline.compile(program, backend=backend, **options)
    with compared_cuts(account):
        for chosen in patterns:
            expected, found = gradients(program, chosen), gradients(compiled, chosen)
            assert [one is None for one in found] == [one is None for one in expected], chosen
            for one, other in zip(found, expected, strict=True):
                if one is not None:
                    torch.testing.assert_close(one, other)
                    assert one.stride() == other.stride(), chosen
    assert not account.unlike, account.unlike[0]
    return account


def patterns_of(program):
    count = len(program(*matrices()))
    return [chosen for size in range(1, count) for chosen in itertools.combinations(range(count), size)]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_every_choice_of_results_is_cut_out_of_the_whole_backward(program, dynamic):
    """One choice of the keys has a reshape that copies where it was a view."""
    account = compare(program, "aot_eager", patterns_of(program), dynamic=dynamic)
    again = int(program is keys_that_lie_otherwise)
    assert (account.traced, account.cut) == (again, len(patterns_of(program)) - again)


@pytest.mark.parametrize("program", STEPS_OF_SEVERAL, ids=lambda program: program.__name__)
def test_a_step_that_takes_several_gradients_is_asked_anew(program):
    """Zeros in the place of a missing gradient, another formula, a draw less: only the program itself can say."""
    compare(program, "aot_eager", patterns_of(program))


@pytest.mark.parametrize("program", [pair, pair_without_zeros, drawing])
def test_what_only_the_program_can_say_is_not_cut(program):
    account = compare(program, "aot_eager", [(0,), (1,), (2,)])
    assert (account.cut, account.traced) == (0, 3)


def test_a_gradient_that_is_the_same_for_every_result_is_not_cut_where_it_counts():
    account = compare(constant, "aot_eager", [(1,), (2,), (0, 2)])
    assert account.cut < 3


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_what_is_cut_has_loops(program):
    compare(program, "inductor", patterns_of(program)[:4])


def test_a_cut_for_other_sizes_holds_for_what_its_sizes_were_asked():
    compiled = plumbline.compile(sums_of_sums, backend="aot_eager", dynamic=True)
    account = CutAccount()
    with compared_cuts(account):
        for rows, chosen in ((4, 3), (7, 3), (5, 4), (2, 0)):
            x = torch.randn(rows, 6, requires_grad=True)
            w = torch.randn(rows, 6, requires_grad=True)
            expected = torch.autograd.grad(sums_of_sums(x, w)[chosen].sum(), (x, w), allow_unused=True)
            found = torch.autograd.grad(compiled(x, w)[chosen].sum(), (x, w), allow_unused=True)
            torch.testing.assert_close(found, expected)
    assert account.cut
    assert not account.unlike


def test_a_model_with_its_loss_and_its_states_is_trained_by_its_loss():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.project, self.norm = nn.Linear(6, 18), nn.LayerNorm(6)

        def forward(self, x):
            query, key, value = (
                part.view(-1, 4, 2, 3).transpose(1, 2) for part in self.project(self.norm(x)).chunk(3, -1)
            )
            mixed = functional.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(-1, 4, 6)
            return (mixed * mixed).mean(), mixed, (key, value)

    torch.manual_seed(0)
    model = Model()
    compiled, account = plumbline.compile(model, backend="aot_eager"), CutAccount()
    x = torch.randn(2, 4, 6)
    with compared_cuts(account):
        found = torch.autograd.grad(compiled(x)[0], list(model.parameters()))
    assert (account.cut, account.traced, account.unlike) == (1, 0, [])
    torch.testing.assert_close(found, torch.autograd.grad(model(x)[0], list(model.parameters())))


def has_gradients(operator):
    kind = OPERATORS[operator]
    return kind.supports_autograd and torch.float64 in kind.supported_dtypes("cpu")


def tensors_in(results):
    """Return the tensors of results: written here, as calls of our own packages are not captured."""
    if isinstance(results, torch.Tensor):
        return [results]
    return [tensor for each in results for tensor in tensors_in(each)] if isinstance(results, (tuple, list)) else []


SAMPLED = [name for name in sorted(OPERATORS) if zlib.crc32(name.encode()) % 30 == 7 and has_gradients(name)]


@pytest.mark.parametrize("operator", SAMPLED)
def test_results_of_sampled_operators_are_cut_as_a_new_trace_would_be(operator):
    """Nine tenths of all were run with this comparison once, 6,000 cuts; here is every thirtieth."""
    cases = cases_of(operator, "float64", 2)
    program, inputs = program_of(cases), [case.fresh_inputs() for case in cases]
    leaves = [each for each in tensors_of(inputs) if each.requires_grad]

    def read_twice(rows):
        results = [each for each in tensors_in(program(rows)) if each.requires_grad]
        return [part for each in results for part in (each, each.abs().sum(), each * 2)]

    account, draw = CutAccount(), random.Random(operator)
    compiled = plumbline.compile(read_twice, backend="aot_eager")
    with compared_cuts(account), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = compiled(inputs)
        for _ in range(4):
            chosen = draw.sample(results, draw.randint(1, max(1, len(results) - 1)))
            ends = [each.abs().sum() for each in chosen]
            torch.autograd.grad(ends, leaves, allow_unused=True, retain_graph=True)
    assert account.cut + account.traced
    assert not account.unlike, account.unlike[0]
