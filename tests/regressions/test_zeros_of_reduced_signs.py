"""The gradient of the sign of a reduction: zeros without memory named the device on which shapes are taken."""

import pytest
import torch

from plumbline.compiler import api


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "function",
    [
        lambda a: torch.sgn((a * 2).amin(-1)),
        lambda a: torch.sgn((a * 2).amax(-1)) * a.sum(),
        lambda a: torch.sgn(a.amin()) / a.amax(),
    ],
)
def test_gradients(backend, function):
    found = []
    for run in (function, api.compile(function, backend=backend)):
        a = torch.tensor([0.5, -2.0], requires_grad=True)
        run(a).sum().backward()
        found.append(a.grad)
    torch.testing.assert_close(found[1], found[0])
    assert found[1].device == found[0].device
