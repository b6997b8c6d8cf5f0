"""A new dimension of one place in front of one that is read again has stride 0, as in the kernel.

torch's rule for open sizes says otherwise, and results took the order of dimensions from that stride.
"""

import pytest
import torch

import plumbline

PROGRAMS = {
    "diagonal": lambda x: x.expand(1, 3, -1, 3, -1).diagonal(1) * True,
    "as it is": lambda x: x.expand(1, 3, *x.shape),
    "a sum over it": lambda x: x.expand(1, 3, -1, -1, -1).transpose(0, 2).sin(),
    "a number": lambda x: x.sum().expand(1, 2, 1) + 1,
}


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_strides_are_those_of_eager(name, backend):
    compiled = plumbline.compile(PROGRAMS[name], backend=backend, dynamic=True)
    for size in (17, 7):
        x = torch.randn(2, 1, size)
        assert compiled(x).stride() == PROGRAMS[name](x).stride()
