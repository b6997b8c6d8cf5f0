"""Advanced indexing by index tensors that are not contiguous: the result has the strides that the kernel gives it."""

import pytest
import torch

import plumbline

BACKENDS = ("aot_eager", pytest.param("inductor", marks=pytest.mark.cc))
CASES = {
    "one": lambda x, i: x[i],
    "second_dimension": lambda x, i: x[:, i],
    "last": lambda x, i: x[..., i],
    "two": lambda x, i: x[i, i],
    "apart": lambda x, i: x[i, :, i],
    "broadcast": lambda x, i: x[i, i[:1]],
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("transposed", [False, True])
def test_strides_are_those_of_eager(case, backend, transposed):
    x = torch.randn(4, 4, 4)
    x = x.permute(2, 0, 1) if transposed else x
    for index in (torch.tensor([[0, 1, 2], [3, 2, 1]]).t(), torch.arange(8).reshape(2, 2, 2).permute(2, 0, 1) % 4):
        wanted = CASES[case](x, index)
        result = plumbline.compile(CASES[case], backend=backend)(x, index)
        assert result.stride() == wanted.stride()
        assert torch.equal(result, wanted)
