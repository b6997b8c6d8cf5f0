"""One float64 lane: the same numbers as the exact lane of a shadow run, with none of its memory."""

import gc

import pytest
import torch

from plumbline.oracle.noise.light_lane import WIDE_LANE, LightLane
from plumbline.oracle.noise.shadow import ShadowRun
from support.numeric_programs import HELD_OUT, PROGRAMS, inputs_of


def exact_lanes(program, inputs):
    values = []
    for run in (ShadowRun(), LightLane()):
        leaves = [t.clone().requires_grad_(t.is_floating_point()) for t in inputs]
        with run:
            result = program(*leaves)
        forward = run.lanes_of(result).exact.clone()
        assert not run.untrusted
        if not result.requires_grad:  # a program that differentiates something itself
            values.append([forward])
            continue
        floats = [leaf for leaf in leaves if leaf.requires_grad]
        with run:
            gradients = torch.autograd.grad(result, floats, torch.ones_like(result), allow_unused=True)
        values.append([forward, *[run.lanes_of(g).exact for g in gradients if g is not None]])
    return values


@pytest.mark.parametrize("program", [*PROGRAMS, *HELD_OUT], ids=lambda program: program.name)
def test_the_lane_is_that_of_a_shadow_run_to_the_bit(program):
    for dtype in (torch.float32, torch.bfloat16):
        whole, light = exact_lanes(program.eager, inputs_of(program, "normal", dtype))
        assert len(whole) == len(light)
        for first, second in zip(whole, light, strict=True):
            assert torch.equal(first, second)


def in_place(x, counter):
    counter.add_(1)
    y = x.clone()
    y[1:].mul_(3)
    y.t()[0] += counter[:4]
    view = y.view(-1)[2:]
    view.copy_(view.flip(0))
    return y / 3


def complex_parts(x, counter):
    z = torch.complex(x, x / 3)
    torch.view_as_real(z)[..., 0].mul_(1.1)
    return (z.conj() * z.exp()).imag + counter


@pytest.mark.parametrize("program", [in_place, complex_parts])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_writes_through_views_and_into_integers_are_followed(program, dtype):
    x, counter = torch.randn(4, 5, dtype=dtype), torch.arange(5)
    seen = []
    for run in (ShadowRun(), LightLane()):
        again = counter.clone()
        with run:
            result = program(x, again)
        seen.append((run.lanes_of(result).exact, run.lanes_of(again).exact))
    (first, first_counter), (second, second_counter) = seen
    assert torch.equal(first, second)
    assert torch.equal(first_counter, second_counter)


@pytest.mark.parametrize("kind", [LightLane, ShadowRun])
def test_shadows_end_with_their_storages(kind):
    with kind() as run:
        x = torch.randn(64)
        for _ in range(500):
            x = x * 1.5
        gc.collect()
        assert len(run._living) < 120


def test_a_wide_lane_moves_by_the_noise_of_a_wide_replica():
    x = torch.randn(100, 100)
    with LightLane(WIDE_LANE, seed=3) as run:
        y = (x @ x).tanh()
    wide = run.lanes_of(y).wide
    error = ((wide[0] - (x.double() @ x.double()).tanh()).abs() / 2**-24).mean()
    assert 1 < error < 1000


@pytest.mark.parametrize(
    ("program", "may_jump"),
    [
        (lambda x: torch.nn.functional.gelu(x @ x).softmax(-1), False),
        (lambda x: x[torch.arange(3) < 2], False),
        (lambda x: x * (x > 0), True),
        (lambda x: x.topk(2).values, True),
        (lambda x: x.round(), True),
        (lambda x: x if x.sum().item() > 0 else -x, True),
    ],
)
def test_a_lane_tells_whether_rounding_may_decide_a_branch(program, may_jump):
    with LightLane() as run:
        program(torch.randn(3, 3))
    assert run.may_jump == may_jump


def test_the_gradient_of_relu_may_jump():
    x = torch.randn(4, requires_grad=True)
    with LightLane() as run:
        torch.autograd.grad(x.relu().sum(), x)
    assert run.may_jump
