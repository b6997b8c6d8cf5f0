"""The shapes of code that packages are made of: registries, cached recipes, lazy modules, overrides, odd numbers."""

import dataclasses
import functools

import numpy as np
import torch
from torch import nn

from support.programs import Corpus, check

corpus = Corpus()
program = corpus.program
A = torch.linspace(-1, 1, 6).reshape(2, 3)


class Recipe:
    """Found in a cache by its identity, as einops finds its recipes."""

    def __init__(self, order):
        self.order = list(order)
        self.calls = 0


@dataclasses.dataclass(frozen=True)
class Shape:
    """Found in a cache by what it holds."""

    rows: int
    columns: int


@functools.lru_cache(maxsize=256)
def recipe_of(pattern):
    return Recipe([int(letter) for letter in pattern])


@functools.lru_cache(maxsize=1024)
def reordered(recipe, shape):
    lengths = list(shape)
    return [lengths[place] for place in recipe.order], len(recipe.order)


@functools.lru_cache(maxsize=8)
def area(shape, times=1):
    return shape.rows * shape.columns * times


@functools.cache
def counting(recipe):
    recipe.calls += 1
    return recipe.calls


class Backend:
    """Looks for its subclasses, as registries do."""

    factor = 1.0


class FirstBackend(Backend):
    factor = 2.0


class SecondBackend(Backend):
    factor = 3.0


class SecondBackendOnly(SecondBackend):
    factor = 5.0


RECIPE, OTHER = Recipe([1, 0]), Recipe([0, 1])


def cold():
    """Forget what the caches know."""
    for cache in (recipe_of, reordered, area, counting):
        cache.cache_clear()
    RECIPE.calls = 0
    return (A.clone(),)


def caches():
    return [cache.cache_info() for cache in (recipe_of, reordered, area)]


@program(make=lambda: (A.clone(),))
def a_cache_over_objects(a):
    sizes, count = reordered(recipe_of("10"), a.shape)
    return a.reshape(sizes) * count, reordered(recipe_of("10"), a.shape)[0]


@program(make=cold, state=caches)
def a_cold_cache_over_objects(a):
    return a.reshape(reordered(RECIPE, a.shape)[0]), reordered(OTHER, a.shape)


@program(make=cold, state=caches)
def a_cache_over_objects_that_are_equal(a):
    return a * area(Shape(2, 3)) + area(Shape(2, 3), times=2) - area(Shape(*a.shape))


@program(make=cold, breaks=1, graphs=1)
def a_cached_function_that_changes_its_argument(a):
    return a * counting(RECIPE)


@program(make=cold, graphs=0, eager=1)
def a_cached_function_whose_argument_changes(a):
    first = reordered(RECIPE, (3, 2))[0]
    RECIPE.order.reverse()
    RECIPE.order.reverse()
    return a.reshape(first)


@program(
    make=lambda: (torch.ones(4, 3),),
    then=tuple((lambda n=n: (torch.ones(n, 3),), n == 5) for n in (5, 6, 7)),
)
def a_cache_over_sizes(a):
    return a.reshape(reordered(RECIPE, a.shape)[0])


@program(A)
def classes_that_derive_from_one(a):
    found, names = Backend.__subclasses__(), []
    while found:
        kind = found.pop()
        found += kind.__subclasses__()
        names.append(kind.__name__)
        a = a * kind.factor
    return a, names, type.__name__


@program(
    *(A, np.int64(3)), then=(((lambda: (A.clone(), np.int64(5))), False), ((lambda: (A.clone(), np.int64(0))), False))
)
def a_whole_number_of_numpy(a, n):
    return a * n + n * a, torch.full((2,), n), n


@program(*(A, np.float64(3.5)), then=(((lambda: (A.clone(), np.float64(5.5))), False),))
def a_number_of_numpy(a, n):
    return a * n + torch.sin(a) ** n.item(), a.sum() * n


@program(*(A, np.float32(3.5)), then=(((lambda: (A.clone(), np.float32(5.5))), True),))
def arithmetic_with_a_number_of_numpy(a, n):
    return a * (n + np.float32(1))


def lazy():
    torch.manual_seed(0)
    return nn.Sequential(nn.LazyLinear(4), nn.LazyBatchNorm1d(), nn.ReLU(), nn.LazyLinear(2)), torch.ones(3, 5)


@program(make=lazy, stable=False)  # other modules
def lazy_modules(net, x):
    return net(x), [type(part).__name__ for part in net]


class Wrapped:
    """No tensor, but asked by torch's functions."""

    def __init__(self, data):
        self.data = data

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is torch.neg:
            return NotImplemented
        inside = tuple(arg.data if isinstance(arg, Wrapped) else arg for arg in args)
        return Wrapped(function(*inside, **(kwargs or {})) + (kwargs is None) + len(types))


@program(A)
def functions_of_what_is_no_tensor(a):
    return torch.add(torch.sin(Wrapped(a)), 1, alpha=2).data + torch.stack([Wrapped(a).data, a]).sum(0)


@program(A, breaks=1, graphs=0)
def a_class_that_declines(a):
    try:
        torch.neg(Wrapped(a))
    except TypeError:
        return a


@program(A)
def operators_of_tensors_by_name(a):
    both = torch.Tensor.__rsub__(a, 1) + torch.Tensor.__rpow__(a, 2) + torch.Tensor.__rtruediv__(a, 3)
    return both, torch.Tensor.norm(a), torch.Tensor.split(a, 1), len(torch.Tensor.unflatten(a, 1, (3, 1)))


@program(A)
def questions_about_tracing(a):
    if torch.fx._symbolic_trace.is_fx_tracing() or torch.onnx.is_in_onnx_export() or torch.jit.is_scripting():
        return a
    return a.sin()


@program(A)
def masked_reductions(a):
    mask = a > -0.5
    return torch.masked.sum(a, 1, mask=mask), torch.masked.softmax(a, 1, mask=mask), torch.masked.amax(a, 0, mask=mask)


class Through(torch.autograd.Function):
    """Takes modules, which no graph can carry."""

    @staticmethod
    def forward(ctx, x, modules):
        ctx.save_for_backward(x)
        for module in modules if isinstance(modules, list) else [modules]:
            x = module(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.saved_tensors[0], None


class Twice(torch.autograd.Function):
    """Doubles."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


@program(make=lambda: (A.clone().requires_grad_(),), backward=True)
def an_instance_of_an_autograd_function(a):
    return Twice().apply(a) + 1


SQUASH, RAMP = nn.Tanh(), nn.ReLU()


@program(make=lambda: (A.clone().requires_grad_(),), backward=True)
def modules_for_an_autograd_function(a):
    return Through.apply(a, SQUASH) + Through.apply(a, [SQUASH, RAMP])


@program(A, breaks=1, stable=False)  # another class
def a_dataclass_made_inside(a):
    made = dataclasses.make_dataclass("Made", [("a", torch.Tensor), ("b", float, dataclasses.field(default=2.0))])
    return dataclasses.replace(made(a), b=3.0).b * made(a).a


@corpus.parametrize()
def test_program(program):
    check(program)
