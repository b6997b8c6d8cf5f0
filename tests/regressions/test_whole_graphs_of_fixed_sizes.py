"""An operation without a rule for open sizes raised under `fullgraph` once a size varied, which fixed sizes do not."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.errors import Unsupported


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("call", [lambda x: torch.geqrf(x)[0] + 1, lambda x: torch.histogram(x, 3)[0] * 2])
def test_sizes_that_vary_are_fixed_there(call, backend):
    compiled = plumbline.compile(call, backend=backend, fullgraph=True)
    for size in (3, 4, 5, 3):
        x = torch.randn(size, size)
        assert torch.equal(compiled(x), call(x))


def test_what_breaks_for_any_sizes_raises():
    compiled = plumbline.compile(lambda x: x * x.sum().item(), backend="eager", fullgraph=True)
    for size in (3, 4, 5):
        with pytest.raises(Unsupported):
            compiled(torch.ones(size))
