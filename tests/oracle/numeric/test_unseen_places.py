"""What a choice among nearly equal values excuses: the places that no lane has hit by chance."""

import pytest
import torch

from plumbline.oracle import check
from plumbline.oracle.numeric.unseen_places import at_unseen_places


def test_unseen_places_are_where_replicas_hit_others_once():
    exact = torch.zeros(40, dtype=torch.float64)
    chosen = torch.randint(0, 40, (16,), generator=torch.Generator().manual_seed(0))
    replicas = torch.nn.functional.one_hot(chosen, 40) * 1e-3
    never = (replicas == 0).all(0)
    assert 10 < int(never.sum()) < 30
    assert at_unseen_places(torch.full((40,), 1e-3), exact, replicas).equal(never)
    assert not at_unseen_places(torch.full((40,), 5e-3), exact, replicas).any()  # farther than a choice moves it
    assert not at_unseen_places(torch.full((40,), 1e-3), exact, replicas[:1].expand(16, 40)).any()  # always the same


def largest_of_equals(x):
    return torch.sigmoid(torch.nn.functional.normalize(torch.tan(x), 3, 1)).amax(-2)


def largest_of_equals_by_quotient(x):
    return torch.sigmoid(torch.nn.functional.normalize(torch.sin(x) / torch.cos(x), 3, 1)).amax(-2)


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_of_the_largest_of_nearly_equal_values(seed):
    x = (torch.rand((64, 1), generator=torch.Generator().manual_seed(seed)) / 2 + 0.2).requires_grad_()
    verdict = check(largest_of_equals, (x,), compiled=largest_of_equals_by_quotient)
    assert not verdict.failed, verdict.sentence


def test_another_element_than_the_largest_has_the_gradient():
    x = torch.linspace(0.2, 0.7, 64).reshape(64, 1).requires_grad_()
    other = torch.arange(63, -1, -1)
    verdict = check(
        lambda x: torch.tan(x).amax(-2),
        (x,),
        compiled=lambda x: torch.tan(x.roll(1, 0) * 0 + x[other].detach() + x - x.detach()).amax(-2),
    )
    assert verdict.failed
