"""Generated code gave whole numbers for operations that eager refuses to do on them."""

import pytest
import torch
from torch.nn import functional

import plumbline
from support.torch_release import since_release

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
    "softmax backward": lambda x: torch.ops.aten._softmax_backward_data(x, x, 0, x.dtype),
    "log_softmax backward": lambda x: torch.ops.aten._log_softmax_backward_data(x, x, 0, x.dtype),
}


@pytest.mark.cc
@pytest.mark.parametrize("function", REFUSED.values(), ids=REFUSED.keys())
def test_eagers_error_is_raised(function):
    x = torch.tensor([3, 0, 2, 1])
    with pytest.raises(RuntimeError) as eagers:
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


COMPLEX, BYTES, PLACES = torch.ones(2, 3, dtype=torch.complex64), torch.ones(2, 3).byte(), torch.tensor([0, 1])
REFUSED_FOR = {
    "unfold of whole numbers": (lambda x: functional.unfold(x, 2), (torch.ones(1, 1, 4, 4).long(),)),
    "group_norm of complex": (lambda x: functional.group_norm(x, 3), (COMPLEX,)),
    "layer_norm of halves": (lambda x, w: functional.layer_norm(x, (3,), w), (torch.ones(2, 3), torch.ones(3).half())),
    "glu of complex": (lambda x: functional.glu(x, 0), (COMPLEX,)),
    "rsub of bool": (torch.rsub, (torch.ones(2), torch.ones(2).bool())),
    "trace of bool": (torch.trace, (torch.ones(2, 2).bool(),)),
    "smooth_l1_loss of complex": (functional.smooth_l1_loss, (COMPLEX, COMPLEX)),
    "mse_loss of complex": (functional.mse_loss, (COMPLEX, COMPLEX)),
    "nll_loss of bytes": (functional.nll_loss, (BYTES, PLACES)),
    "nll_loss of images of bytes": (functional.nll_loss, (BYTES[..., None], PLACES[:, None])),
    "nll_loss with bool weights": (functional.nll_loss, (torch.ones(2, 3), PLACES, torch.ones(3).bool())),
}


@pytest.mark.cc
@pytest.mark.parametrize("sizes", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), REFUSED_FOR.values(), ids=REFUSED_FOR.keys())
def test_eagers_error_is_raised_for_mixed_and_complex_dtypes(function, arguments, sizes):
    with pytest.raises(RuntimeError) as eagers:
        function(*arguments)
    with pytest.raises(eagers.type) as ours:
        plumbline.compile(function, backend="inductor", dynamic=sizes)(*arguments)
    assert str(ours.value) == str(eagers.value)


@pytest.mark.cc
def test_halves_have_these_kernels():
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.rand(2, 3).to(dtype)
        for function in (lambda t: functional.glu(t, 0), lambda t: functional.mse_loss(t, t + 1), torch.trace):
            compiled = plumbline.compile(function, backend="inductor")
            if function is torch.trace and not since_release("2.13"):
                for call in (function, compiled):
                    with pytest.raises(NotImplementedError, match='"trace" not implemented for'):
                        call(x)
                continue
            torch.testing.assert_close(compiled(x), function(x))
