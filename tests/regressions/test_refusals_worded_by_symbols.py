"""Found by `sweep operators` with dynamic sizes: backward of max_unpool refuses an image that cannot be viewed.

The rule for symbols words that as a ValueError, which was taken for an error of ours.
"""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import recording, swallowed_error


def unpooled(x, indices):
    return torch.nn.functional.max_unpool2d(x, indices, 2, 1)


def test_a_program_whose_backward_is_refused_is_no_fault_of_ours() -> None:
    x = torch.rand(1, 7, 2, 2).transpose(1, -1).requires_grad_()
    indices = torch.zeros(1, 7, 2, 2, dtype=torch.int64).transpose(1, -1)
    with recording() as events:
        result = plumbline.compile(unpooled, backend="aot_eager", dynamic=True)(x, indices)
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            result.sum().backward()
    assert not [error for event in events if (error := swallowed_error(event))]
