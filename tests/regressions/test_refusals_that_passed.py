"""Found by `fuzz graphs`: calls that eager refuses went through: sums of truth values in place, no elements."""

import pytest
import torch
from torch.nn import functional

import plumbline

PROGRAMS = {
    "cumsum_ of truth values": (lambda x: (x > 0).cumsum_(0), NotImplementedError),
    "cumprod_ of truth values": (lambda x: (x > 0).cumprod_(0), NotImplementedError),
    "abs_ of truth values": (lambda x: (x > 0).abs_(), NotImplementedError),
    "an unread least element of none": (lambda x: (torch.min(x[:0]), x)[1], RuntimeError),
}
FOR_THEIR_ARGUMENTS = {
    "a norm over no dimension": lambda x: torch.native_layer_norm(x, [], None, None, 1e-5),
    "a truth value as the factor of a subtraction": lambda x: torch.rsub(x, x, alpha=True),
    "huber_loss of complex numbers": lambda x: functional.huber_loss(x + 1j, x + 1j),
    "probabilities that are bytes": lambda x: functional.binary_cross_entropy_with_logits(x, x.to(torch.uint8)),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", FOR_THEIR_ARGUMENTS)
def test_dtypes_and_sizes_are_refused(name: str, dynamic: bool) -> None:
    """Found by `sweep operators --sizes dynamic`: what these are decomposed into takes more than their kernels."""
    program = FOR_THEIR_ARGUMENTS[name]
    with pytest.raises(RuntimeError) as eagers:
        program(torch.ones(3, 2))
    with pytest.raises(RuntimeError) as ours:
        plumbline.compile(program, dynamic=dynamic)(torch.ones(3, 2))
    assert type(ours.value) is type(eagers.value)
    assert str(ours.value).splitlines()[0] == str(eagers.value).splitlines()[0]


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
