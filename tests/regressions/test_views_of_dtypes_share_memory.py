"""Found by `fuzz graphs`: a result was written over a view that kept the dtype, which was a result as well.

The call is not taken apart, and the program of loops did not know that it gives the memory of its argument.
"""

import pytest
import torch

import plumbline
from plumbline.compiler.base.nested import leaves

PROGRAMS = {
    "a view of the same dtype": lambda x: ((y := x + 1).view(torch.int32), y * y.view(torch.int32)[0]),
    "one of another dtype": lambda x: ((y := x + 1).view(torch.float32), y * y.view(torch.float32)[0].int()),
    "its end": lambda x: ((y := x & 5).view(torch.int32).flatten()[-1:], y * y.view(torch.int32)[0] + 2),
    "bytes": lambda x: ((y := x + 1).view(torch.uint8), y * 3, y.view(torch.uint8)[::4] + 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_tensor_that_is_viewed_is_not_written_over(name):
    x = torch.randint(-4, 5, (64,), dtype=torch.int32)
    found = plumbline.compile(PROGRAMS[name], backend="inductor")(x)
    for one, other in zip(leaves(found), leaves(PROGRAMS[name](x)), strict=True):
        assert torch.equal(one.view(torch.uint8), other.view(torch.uint8))
