"""`x.new(x.size())` gave a tensor of the sizes, as it does for a plain tuple, and not of that shape."""

import pytest
import torch

import plumbline

FORMS = {
    "size": lambda x: x.new(x.size()).fill_(1),
    "shape": lambda x: x.new(x.shape[1:]).fill_(1),
    "made": lambda x: x.new(torch.Size([4, 1])).fill_(1),
    "of no dimension": lambda x: x.new(x.shape[:0]).fill_(1),
    "by class": lambda x: torch.Tensor.new(x, x.size()).fill_(1),
    "with a device": lambda x: x.new(x.size(), device="cpu").fill_(1),
    "numbers": lambda x: x.new(*x.size()).fill_(1),
    "tuple": lambda x: x.new(tuple(x.size())),
    "list": lambda x: x.new([3, 4]),
    "one number": lambda x: x.new(x.shape[0]).fill_(1),
    "nothing": lambda x: x.new(),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", FORMS)
def test_every_form(name: str, backend: str) -> None:
    for dtype in (torch.float32, torch.int64):
        x = torch.zeros(2, 3, dtype=dtype)
        actual, expected = plumbline.compile(FORMS[name], backend=backend)(x), FORMS[name](x)
        assert actual.dtype == expected.dtype
        assert torch.equal(actual, expected)
