"""A complex input in the memory of real numbers of another last size than 2 led to an internal error.

Rotary embeddings make such tensors: `torch.view_as_complex(x.view(..., -1, 2))`.
"""

import pytest
import torch

import plumbline

BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


def rotated(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z * (2 + 1j)).flatten(-2)


@pytest.mark.parametrize("conjugated", [False, True])
@pytest.mark.parametrize("history", ["none", "leaf", "computed"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_captured_whole(backend: str, history: str, conjugated: bool) -> None:
    outcomes = []
    for function in (rotated, plumbline.compile(rotated, backend=backend, fullgraph=True)):
        base = torch.arange(32.0).view(4, 8).requires_grad_(history == "computed")
        z = torch.view_as_complex((base * 1).view(4, 4, 2))
        z = z.conj() if conjugated else z
        if history == "leaf":
            z = z.detach().requires_grad_()
        with plumbline.config.patch(strict=True):
            result = function(z)
        if history != "none":
            result.sum().backward()
        outcomes.append((result.detach(), z.grad if history == "leaf" else base.grad))
    (expected, expected_gradient), (actual, gradient) = outcomes
    assert torch.equal(actual, expected)
    assert (gradient is None) == (expected_gradient is None)
    if gradient is not None and expected_gradient is not None:
        assert torch.equal(gradient, expected_gradient)
