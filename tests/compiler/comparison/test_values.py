"""Two tensors of neighbouring stages: rounding is told from errors by how far noise moves the program's results."""

import pytest
import torch

from plumbline.compiler.comparison.noise import Noise
from plumbline.compiler.comparison.values import MOST_ELEMENTS, value_difference


def replicas(function, *inputs):
    def runs(count):
        found = []
        for seed in range(count):
            with Noise(seed), torch.no_grad():
                found.append(function(*inputs))
        return found

    return runs


def never(count):
    raise AssertionError("no replica is needed")


def test_last_digits_need_no_replicas():
    x = torch.randn(100)
    assert value_difference(torch.nextafter(x, torch.tensor(torch.inf)), x, never) is None
    assert value_difference(x.clone(), x, never) is None
    nan = torch.tensor([torch.nan, torch.inf, -0.0])
    assert value_difference(nan.clone(), torch.tensor([torch.nan, torch.inf, 0.0]), never) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_what_cancels_may_be_off_by_its_noise_and_not_by_more(dtype):
    torch.manual_seed(0)
    x = torch.randn(64, 500, dtype=dtype)
    runs = replicas(lambda x: x.sum(1), x)
    expected, another_order = x.sum(1), x.flip(1).sum(1)
    assert value_difference(another_order, expected, runs) is None
    wrong = expected.clone()
    wrong[3] += x[3].abs().max()
    found = value_difference(wrong, expected, runs)
    assert found is not None
    assert found.units > 8
    assert " at [3], the stage before gives " in found.text


def test_running_sums_share_their_rounding():
    """Sums of one sign that are added up one after the other are off by more than cascaded ones."""
    x = torch.rand(4, 20_000) + 1
    in_turn = x.cumsum(1)[:, -1]
    assert value_difference(in_turn, x.sum(1), replicas(lambda x: x.sum(1), x)) is None


def test_integers_are_equal_save_where_noise_decides():
    x = torch.tensor([[1.0, 1.0 + 1e-7, 0.0], [0.0, 3.0, 0.0]])
    runs = replicas(lambda x: (x * 1.1).argmax(1), x)
    first = (x * 1.1).argmax(1)
    assert value_difference(first, first.clone(), never) is None
    tie, clear = first.clone(), first.clone()
    tie[0], clear[1] = 1 - first[0], 0
    assert value_difference(tie, first, runs) is None
    assert value_difference(clear, first, runs) is not None


def test_large_tensors_are_judged_by_their_farthest_elements():
    x = torch.randn(MOST_ELEMENTS // 100, 200)
    expected = x.tanh()
    near, wrong = expected * (1 + 3e-7), expected.clone()
    wrong[7, 11] += 1e-3
    runs = replicas(lambda x: x.tanh(), x)
    assert value_difference(near, expected, runs) is None
    found = value_difference(wrong, expected, runs)
    assert found is not None
    assert " at [7, 11], " in found.text


def test_noise_draws_from_no_generator_of_the_program():
    state = torch.get_rng_state()
    with Noise(1):
        a = torch.softmax(torch.ones(5), 0)
    assert torch.equal(torch.get_rng_state(), state)
    assert a.dtype == torch.float32
