"""Found by `fuzz transforms`: a comparison of a view with dimensions of one element lay otherwise than eager's.

torch's rule for a view of a fake tensor has other strides than ATen's where a size is 1, and kernels follow strides.
"""

import pytest
import torch

import plumbline


def compared(first, second):
    def inner(one, other):
        return torch.vmap(torch.lt)(one, other)

    return torch.vmap(inner, in_dims=(None, 2), out_dims=1, chunk_size=1)(first, second)


def viewed(first, second):
    shown = second[:, :, :1].permute(2, 0, 1).view(1, 1, 1, 2)
    return shown.stride(), shown, torch.lt(first, shown), shown * 2, torch.cat([shown, shown], 1)


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", [compared, viewed], ids=lambda program: program.__name__)
def test_views_have_the_strides_of_eager(program, backend: str) -> None:
    given = torch.randn(1, 1, 2), torch.randn(1, 2, 2)
    got, expected = plumbline.compile(program, backend=backend)(*given), program(*given)
    torch.testing.assert_close(got, expected, check_stride=True)
