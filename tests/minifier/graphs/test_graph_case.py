import pytest
import torch

from plumbline.minifier.graphs.graph_case import tensor_bytes


@pytest.mark.parametrize(
    ("tensor", "values"),
    [
        (torch.arange(10)[::2][:1], [0]),
        (torch.arange(10)[::2], [0, 2, 4, 6, 8]),
        (torch.arange(6).reshape(2, 3).t(), [0, 3, 1, 4, 2, 5]),
        (torch.ones(2, dtype=torch.int64).expand(3, 2), [1] * 6),
        (torch.tensor(7), [7]),
        (torch.empty(0, dtype=torch.int64), []),
    ],
)
def test_bytes_of_a_tensor_are_its_elements_in_order(tensor, values):
    assert tensor_bytes(tensor) == b"".join(value.to_bytes(8, "little") for value in values)
