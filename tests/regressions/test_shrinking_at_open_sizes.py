"""torch has no rule of open sizes for gradients of `softshrink` and `hardshrink`: it logged an error at each size."""

import logging

import pytest
import torch

import plumbline

CALLS = {"softshrink": torch.nn.functional.softshrink, "hardshrink": torch.nn.functional.hardshrink}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", CALLS)
def test_one_backward_serves_all_sizes(name: str, backend: str, caplog: pytest.LogCaptureFixture) -> None:
    def run(x: torch.Tensor) -> torch.Tensor:
        return CALLS[name](x, 0.3) * 2

    compiled = plumbline.compile(run, backend=backend, dynamic=True, fullgraph=True, options={"strict": True})
    with caplog.at_level(logging.ERROR):
        for size in (5, 6, 7):
            x = torch.randn(size, 3, requires_grad=True)
            torch.testing.assert_close(
                torch.autograd.grad(compiled(x).sum(), x), torch.autograd.grad(run(x).sum(), x), rtol=0, atol=0
            )
    assert not caplog.records
