"""Branches that only lead to an error do not end the graph, and the error comes as in eager."""

import dataclasses

import pytest
import torch
from torch import nn
from torch.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Gamma,
    Independent,
    MultivariateNormal,
    Normal,
    kl_divergence,
)

from support.programs import Corpus, check

corpus = Corpus()


@pytest.fixture(autouse=True)
def validation_of_distributions(monkeypatch):
    """Turn on what stock torch turns off for the whole process when it first compiles, for `torch.cond` say."""
    monkeypatch.setattr(Distribution, "_validate_args", True)


program = corpus.program
ONES = torch.ones(3)


NAMESPACE = {}  # pytest rewrites the assertions of test files
exec("def require(condition, *words):\n    assert condition, words", NAMESPACE)
exec("def require_truth(condition):\n    assert bool(condition)", NAMESPACE)
require, require_truth = NAMESPACE["require"], NAMESPACE["require_truth"]


class Failed(Exception):
    pass


def same(*values):
    return lambda: tuple(value.clone() for value in values)


NEGATIVE = same(-ONES)


@program(ONES, then=((NEGATIVE, False), (same(ONES), False)))
def assertion(x):
    require((x > 0).all(), "not positive")
    return x + 1


def all_true(flags):
    return bool(flags.all())


def any_false(flags):
    return not all_true(flags)


@program(ONES, then=((NEGATIVE, False), (same(ONES), False)))
def truth_that_a_function_returns(x):
    if not all_true(x > 0):
        raise Failed("not positive")
    return x + 1


@program(ONES, then=((NEGATIVE, False), (same(ONES), False)))
def opposite_that_a_function_returns(x):
    if any_false(x > 0):
        raise Failed("not positive")
    return x + 1


@program(ONES, then=((NEGATIVE, False),))
def truth_asked_by_name(x):
    require_truth((x > 0).all())
    return x + 1


@program(ONES, graphs=2, breaks=1, then=((NEGATIVE, True),))
def truth_that_is_kept(x):
    positive = all_true(x > 0)
    return x + 1, positive


@program(ONES, then=((NEGATIVE, False),))
def function_assertion(x):
    torch._assert((x > 0).all(), "not positive")
    return x + 1


@program(ONES, fullgraph=True, then=((NEGATIVE, False),))
def raise_with_a_message(x):
    y = x * 2
    if not torch.all(y > 0):
        raise ValueError(f"expected positive numbers, got {y} of {tuple(y.shape)}")
    return y + 1


@program(ONES, then=((NEGATIVE, False),))
def error_comes_before_what_the_graph_goes_on_to(x):
    if (x < 0).any():
        raise ValueError("negative")
    return torch.multinomial(x, 1), torch.cholesky_inverse(x.sum().reshape(1, 1))


@program(ONES, [], then=((lambda: (-ONES, []), False),))
def effects_before_the_error_are_those_of_eager(x, seen):
    seen.append(x * 2)
    require(x.sum() > 0)
    seen.append(x * 3)
    return x


def _checked(x):
    if x.sum() < 0:
        raise Failed
    return x * 2


@program(ONES, then=((NEGATIVE, False), (NEGATIVE, True), (same(ONES), True), (NEGATIVE, False)))  # not assumed again
def error_that_is_caught(x):
    try:
        return _checked(x)
    except Failed:
        return x - 1


@program(ONES, graphs=2, breaks=1, then=((NEGATIVE, False),))
def input_is_written(x):
    x.add_(1)
    require(x.sum() > 0)
    return x * 2


@program(make=lambda: (nn.BatchNorm1d(3), torch.ones(2, 3)), graphs=2, breaks=1)
def running_statistics_are_written(norm, x):
    y = norm(x)
    require(y.isfinite().all())
    return y * 2


@program(ONES, then=((NEGATIVE, False),))
def draws_are_drawn_once(x):
    noise = torch.rand(3)
    require((x > 0).all())
    return x + noise


@program(ONES, then=((NEGATIVE, False),))
def condition_is_changed_later(x):
    ok = (x > 0).all()
    if not ok:
        raise Failed
    ok.fill_(False)
    return ok, x * 2


@program(ONES, graphs=2, breaks=1, then=((NEGATIVE, False),))
def after_a_break(x):
    y = x + 1
    print("a")
    require((x > 0).all())
    return y * 2


@program(ONES, graphs=2, breaks=1)
def both_sides_go_on(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


@program(make=lambda: (torch.ones(3, requires_grad=True),), backward=True)
def with_gradients(x):
    require(x.sum() > 0)
    return (x * x).sum()


@program(torch.tensor(5.0), stable=False)
def loop_that_ends_in_an_error(x):
    count = 0
    while x > 0:
        x = x - 2
        count += 1
        if count == 2:
            return x, count
    raise Failed


@program(ONES, then=((lambda: (torch.full((3,), float("nan")),), False),))
def normal_distribution(x):
    return Normal(x, x.abs() + 1).log_prob(x * 0.5)


@program(make=lambda: (torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(),), backward=True)
def distributions_of_policies(logits):
    policy = Categorical(logits=logits)
    action = policy.sample()
    return policy.log_prob(action).mean() + 0.01 * policy.entropy().mean()


@program(make=lambda: (torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(),), backward=True)
def divergences(x):
    posterior = Independent(Normal(x, x.exp()), 1)
    prior = Independent(Normal(torch.zeros(2, 3), torch.ones(2, 3)), 1)
    return kl_divergence(posterior, prior) + posterior.rsample().sum(-1) + Bernoulli(logits=x).entropy().sum(-1)


@program(ONES)
def gamma_distribution(x):
    return Gamma(x, x + 1).mean


@program(ONES, graphs=2, breaks=1)  # one of its checks returns early
def normal_distribution_of_vectors(x):
    return MultivariateNormal(x, torch.eye(3)).log_prob(x)


@corpus.parametrize()
def test_program(program):
    check(program)


@pytest.mark.slow
@corpus.parametrize()
def test_program_through_our_own_tracing(program):
    check(dataclasses.replace(program, rounding=True, settings=program.settings | {"backend": "aot_eager"}))
