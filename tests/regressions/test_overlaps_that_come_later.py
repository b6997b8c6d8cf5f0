"""Inputs that overlap only at a later call: what was written before the call failed was written twice.

Found by a tester who had not read the code.
"""

import pytest
import torch

import plumbline


def program(x, y):
    x.mul_(2)
    y.copy_(x)
    return x + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_call_that_is_refused_for_an_overlap_leaves_what_eager_leaves(backend):
    compiled = plumbline.compile(program, backend=backend, dynamic=True)
    memory = torch.ones(8)
    compiled(memory[:4], memory[4:])
    left = []
    for function in (program, compiled):
        memory = torch.ones(8)
        with pytest.raises(RuntimeError, match="single memory location"):
            function(memory[:5], memory[2:7])
        left.append(memory.tolist())
    assert left[0] == left[1]
