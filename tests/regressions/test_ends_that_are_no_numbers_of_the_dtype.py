"""`linspace` between tensors whose numbers the dtype does not hold did not raise where nobody reads its result."""

import pytest
import torch

import plumbline


def between(start, end):
    torch.linspace(start, end, 5, dtype=torch.float16)
    return start + 1


def test_it_raises_as_in_eager():
    start, end = torch.tensor(-2.0), torch.tensor(1000003)
    for call in (between, plumbline.compile(between, backend="aot_eager")):
        with pytest.raises(RuntimeError, match="without overflow"):
            call(start, end)
