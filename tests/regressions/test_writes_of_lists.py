"""Calls that write to lists of tensors count each as changed; on fake tensors torch counts nothing.

So what a branch asked was computed without them, and a backward that needs what they wrote was not refused.
"""

import pytest
import torch

import plumbline

KINDS = {
    "ASGD": {},
    "Adadelta": {},
    "Adagrad": {},
    "Adam": {"amsgrad": True},
    "AdamW": {"maximize": True},
    "Adamax": {},
    "NAdam": {},
    "RAdam": {},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Rprop": {},
    "SGD": {"momentum": 0.9, "nesterov": True},
}
BACKENDS = ["eager", "aot_eager", "inductor"]


def parameters_after(kind, settings, transform, steps=7):
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(3)), torch.nn.Parameter(torch.randn(2, 2))]
    optimizer = getattr(torch.optim, kind)(parameters, **settings)
    step = transform(optimizer.step)
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = torch.randn_like(parameter)
        step()
    return [parameter.detach() for parameter in parameters]


@pytest.mark.parametrize("foreach", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_optimizers_step_as_eager_does(kind, foreach):
    settings = {"lr": 0.1, "foreach": foreach, **KINDS[kind]}
    expected = parameters_after(kind, settings, lambda step: step)
    actual = parameters_after(kind, settings, lambda step: plumbline.compile(step, backend="aot_eager"))
    # torch keeps step counts as float32 tensors where a compiler asks; RAdam takes differences of powers by them
    wide = {"rtol": 1e-3, "atol": 1e-4} if kind == "RAdam" else {}
    torch.testing.assert_close(actual, expected, **wide)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_branch_sees_what_was_written_to_a_list(backend):
    def program(state, x):
        torch._foreach_add_([state], 1)
        return x * max(1.0, state.sum() - 2)

    compiled = plumbline.compile(program, backend=backend)
    mine, other = torch.zeros(2), torch.zeros(2)
    for _ in range(4):
        assert torch.equal(compiled(mine, torch.ones(1)), program(other, torch.ones(1)))
        assert torch.equal(mine, other)
        assert mine._version == other._version


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_sees_what_a_fused_step_wrote(backend):
    def program(weight, gradient, x):
        while weight.sum() > 0:
            torch._fused_sgd_(
                [weight],
                [gradient],
                [],
                weight_decay=0.0,
                momentum=0.0,
                lr=0.5,
                dampening=0.0,
                nesterov=False,
                maximize=False,
                is_first_step=True,
            )
            x = x + 1
        return x

    weights = torch.full((2,), 2.0), torch.full((2,), 2.0)
    given = torch.ones(2), torch.zeros(1)
    actual = plumbline.compile(program, backend=backend)(weights[0], *given)
    assert torch.equal(actual, program(weights[1], *given))
    assert torch.equal(*weights)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_backward_that_needs_what_was_written_is_refused(backend):
    def program(x, weight):
        loss = (x * weight).sum()
        torch._foreach_mul_([x], 2)
        return loss

    for run in (program, plumbline.compile(program, backend=backend)):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            run(torch.ones(2), torch.ones(2, requires_grad=True)).backward()


WRITERS = sorted(
    name for name in dir(torch) if name.startswith("_foreach_") and name.endswith("_") and not name.endswith("__")
)
OTHERS = {  # arguments behind the list that is written
    "_foreach_add_": (2,),
    "_foreach_addcdiv_": ([torch.ones(2)], [torch.full((2,), 2.0)], 3),
    "_foreach_addcmul_": ([torch.ones(2)], [torch.ones(2)], [3]),
    "_foreach_clamp_max_": (0.5,),
    "_foreach_clamp_min_": (0.5,),
    "_foreach_copy_": ([torch.ones(2)],),
    "_foreach_div_": (2,),
    "_foreach_lerp_": ([torch.ones(2)], 0.5),
    "_foreach_maximum_": (0.5,),
    "_foreach_minimum_": (0.5,),
    "_foreach_mul_": (2,),
    "_foreach_pow_": (2,),
    "_foreach_sub_": (2,),
}


@pytest.mark.parametrize("name", WRITERS)
def test_each_counts_as_in_eager(name):
    write = getattr(torch, name)

    def program(x):
        view = x[:]
        write([view], *OTHERS.get(name, ()))
        return x + 1

    mine, other = torch.tensor([0.25, 0.75]), torch.tensor([0.25, 0.75])
    actual = plumbline.compile(program, backend="aot_eager")(mine)
    assert torch.equal(actual, program(other))
    assert torch.equal(mine, other)
    assert mine._version == other._version
