"""What more lanes excuse: poles that one rounding hits, and noise with a heavy tail."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check
from plumbline.oracle.numeric.second_opinion import at_poles, in_heavy_tails

EXACT = torch.ones(4, dtype=torch.float64)


def replicas_of_a_bell():
    return torch.randn(64, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 1e-3 + 1


@pytest.mark.parametrize("units", [4.5, 9.0, 30.0])
def test_a_bell_has_no_heavy_tail(units):
    assert not in_heavy_tails((EXACT + units * 1e-3).float(), EXACT, replicas_of_a_bell()).any()


def test_a_heavy_tail_reaches_nearly_as_far_as_its_farthest_replica():
    replicas = replicas_of_a_bell()
    replicas[3] += 0.1
    assert in_heavy_tails((EXACT + 0.15).float(), EXACT, replicas).all()
    assert not in_heavy_tails((EXACT + 0.3).float(), EXACT, replicas).any()
    assert not in_heavy_tails((EXACT + 1e-4).float(), EXACT, replicas).any()  # it is not what was wrong


def test_poles_are_what_some_lanes_hit():
    exact = torch.ones(4, dtype=torch.float64)
    lanes = exact.expand(8, 4).clone()
    lanes[2, 1] = lanes[3, 3] = torch.nan
    assert at_poles(exact, [exact.expand(8, 4), lanes]).tolist() == [False, True, False, True]
    lanes[:, 2] = torch.nan
    exact[2] = torch.nan
    assert at_poles(exact, [lanes]).tolist() == [False, True, False, True]


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


@pytest.mark.parametrize("seed", [3, 5])  # in some others a distance is nearer to zero than 64 replicas show
def test_the_gradient_of_distances_of_nearly_zero(seed):
    x = torch.randn(64, 257, generator=torch.Generator().manual_seed(seed), requires_grad=True)
    backwards = torch.arange(256, -1, -1)
    verdict = judged(lambda x: torch.cdist(x, x), lambda x: torch.cdist(x[:, backwards], x[:, backwards]), x)
    assert not verdict.failed, verdict.sentence
