"""`smooth_l1_loss` refuses a negative `beta`, whether or not anything is compiled."""

import pytest
import torch

import plumbline


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_negative_beta_is_refused(backend):
    compiled = plumbline.compile(lambda x, y, b: torch.nn.functional.smooth_l1_loss(x, y, beta=b), backend=backend)
    x, y = torch.tensor([1.0]), torch.tensor([0.0])
    assert compiled(x, y, 1.0).item() == 0.5
    with pytest.raises(RuntimeError, match="negative values for beta"):
        compiled(x, y, -1.0)
