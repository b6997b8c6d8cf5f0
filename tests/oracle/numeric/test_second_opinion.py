"""What more lanes excuse: poles that one rounding hits, and noise with a heavy tail; and nothing else."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check
from plumbline.oracle.numeric.second_opinion import excused


def lanes_of(count, spread, seed=0):
    return torch.randn(count, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * spread + 1


EXACT = torch.ones(4, dtype=torch.float64)


@pytest.mark.parametrize("units", [4.5, 9.0, 30.0])
def test_a_bell_excuses_nothing(units):
    further = [lanes_of(8, 1e-3, seed) for seed in range(1, 9)]
    assert not excused((EXACT + units * 1e-3).float(), EXACT, lanes_of(8, 1e-3), further).any()


def test_a_heavy_tail_excuses_what_is_nearly_as_far_and_no_more():
    far = EXACT.expand(8, 4).clone()
    far[3] += 0.1
    assert excused((EXACT + 0.15).float(), EXACT, lanes_of(8, 1e-3), [far]).all()
    assert not excused((EXACT + 0.3).float(), EXACT, lanes_of(8, 1e-3), [far]).any()
    assert not excused((EXACT + 1e-4).float(), EXACT, lanes_of(8, 1e-3), [far]).any()  # it is not what was wrong


def test_a_pole_that_some_lanes_hit():
    hit = EXACT.expand(8, 4).clone()
    hit[2, 1] = torch.nan
    found = excused(torch.full((4,), torch.nan), EXACT, lanes_of(8, 1e-3), [hit])
    assert found.tolist() == [False, True, False, False]


def judged(function, other, *args):
    return check(function, args, compiled=other)


def correlation(x):
    return torch.corrcoef(0.3**x)


def correlation_by_hand(x):
    centred = 0.3**x - (0.3**x).double().mean().float()
    covariance = (centred * centred).sum()
    return covariance / covariance


def test_a_correlation_of_equal_numbers_is_a_number_or_none():
    verdict = judged(correlation, correlation_by_hand, torch.ones(17))
    assert verdict.kind is VerdictKind.NOISE, verdict.sentence
    assert "rounding decides 1 position" in verdict.sentence


def test_a_correlation_of_others_is_a_number():
    assert judged(correlation, lambda x: correlation_by_hand(x * 0), torch.arange(17.0)).kind is VerdictKind.WRONG


def near_pole(x):
    return torch.special.digamma(torch.tanh(x))


@pytest.mark.parametrize("tangent", [-1.0, -0.99999994])
def test_a_tangent_that_reaches_a_pole(tangent):
    x = torch.tensor([-9.2, 0.4])
    either = torch.special.digamma(torch.stack([torch.tensor(tangent), torch.tanh(x)[1]]))
    assert not judged(near_pole, lambda x: either.clone(), x).failed
    assert judged(near_pole, lambda x: either.flip(0), x).kind is VerdictKind.WRONG


@pytest.mark.parametrize("seed", range(6))
def test_the_gradient_of_distances_of_nearly_zero(seed):
    x = torch.randn(64, 257, generator=torch.Generator().manual_seed(seed), requires_grad=True)
    backwards = torch.arange(256, -1, -1)
    verdict = judged(lambda x: torch.cdist(x, x), lambda x: torch.cdist(x[:, backwards], x[:, backwards]), x)
    assert not verdict.failed, verdict.sentence
