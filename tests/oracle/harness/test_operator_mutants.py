"""Operators of our own compiler that compute another one."""

import pytest
import torch

from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.mutants import MutantCompiler
from plumbline.oracle.harness.operator_mutants import operator_faults
from plumbline.oracle.harness.own_compiler import OwnCompiler


def test_every_pair_is_lowered():
    assert len(operator_faults()) >= 15


@pytest.mark.cc
def test_an_operator_computes_another_where_it_is_used():
    compiler = MutantCompiler(OwnCompiler(), operator_faults()["tanh-as-sin"])
    x = torch.linspace(-1, 1, 8)
    tanh = compiler.compile(lambda x: x.tanh(), "inductor", CompileRequest(), rng="eager")
    torch.testing.assert_close(tanh(x), x.sin())
    assert compiler.effects == 1
    exp = compiler.compile(lambda x: x.exp(), "inductor", CompileRequest(), rng="eager")
    torch.testing.assert_close(exp(x), x.exp())
    assert compiler.effects == 1
