"""What the oracle knows about operators: which add noise, and which only move values or jump."""

import torch
import torch.nn.functional as nnf

from plumbline.oracle.noise.operator_facts import facts_of
from plumbline.oracle.noise.shadow import ShadowRun


def follow(function, *inputs, **options):
    with ShadowRun(**options) as run:
        result = function(*inputs)
    return run, result


X = torch.tensor([0.1, 0.7, -1.3, 2.5])


def spread(function, *inputs):
    run, result = follow(function, *inputs, replicas=32)
    lanes = run.lanes_of(result)
    return ((lanes.replicas.double() - lanes.exact.double()).abs() / lanes.exact.double().abs().clamp(min=1e-300)).amax(
        0
    )


def test_moves_and_selections_of_exact_inputs_stay_exact():
    def program(v):
        return torch.cat([v.relu(), v.flip(0), v.clamp(-1, 1), v.sort().values, v.abs(), -v, v[[2, 0]]])

    assert (spread(program, X) == 0).all()


def test_discontinuous_operators_take_exact_inputs_exactly():
    a, b = torch.tensor([1.0, 3.0]), torch.tensor([0.1, 0.3])
    for program in (
        lambda: torch.floor_divide(a, b),
        lambda: torch.remainder(a, 1.0),
        lambda: torch.div(a, b, rounding_mode="floor"),
        lambda: a >= 1.0,
        lambda: a.floor(),
        lambda: torch.fmod(a, b),
        lambda: a.argmax(),
    ):
        assert (spread(program) == 0).all()
    run, result = follow(torch.floor_divide, a, b, replicas=8)
    assert run.lanes_of(result).exact[0] == 9


def test_comparisons_of_computed_values_split_the_replicas():
    x = torch.full((64,), 0.3)
    run, result = follow(lambda v: (v + 0.1) - 0.1 >= v, x, replicas=8)
    lanes = run.lanes_of(result).replicas
    assert lanes.any()
    assert not lanes.all()


def test_cancellation_inside_a_composite_shows():
    x = torch.randn(4, 64)
    calm = spread(lambda v: nnf.layer_norm(v, (64,)), x).median()
    cancelling = spread(lambda v: nnf.layer_norm(v, (64,)), x + 1000).median()
    assert cancelling > 100 * calm


def test_an_operator_is_elementwise_in_every_release_where_the_newest_says_so():
    for operator in (torch.ops.aten.leaky_relu.default, torch.ops.aten.hardtanh_.default, torch.ops.aten.elu_.default):
        assert facts_of(operator).pointwise
