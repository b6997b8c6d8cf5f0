"""A write to a part that `unsafe_split` or `unsafe_chunk` gave did not reach the tensor: the part was a copy."""

import pytest
import torch

import plumbline


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
@pytest.mark.parametrize("parts", ["unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes"])
def test_parts_are_views(parts: str, backend: str) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        last = getattr(x, parts)([1, 3] if parts.endswith("sizes") else 2)[-1]
        last.add_(1)
        return last, x.sum(1)

    x, expected_x = torch.zeros(4, 3), torch.zeros(4, 3)
    actual, expected = plumbline.compile(f, backend=backend)(x), f(expected_x)
    assert torch.equal(x, expected_x)
    assert torch.equal(actual[1], expected[1])
    assert actual[0].data_ptr() - x.data_ptr() == expected[0].data_ptr() - expected_x.data_ptr()
