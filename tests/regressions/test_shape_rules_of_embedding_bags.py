"""What an embedding bag saves for its backward: torch's shape rule promised more, and graphs with it ran eagerly."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import recording, swallowed_error


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True])
def test_the_graph_stays_compiled(mode, dtype, last, backend):
    weight = torch.arange(20.0).reshape(5, 4).to(dtype).requires_grad_()
    indices, offsets = torch.tensor([0, 2, 1, 4, 4, 3]), torch.tensor([0, 2, 6 if last else 4])

    def bags(weight):
        rows = torch.nn.functional.embedding_bag(indices, weight, offsets, mode=mode, include_last_offset=last)
        return rows + 1

    expected = bags(weight)
    with recording() as events:
        actual = plumbline.compile(bags, backend=backend)(weight)
    assert [error for event in events if (error := swallowed_error(event))] == []
    assert torch.equal(actual, expected)
    one, other = (torch.autograd.grad(result.sum(), weight)[0] for result in (actual, expected))
    assert torch.equal(one, other)
