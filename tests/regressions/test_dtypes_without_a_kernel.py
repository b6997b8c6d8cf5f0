"""Generated code gave whole numbers for operations that eager refuses to do on them."""

import pytest
import torch
from torch.nn import functional

import plumbline

REFUSED = {
    "std": lambda x: x.std(),
    "var": lambda x: x.var(0, unbiased=False),
    "var_mean": torch.var_mean,
    "softmax": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(0),
    "gelu": functional.gelu,
    "celu": functional.celu,
    "softplus": functional.softplus,
    "logsigmoid": functional.logsigmoid,
    "mish": functional.mish,
    "hardshrink": functional.hardshrink,
    "hypot": lambda x: torch.hypot(x, x),
    "glu": functional.glu,
    "smooth_l1_loss": lambda x: functional.smooth_l1_loss(x, x),
}


@pytest.mark.cc
@pytest.mark.parametrize("function", REFUSED.values(), ids=REFUSED.keys())
def test_eagers_error_is_raised(function):
    x = torch.tensor([3, 0, 2, 1])
    with pytest.raises((RuntimeError, NotImplementedError)) as eagers:
        function(x)
    with pytest.raises(eagers.type) as ours:
        plumbline.compile(function, backend="inductor")(x)
    assert str(ours.value) == str(eagers.value)


@pytest.mark.cc
def test_floats_have_kernels_as_before():
    for function in REFUSED.values():
        x = torch.tensor([0.3, -1.0, 2.0, 0.1])
        compiled = plumbline.compile(function, backend="inductor")(x)
        torch.testing.assert_close(compiled, function(x))
