"""How much noise one operator adds."""

import pytest
import torch

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


@pytest.mark.parametrize(
    ("dtype", "u"), [(torch.float32, 2**-24), (torch.float16, 2**-11), (torch.bfloat16, 2**-8), (torch.float64, 2**-53)]
)
def test_one_operator_is_shaken_by_about_one_roundoff(dtype, u):
    relative = spread(torch.exp, X.to(dtype))
    assert (relative > 0.5 * u).all()
    assert (relative < 8 * u).all()  # up to 1 + 2.5 (the condition of exp), and float64's own rounding


def test_small_integers_are_summed_and_multiplied_without_noise():
    x = torch.arange(12.0).view(3, 4)
    for program in (
        lambda v: v + 1,
        lambda v: v.sum(0),
        lambda v: v @ v.T,
        lambda v: v * 2 - 3,
        lambda v: v.cumsum(1),
        lambda v: (v > 3).float().sum(),
    ):
        assert (spread(program, x) == 0).all()
    assert (spread(lambda v: v.exp() + 1, x)[1:] > 0).all()


def test_long_sums_are_shaken_more_than_short_ones():
    def absolute(x):
        run, result = follow(torch.sum, x - x.flip(0), replicas=32)
        return run.lanes_of(result).replicas.abs().amax()  # the exact sum is 0

    assert absolute(torch.rand(100000)) > 1000 * absolute(torch.rand(10))


def test_one_seed_gives_one_noise():
    lanes = [run.lanes_of(y) for run, y in (follow(torch.exp, X, replicas=4, seed=s) for s in (1, 1, 2))]
    assert torch.equal(lanes[0].replicas, lanes[1].replicas)
    assert not torch.equal(lanes[0].replicas, lanes[2].replicas)


def test_what_cancels_in_a_transform_of_float64_is_rounding():
    run = ShadowRun(replicas=8)
    with run:
        spectrum = torch.fft.rfftn(torch.ones(5, 6, 12, dtype=torch.float64), norm="ortho")
    replicas = run.lanes_of(spectrum).replicas
    assert 1e-17 < float(replicas[:, 2, 0, 0].abs().std()) < 1e-13
    assert float((replicas[:, 0, 0, 0].abs() - 18.973665961010276).abs().max()) < 1e-13


def test_sums_of_whole_numbers_as_doubles_have_the_noise_of_their_terms():
    large = torch.tensor([-(2**63), 2**63 - 1, 2**53 + 1, 100, -(2**62)])
    with ShadowRun(replicas=8) as run:
        lost, kept = large.sum(dtype=torch.float64), torch.arange(9).sum(dtype=torch.float64)
    spread = (run.lanes_of(lost).replicas - run.lanes_of(lost).exact).abs().max()
    assert 64 < spread < 2**16
    assert (run.lanes_of(kept).replicas == 36).all()
