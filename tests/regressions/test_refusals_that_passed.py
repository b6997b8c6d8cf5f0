"""Found by `fuzz graphs`: calls that eager refuses went through: sums of truth values in place, no elements."""

import pytest
import torch

import plumbline

PROGRAMS = {
    "cumsum_ of truth values": (lambda x: (x > 0).cumsum_(0), NotImplementedError),
    "cumprod_ of truth values": (lambda x: (x > 0).cumprod_(0), NotImplementedError),
    "abs_ of truth values": (lambda x: (x > 0).abs_(), NotImplementedError),
    "an unread least element of none": (lambda x: (torch.min(x[:0]), x)[1], RuntimeError),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_they_raise_what_eager_raises(name: str, backend: str) -> None:
    program, error = PROGRAMS[name]
    for function in (program, plumbline.compile(program, backend=backend)):
        with pytest.raises(error):
            function(torch.ones(3))


def test_isin_lies_in_rows() -> None:
    def program(x):
        return torch.isin(x.t(), x), torch.isin(x.t(), 1.0)

    x = torch.arange(6.0).reshape(3, 2)
    actual = plumbline.compile(program, backend="inductor")(x)
    assert [value.stride() for value in actual] == [value.stride() for value in program(x)]
