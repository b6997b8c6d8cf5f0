"""A write to one element of an expanded input left its other views, and the input, as they were, or was not done."""

import pytest
import torch

from plumbline.oracle.harness.compilers import CompileRequest
from plumbline.oracle.harness.known_compilers import find_compiler
from plumbline.oracle.judge_options import JudgeOptions


def last_part(a):
    first, second = torch.tensor_split(a, 2, 0)
    return first, second, second.fill_(7)


def first_row(a):
    whole = a.unsqueeze(0)
    whole[0, 0].fill_(3)
    return whole, a * 2


@pytest.mark.parametrize("program", [last_part, first_row])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_all_views_see_the_write(program, backend):
    compiler = find_compiler("plumbline", backend)
    compiler.reset()
    compiled = compiler.compile(program, backend, CompileRequest(), rng=JudgeOptions().rng)
    for size in (3, 7, 2):
        given, other = (torch.tensor([5]).expand(size) for _ in range(2))
        for expected, actual in zip(program(given), compiled(other), strict=True):
            assert torch.equal(expected, actual)
        assert torch.equal(given, other)
    assert [event for event in compiled.statistics().events if event.kind == "internal_error"] == []
