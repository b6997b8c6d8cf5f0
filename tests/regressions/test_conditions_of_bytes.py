"""`torch.where` with a condition of bytes, which eager takes and torch's shape rule refuses."""

import warnings

import pytest
import torch

import plumbline

CONDITION = torch.tensor([[1, 0, 2], [255, 1, 0], [0, 0, 3]], dtype=torch.uint8)


def chosen(condition, a, b):
    return torch.where(condition[1].unsqueeze(1), a, b) * 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_where_takes_bytes_in_one_graph(backend, dynamic):
    a = torch.randn(3, 4, requires_grad=True)
    b = torch.randn(3, 4).mT.requires_grad_()
    with warnings.catch_warnings(action="ignore"):
        expected = chosen(CONDITION, a, b.mT[:, :1])
        result = plumbline.compile(chosen, backend=backend, fullgraph=True, dynamic=dynamic)(CONDITION, a, b.mT[:, :1])
        torch.testing.assert_close(result, expected, rtol=0, atol=0)
        assert result.stride() == expected.stride()
        for gradient, wanted in zip(
            torch.autograd.grad(result.sum(), (a, b)), torch.autograd.grad(expected.sum(), (a, b)), strict=True
        ):
            torch.testing.assert_close(gradient, wanted, rtol=0, atol=0)


def test_other_whole_numbers_are_refused_as_by_eager():
    with pytest.raises(RuntimeError, match="expected condition to be a boolean tensor"):
        plumbline.compile(chosen)(CONDITION.int(), torch.randn(3, 4), torch.randn(3, 1))
