"""`cov` makes a number as a tensor and asks whether it is positive: capture took it for data, and broke there."""

import pytest
import torch

import plumbline

CALLS = {"cov": torch.cov, "corrcoef": torch.corrcoef}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", CALLS)
def test_it_is_one_graph(name: str, dynamic: bool | None) -> None:
    call, x = CALLS[name], torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    compiled = plumbline.compile(call, dynamic=dynamic, fullgraph=True, options={"strict": True})
    torch.testing.assert_close(compiled(x), call(x))
    gradient = torch.autograd.grad(compiled(x).sin().sum(), x)
    torch.testing.assert_close(gradient, torch.autograd.grad(call(x).sin().sum(), x))


def test_a_number_that_is_written_to_is_not_known_any_more() -> None:
    def count(x: torch.Tensor) -> torch.Tensor:
        total = x.new_zeros(())
        total += x.sum()
        return x * 2 if total.item() > 0 else x

    compiled = plumbline.compile(count)
    for x in (torch.ones(3), -torch.ones(3)):
        assert torch.equal(compiled(x), count(x))
