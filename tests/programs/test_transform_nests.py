"""Random nests of `torch.func` transforms, up to four deep: eager's values and gradients, in one graph.

With `jacfwd` or `hessian` inside another transform fake tensors lose their device, and the code runs in eager then.
"""

import random

import pytest
import torch
from torch import func

import plumbline
from plumbline.compiler.base.events import Broke, CompilerFailed, RanEagerly, recording

BASES = {
    "sine": lambda x: x.sin() * x,
    "tanh": lambda x: (x * 0.7).tanh() + x.cos(),
    "softmax": lambda x: torch.softmax(x, 0) * x,
    "products": lambda x: x * x.flip(0) + x.exp() * 0.1,
    "matrix": lambda x: torch.outer(x, x).sin().sum(0),
}
TRANSFORMS = {
    "vmap": lambda f: lambda x: func.vmap(f)(torch.stack([x, x * 0.5])).sum(0),
    "vmap_out": lambda f: lambda x: func.vmap(f, in_dims=1, out_dims=1)(torch.stack([x, x + 1], 1)).sum(1),
    "grad": lambda f: lambda x: func.grad(lambda y: f(y).sum())(x),
    "grad_and_value": lambda f: lambda x: sum(func.grad_and_value(lambda y: f(y).sum())(x)),
    "jvp": lambda f: lambda x: func.jvp(f, (x,), (x.cos(),))[1],
    "vjp": lambda f: lambda x: func.vjp(f, x)[1](x)[0],
    "jacrev": lambda f: lambda x: func.jacrev(f)(x).sum(0),
    "jacfwd": lambda f: lambda x: func.jacfwd(f)(x).sum(1),
    "hessian": lambda f: lambda x: func.hessian(lambda y: f(y).sum())(x).sum(0),
}
DEAR = {"hessian", "jacrev", "jacfwd"}  # each multiplies what is below it
FORWARD = {"hessian", "jacfwd"}


def nest(seed):
    """Return the names of a nest, from inside, and its function of a vector."""
    choose = random.Random(seed)
    depth = 1 + seed % 4
    base = choose.choice(list(BASES))
    names, function, dear = [base], BASES[base], 0
    while len(names) <= depth:
        name = choose.choice(list(TRANSFORMS))
        if name in DEAR and dear == 2:
            continue
        dear += name in DEAR
        names.append(name)
        function = TRANSFORMS[name](function)
    return names, function


def values_and_gradients(run):
    x = torch.tensor([0.3, -0.8, 1.1], dtype=torch.float64, requires_grad=True)
    value = run(x)
    if not value.requires_grad:
        return value, None
    return value.detach(), torch.autograd.grad(value.pow(2).sum(), x)[0]


def agrees(seed, backend):
    plumbline.reset()
    names, function = nest(seed)
    whole = not FORWARD & set(names[:-1])
    with recording() as events:
        found = values_and_gradients(plumbline.compile(function, backend=backend, fullgraph=whole))
    torch.testing.assert_close(found, values_and_gradients(function), msg=lambda text: f"{names}: {text}")
    helped = [event for event in events if isinstance(event, Broke | RanEagerly)]
    assert not (whole and helped), (names, helped)
    assert not [event for event in events if isinstance(event, CompilerFailed)], names


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "aot_eager_decomp_partition"])
@pytest.mark.parametrize("seed", range(20))
def test_nest(seed, backend):
    agrees(seed, backend)


@pytest.mark.cc
@pytest.mark.parametrize("seed", [3, 7, 11])
def test_nest_as_generated_code(seed):
    agrees(seed, "inductor")


def test_all_transforms_and_depths_occur():
    nests = [nest(seed)[0] for seed in range(20)]
    assert {name for names in nests for name in names[1:]} == set(TRANSFORMS)
    assert {len(names) - 1 for names in nests} == {1, 2, 3, 4}
    assert sum(not FORWARD & set(names[:-1]) for names in nests) >= 10
