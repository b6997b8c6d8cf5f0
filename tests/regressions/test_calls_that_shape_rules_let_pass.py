"""Calls that eager refuses, or gives other sizes, and torch's shape rules do not: values came where eager raises."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import recording, swallowed_error
from support.torch_release import since_release

BACKENDS = ["eager", pytest.param("aot_eager"), pytest.param("inductor", marks=pytest.mark.cc)]
aten = torch.ops.aten
ONE, ALL = torch.rand(5, 1), torch.rand(5, 5)
NOTHING, CHANNELS = torch.empty(0, 5, 3), torch.ones(5)

REFUSED = {
    "pow_": (lambda x: x.pow_(ALL), ONE),
    "float_power_": (lambda x: x.float_power_(ALL.double()), ONE.double()),
    "floor_divide_": (lambda x: x.floor_divide_(ALL), ONE),
    "masked_scatter_": (lambda x: x.masked_scatter_(ALL > 0.5, torch.rand(25)), torch.rand(5)),
    "addr_": (lambda x: x.addr_(torch.rand(5), torch.rand(4)), ONE),
    "bernoulli_": (lambda x: x.bernoulli_(ALL), torch.rand(5)),
    "diagonal_scatter": (lambda x: torch.diagonal_scatter(x, torch.ones(2)), torch.rand(3, 3)),
    "as_strided_scatter": (lambda x: torch.as_strided_scatter(x, torch.ones(2), (3,), (1,)), torch.rand(3, 3)),
    "as_strided": (lambda x: x.as_strided((30,), (1,)), torch.rand(3, 3)),
    "as_strided behind an offset": (lambda x: x[1:].as_strided((2, 3), (3, 1), 6), torch.rand(3, 3)),
    "pixel_unshuffle": (lambda x: torch.pixel_unshuffle(x, 3), torch.rand(0, 1, 5, 6)),
    "native_batch_norm": (
        lambda x: torch.native_batch_norm(x, CHANNELS, CHANNELS, CHANNELS, CHANNELS, True, 0.1, 1e-5),
        NOTHING,
    ),
    "_batch_norm_with_update": (
        lambda x: aten._batch_norm_with_update(x, CHANNELS, CHANNELS, CHANNELS.clone(), CHANNELS.clone(), 0.1, 1e-5),
        NOTHING,
    ),
    "native_group_norm": (
        lambda x: torch.native_group_norm(x, None, None, 1, 2, 1, 1, 1e-5),
        torch.empty_strided((1, 2), (4, 2)).zero_(),
    ),
}
ALLOWED_SINCE = {"native_group_norm": "2.15"}
SIZES = {
    "pixel_unshuffle": (lambda x: torch.pixel_unshuffle(x, 3) * 2, torch.empty(0, 1, 6, 6)),
    "pixel_unshuffle, a size of it": (
        lambda x: torch.ones(torch.pixel_unshuffle(x, 3).shape[1]),
        torch.empty(1, 9, 0, 6),
    ),
    "repeat_interleave": (
        lambda x: torch.repeat_interleave(x, torch.zeros(0, dtype=torch.int64), dim=0, output_size=6) + 1,
        torch.empty(0, 1),
    ),
    "nll_loss of no classes": (
        lambda x: torch.nn.functional.nll_loss(x, torch.tensor(0), ignore_index=0, reduction="none"),
        torch.empty(0),
    ),
    "_batch_norm_with_update": (
        lambda x: aten._batch_norm_with_update(x, *torch.ones(4, 2, dtype=torch.half).unbind(), 0.1, 1e-5)[1],
        torch.rand(3, 2, 3, 4).half(),
    ),
}


@pytest.mark.parametrize("is_read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REFUSED)
def test_eagers_error_comes(name, backend, is_read):
    call, x = REFUSED[name]

    def program(x):
        result = call(x)
        return result if is_read else x * 2

    for function in (program, plumbline.compile(program, backend=backend)):
        given = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x)
        if since_release(ALLOWED_SINCE.get(name)):
            torch.testing.assert_close(function(given), program(x), rtol=0, atol=0)
            continue
        with pytest.raises(RuntimeError):
            function(given)
    assert torch.equal(given, x)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_dtypes_are_the_kernels(name, backend):
    call, x = SIZES[name]
    with recording() as events:
        result = plumbline.compile(call, backend=backend)(x)
    assert (result.shape, result.dtype) == (call(x).shape, call(x).dtype)
    assert not [error for event in events if (error := swallowed_error(event))]
