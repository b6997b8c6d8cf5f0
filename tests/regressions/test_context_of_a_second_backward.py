"""The error of a backward whose history was freed is raised alone, not while another is handled."""

import pytest
import torch

from plumbline.compiler import api


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_the_error_has_no_context(backend):
    weight = torch.ones(3, requires_grad=True)
    pieces = []

    def step(x):
        pieces.append(torch.maximum(x, weight * 2))
        (sum(pieces) * weight).sum().backward()

    run = api.compile(step, backend=backend)
    run(torch.ones(3))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="second time") as caught:
            run(torch.ones(3))
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
