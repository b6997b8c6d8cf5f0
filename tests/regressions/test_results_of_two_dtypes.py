"""Operators whose kernels give another dtype for operands of two dtypes than torch's rules for fake tensors say."""

import itertools

import pytest
import torch
from torch.nn import functional

import plumbline
from plumbline.compiler.base.events import recording, swallowed_error

PROGRAMS = {
    "addr": lambda x, y: torch.addr(x.expand(3, 3), y, y, beta=0),
    "ldexp": torch.ldexp,
    "ldexp of one number": lambda x, y: torch.ldexp(x[0], y),
    "soft_margin_loss": lambda x, y: functional.soft_margin_loss(x, y, reduction="none"),
    "huber_loss": lambda x, y: functional.huber_loss(x, y, reduction="none"),
}


@pytest.mark.parametrize(
    "dtypes", list(itertools.permutations([torch.float16, torch.float32, torch.float64], 2)), ids=str
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_conversion_of_the_result_is_done(name, dtypes):
    def program(x, y):
        result = PROGRAMS[name](x, y)
        return result, *(result.to(dtype) for dtype in (torch.float16, torch.float32, torch.float64))

    x, y = (torch.tensor([1.0, 2.0, 3.0], dtype=dtype) for dtype in dtypes)
    found = plumbline.compile(program, backend="aot_eager")(x, y)
    for one, other in zip(found, program(x, y), strict=True):
        assert one.dtype == other.dtype
        assert torch.equal(one, other)


LOSSES = {
    "smooth_l1_loss": lambda x, y: functional.smooth_l1_loss(x, y, reduction="none"),
    "mse_loss": lambda x, y: functional.mse_loss(x, y, reduction="none"),
    "soft_margin_loss": lambda x, y: functional.soft_margin_loss(x, y, reduction="none"),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(
    "dtypes", list(itertools.permutations([torch.float16, torch.float32, torch.float64], 2)), ids=str
)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_have_the_dtypes_of_their_operands(name, dtypes, backend):
    """Found by `sweep operators`: the graph of the backward ran operator by operator, as one result surprised it."""

    def program(x, y):
        result = LOSSES[name](x, y)
        return result, result.double()

    def run(function):
        x, y = (torch.tensor([1.0, 2.5, -3.0], dtype=dtype, requires_grad=True) for dtype in dtypes)
        y = y if name != "soft_margin_loss" else y.detach()
        result, wide = function(x, y)
        (result.sum() + wide.sum()).backward()
        return x.grad, y.grad

    with recording() as events:
        found = run(plumbline.compile(program, backend=backend))
    assert [event for event in events if swallowed_error(event)] == []
    for one, other in zip(found, run(program), strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype
            torch.testing.assert_close(one, other)
