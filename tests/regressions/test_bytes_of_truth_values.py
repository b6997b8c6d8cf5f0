"""What was written to the bytes of truth values was read as 0 or 1 afterwards."""

import pytest
import torch

import plumbline


def doubled_bytes(mask):
    read = mask.view(torch.uint8)
    written = mask.view(torch.uint8)
    written.add_(written)
    return read


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)])
def test_bytes_stay_what_was_written(backend):
    compiled = plumbline.compile(doubled_bytes, backend=backend)
    assert compiled(torch.tensor([False, True])).tolist() == [0, 2]
