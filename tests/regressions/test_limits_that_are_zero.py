"""Of zeros of both signs the limit was given out, where kernels give the value; a reciprocal tells them apart."""

import pytest
import torch

import plumbline

CALLS = {
    "clamp": lambda x: x.clamp(-0.0, 1),
    "clamp to negative numbers": lambda x: x.clamp(-1, 0.0),
    "clamp_min": lambda x: x.clamp_min(-0.0),
    "clamp_max": lambda x: x.clamp_max(0.0),
    "hardtanh": lambda x: torch.nn.functional.hardtanh(x, -0.0, 1.0),
    "fmax": lambda x: torch.fmax(x, -x),
    "fmin": lambda x: torch.fmin(x, -x),
}


@pytest.mark.cc
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("function", CALLS.values(), ids=CALLS.keys())
def test_the_value_keeps_its_sign(function, zero):
    x = torch.full((40,), zero)
    compiled = plumbline.compile(lambda x: function(x).reciprocal(), backend="inductor")(x)
    assert compiled.tolist() == function(x).reciprocal().tolist()


@pytest.mark.cc
def test_a_whole_number_has_no_negative_zero():
    x = torch.zeros(40, dtype=torch.int64)
    compiled = plumbline.compile(lambda x: x.clamp(-0.0, 1).reciprocal(), backend="inductor")(x)
    assert compiled.tolist() == [float("inf")] * 40
