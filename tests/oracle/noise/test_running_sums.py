"""The loop that sums one by one: its own error is noise, losing more than it does is not."""

import pytest
import torch

from plumbline.oracle import VerdictKind, check
from plumbline.oracle.noise import running_sums
from plumbline.oracle.noise.operator_facts import facts_of
from plumbline.oracle.noise.running_sums import LONGEST_CHAIN, _loop_error, running_sum_error


def one_by_one(x):
    total = torch.zeros_like(x[0])
    for row in x:
        total = total + row
    return total


@pytest.mark.parametrize(
    "x",
    [
        torch.full((1000, 8), 0.1),
        torch.rand(1000, 8),
        torch.randn(1000, 8),
        torch.linspace(-1, 1, 8000).reshape(1000, 8),
        torch.tensor([0.3, -0.7]).repeat_interleave(500)[:, None].expand(1000, 8).contiguous(),
    ],
    ids=["equal", "positive", "random", "sorted", "two-plateaus"],
)
@pytest.mark.parametrize("mean", [False, True])
def test_a_plain_loop_is_a_legitimate_sum(x, mean):
    eager = (lambda x: x.mean(0)) if mean else (lambda x: x.sum(0))
    verdict = check(eager, (x,), compiled=lambda x: one_by_one(x) / (len(x) if mean else 1))
    assert not verdict.failed, str(verdict)


def test_a_plain_loop_over_a_million_terms_is_not():
    x = torch.rand(1_000_000)
    naive = torch.tensor(0.0)
    total = x.numpy().cumsum(dtype="float32")[-1]
    verdict = check(lambda x: x.sum(), (x,), compiled=lambda x: naive + float(total))
    assert verdict.kind is VerdictKind.WRONG


@pytest.mark.parametrize("x", [torch.full((1000, 8), 0.1), torch.rand(1000, 8), torch.randn(1000, 8)])
def test_one_dropped_term_is_seen(x):
    assert check(lambda x: x.sum(0), (x,), compiled=lambda x: x[:-1].sum(0)).kind is VerdictKind.WRONG


def test_long_chains_are_split():
    rows = torch.full((4 * LONGEST_CHAIN, 1), 0.1)
    assert _loop_error(rows) < 4.5 * _loop_error(rows[:LONGEST_CHAIN])


@pytest.mark.parametrize("columns", [1, 2, 3, 16, 300])
@pytest.mark.parametrize("count", [3, 8, 129, 1000, LONGEST_CHAIN])
def test_terms_are_added_one_after_the_other(count, columns):
    rows = torch.randn(count, columns, generator=torch.Generator().manual_seed(0))
    total = torch.zeros(columns)
    for row in rows:
        total += row
    error = (total.double() - rows.double().sum(0)).abs()
    assert torch.equal(_loop_error(rows), error)


@pytest.mark.parametrize("dims", [[0], [1], [0, 1]])
def test_both_loops_beside_each_other_err_as_they_do_alone(monkeypatch, dims):
    x = torch.randn(70, 90, generator=torch.Generator().manual_seed(0)).double()
    facts, out = facts_of(torch.ops.aten.sum.dim_IntList), [x.sum(dims)]
    together = running_sum_error(facts, (x, dims), out)
    monkeypatch.setattr(running_sums, "_BESIDE", 0)
    alone = running_sum_error(facts, (x, dims), out)
    torch.testing.assert_close(together, alone, rtol=1e-6, atol=0)
    assert bool((together > 0).all())


@pytest.mark.parametrize("again", [lambda x: x.sum(-1), lambda x: x.mean(0), lambda x: torch.nansum(x, -1)])
def test_a_sum_over_a_dimension_of_a_scalar_keeps_its_noise(again):
    x = torch.randn(64, generator=torch.Generator().manual_seed(0))

    def program(x):
        return again((x - x.mean()).sum())

    assert check(program, (x,), compiled=lambda x: program(x) - 2.4e-7).kind is VerdictKind.NOISE


@pytest.mark.parametrize("reduce", [torch.sum, torch.mean])
def test_a_sum_in_a_narrower_dtype_has_the_noise_of_that_one(reduce):
    x = torch.randn(520, generator=torch.Generator().manual_seed(294903)).double() * 1e5

    def program(x):
        return reduce(x, dtype=torch.float32)

    def one_by_one(x):
        total = x.float().numpy().cumsum(dtype="float32")[-1]
        return torch.tensor(total / (len(x) if reduce is torch.mean else 1))

    verdict = check(program, (x,), compiled=one_by_one)
    assert not verdict.failed, str(verdict)
    assert check(program, (x,), compiled=lambda x: reduce(x[1:], dtype=torch.float32)).kind is VerdictKind.WRONG
