import pytest
import torch
import torch.nn.functional as nnf

from plumbline.oracle.numeric.distribution import judge_distribution
from plumbline.oracle.verdict import VerdictKind


def runs(draw, seed, count=32):
    torch.manual_seed(seed)
    return [draw() for _ in range(count)]


X = torch.linspace(-2, 3, 600).view(20, 30)
DRAWS = {
    "rand": lambda: torch.rand(20, 30),
    "randn": lambda: torch.randn(20, 30),
    "dropout": lambda: nnf.dropout(X, 0.3),
    "dropout_half": lambda: nnf.dropout(X.half(), 0.1),
    "randint": lambda: torch.randint(0, 7, (20, 30)),
    "randperm": lambda: torch.randperm(50),
    "bernoulli": lambda: torch.bernoulli(torch.full((40,), 0.25)),
    "dependent": lambda: torch.randn(20, 5) @ torch.ones(5, 30),
    "partly constant": lambda: torch.cat([X[0], torch.randn(10)]),
    "scalar": lambda: torch.randn(()),
    "complex": lambda: torch.randn(30, dtype=torch.complex64),
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_distribution_from_other_seeds_passes(name):
    for seed in range(6):
        kind, sentence = judge_distribution(runs(DRAWS[name], 2 * seed), runs(DRAWS[name], 2 * seed + 1))
        assert kind is VerdictKind.NOISE, sentence


WRONG = {
    "range": ("rand", lambda: torch.rand(20, 30) * 0.98),
    "shift": ("randn", lambda: torch.randn(20, 30) + 0.1),
    "scale": ("randn", lambda: torch.randn(20, 30) * 1.05),
    "dropout without scale": ("dropout", lambda: nnf.dropout(X, 0.3) * 0.7),
    "dropout with another rate": ("dropout", lambda: nnf.dropout(X, 0.34) * 0.66 / 0.7),
    "dropout that does nothing": ("dropout", lambda: X.clone()),
    "dropout that zeroes": ("dropout", lambda: torch.zeros_like(X)),
    "half dropout scale": ("dropout_half", lambda: nnf.dropout(X.half(), 0.1) * 1.02),
    "excluded end": ("randint", lambda: torch.randint(0, 8, (20, 30))),
    "row reused": ("rand", lambda: torch.rand(1, 30).expand(20, 30).clone()),
    "constant part": ("partly constant", lambda: torch.cat([X[0] * 1.01, torch.randn(10)])),
    "one position": ("randn", lambda: torch.cat([torch.full((1,), 9.0), torch.randn(599)]).view(20, 30)),
    "not finite": ("rand", lambda: 1 / (torch.rand(20, 30) * 0)),
    "independent instead": ("dependent", lambda: torch.randn(20, 30) * 5**0.5),
    "frozen seed": ("rand", lambda: torch.rand(20, 30, generator=torch.Generator().manual_seed(5))),
}


@pytest.mark.parametrize("name", WRONG)
def test_another_distribution_is_wrong(name):
    base, draw = WRONG[name]
    kind, _ = judge_distribution(runs(DRAWS[base], 3), runs(draw, 4))
    assert kind is VerdictKind.WRONG


def test_few_runs_decide_nothing():
    assert judge_distribution(runs(DRAWS["rand"], 0, 4), runs(DRAWS["rand"], 1, 4))[0] is VerdictKind.NO_REFERENCE
