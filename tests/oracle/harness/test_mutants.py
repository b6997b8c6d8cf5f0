"""Mutants: each fault changes what it says and nothing else, and knows whether it changed anything."""

import pytest
import torch
from torch import nn

from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.mutants import FAULTS, CompilerFault, MutantCompiler
from support.planted_compilers import PlantedCompiler


def mutant(name, target):
    compiler = MutantCompiler(PlantedCompiler(), FAULTS[name])
    return compiler, compiler.compile(target, "eager", CompileRequest(), rng="eager")


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, scale=1.0):
        self.calls += 1
        return torch.nn.functional.dropout(x, 0.5, self.training) * scale


X = torch.tensor([[1.0, -2.0], [3.0, 4.0]])


def test_results():
    assert mutant("element", lambda x: x)[1](X).tolist() == [[1.0, -2.0], [pytest.approx(3.04), 4.0]]
    assert mutant("element", lambda x: x * 0)[1](X).tolist() == [[0, 0], [pytest.approx(0.01), 0]]
    torch.testing.assert_close(mutant("scale", lambda x: (x, 3))[1](X), (X * 1.001, 3))
    assert mutant("integer", torch.argmax)[1](X) == 4
    assert mutant("nan", torch.sqrt)[1](X).tolist()[0][1] == 0
    assert mutant("dtype", torch.sin)[1](X).dtype == torch.float64
    result = mutant("strides", torch.neg)[1](X)
    assert torch.equal(result, -X)
    assert result.stride() == (1, 2)


def test_gradients():
    x = X.clone().requires_grad_()
    mutant("gradient", lambda x: x * 2)[1](x).sum().backward()
    torch.testing.assert_close(x.grad, torch.full((2, 2), 2.02))
    assert not mutant("detached", lambda x: x * 2)[1](x).requires_grad


def test_writes_and_views():
    module = Counting().eval()
    compiler, candidate = mutant("write", module)
    candidate(X)
    assert (module.calls, compiler.effects) == (0, 1)
    x = X.clone()
    assert mutant("copy", lambda x: x[0])[1](x).untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_draws_repeat():
    compiler, candidate = mutant("draws", torch.rand_like)
    assert torch.equal(candidate(X), candidate(X))
    assert compiler.effects == 2


def test_what_is_kept_of_the_first_call():
    compiler, candidate = mutant("number", lambda x, n: x * n)
    assert torch.equal(candidate(X, 2), candidate(X, 3))
    assert compiler.effects == 1
    module = Counting().eval()
    compiler, candidate = mutant("training", module)
    assert torch.equal(candidate(X), X)
    module.train()
    assert torch.equal(candidate(X), X)
    assert (module.training, compiler.effects) == (True, 1)
    compiler, candidate = mutant("stale", torch.neg)
    assert torch.equal(candidate(X), candidate(X + 1))
    assert candidate(torch.zeros(3)).tolist() == [0, 0, 0]
    assert compiler.effects == 1


def test_an_error_is_lost():
    compiler, candidate = mutant("error", lambda x: x @ x.new_zeros(3))
    assert candidate(X) is None
    assert compiler.effects == 1


@pytest.mark.parametrize("fault", FAULTS.values(), ids=lambda fault: fault.name)
def test_a_fault_that_finds_nothing_to_change_changes_nothing(fault: CompilerFault):
    compiler, candidate = mutant(fault.name, lambda x: [x.tolist()])
    assert candidate(torch.tensor([True])) == [[True]]
    assert compiler.effects == 0


def test_lazy_and_sparse_arguments_are_left_alone():
    sparse = X.to_sparse()
    for name in FAULTS:
        result = mutant(name, lambda x: x * 2)[1](sparse)
        assert torch.equal(result.to_dense(), X * 2)
