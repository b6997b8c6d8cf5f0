"""Found by `sweep operators`: with dynamic sizes the rule of embedding_bag promised what its kernel does not keep."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import recording, swallowed_error


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_graphs_are_not_given_up(dtype: torch.dtype, mode: str) -> None:
    def bags(places, weight):
        return torch.nn.functional.embedding_bag(places, weight, mode=mode)

    compiled = plumbline.compile(bags, backend="aot_eager", dynamic=True)
    with recording() as events:
        for count in (3, 4, 6):
            weight = torch.randn(8, 5).to(dtype).requires_grad_()
            other = weight.detach().clone().requires_grad_()
            places = torch.randint(8, (count, 2))
            expected, actual = bags(places, weight), compiled(places, other)
            expected.float().sum().backward()
            actual.float().sum().backward()
            assert torch.equal(actual, expected)
            assert torch.equal(other.grad, weight.grad)
    assert not [error for event in events if (error := swallowed_error(event))]
