"""Batch norm on every level: bit for bit eager's with running statistics, as exact as eager's in training."""

from collections.abc import Callable

import pytest
import torch

import plumbline
from support.backend_levels import as_tuple, run_levels, same_form

pytestmark = pytest.mark.cc
aten = torch.ops.aten
SHAPES = [(4, 8, 6, 6), (3, 5, 7, 9), (33, 20), (2, 6, 5), (1, 3, 2, 1)]


def arguments(shape: tuple[int, ...], dtype: torch.dtype, *, last: bool) -> tuple[torch.Tensor, ...]:
    """Return an image (last: with channels innermost in memory) and four numbers per channel."""
    image = (torch.randn(shape, dtype=torch.float64) * 3 + 1).to(dtype)
    if last and len(shape) == 4:
        image = image.to(memory_format=torch.channels_last)
    return (image, *(torch.rand(shape[1], dtype=dtype) + 0.5 for _ in range(4)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_running_statistics(shape: tuple[int, ...], last: bool, dtype: torch.dtype) -> None:
    def program(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> object:
        with_all = aten._native_batch_norm_legit_no_training.default(x, w, b, m, v, 0.1, 1e-5)
        bare = aten.native_batch_norm.default(x, None, None, m, v, False, 0.1, 1e-3)
        return (*with_all, *bare)

    inputs = arguments(shape, dtype, last=last)
    wanted = as_tuple(program(*inputs))
    for level, outputs in run_levels(program, inputs).items():
        for found, want in zip(outputs, wanted, strict=True):
            assert isinstance(found, torch.Tensor)
            assert isinstance(want, torch.Tensor)
            assert same_form(found, want), level
            ulp = torch.finfo(dtype).eps * 4  # alpha and beta are rounded as eager's vectors or its last elements are
            torch.testing.assert_close(found, want, rtol=ulp, atol=ulp, msg=lambda m, n=level: f"{n}: {m}")


def _in_training(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> object:
    return aten._native_batch_norm_legit_functional.default(x, w, b, m, v, True, 0.3, 1e-5)


def _without_statistics(x: torch.Tensor, *_: torch.Tensor) -> object:
    return aten._native_batch_norm_legit.no_stats(x, None, None, True, 0.1, 1e-3)


@pytest.mark.parametrize("program", [_in_training, _without_statistics])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_training(shape: tuple[int, ...], last: bool, dtype: torch.dtype, program: Callable[..., object]) -> None:
    inputs = arguments(shape, dtype, last=last)
    wanted, exact = as_tuple(program(*inputs)), as_tuple(program(*(each.double() for each in inputs)))
    for level, outputs in run_levels(program, inputs).items():
        for number, (found, want, true) in enumerate(zip(outputs, wanted, exact, strict=True)):
            assert isinstance(found, torch.Tensor)
            assert isinstance(want, torch.Tensor)
            assert isinstance(true, torch.Tensor)
            assert same_form(found, want), f"{level} output {number}"
            unit = torch.finfo(dtype).eps * max(true.abs().max(), inputs[0].abs().mean())  # a mean's terms cancel
            allowed = (want.double() - true.double()).abs().max() + 4 * unit
            assert (found.double() - true.double()).abs().max() <= allowed, f"{level} output {number}"


@pytest.mark.parametrize("size", [1e25, 1e15, 1e-15, 1e-25])
def test_sums_overflow_and_vanish_where_eagers_do(size: float) -> None:
    inputs = arguments((4, 3, 5, 5), torch.float32, last=False)
    inputs = ((inputs[0] - 1) * size, *inputs[1:])

    def saved(*given: torch.Tensor) -> object:
        return as_tuple(aten._native_batch_norm_legit.no_stats(given[0], given[1], given[2], True, 0.1, 1e-60))[:3]

    wanted = as_tuple(saved(*inputs))
    for outputs in run_levels(saved, inputs).values():
        torch.testing.assert_close(outputs, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("strides", [(6, 1, 2), (1, 1, 2), (2, 6, 1)])
def test_results_lie_as_eagers_where_shape_rules_would_keep_another_layout(strides):
    """Eager's kernel knows channels in their place and innermost; a transposed sequence comes out contiguous."""
    x = torch.empty_strided((1 if strides[0] == 1 else 2, 2, 3), strides).copy_(torch.arange(6.0).reshape(2, 3))

    def program(x):
        return torch._native_batch_norm_legit(x, None, None, True, 0.5, 1e-5)[0]

    for dynamic in (False, True):
        result = plumbline.compile(program, dynamic=dynamic)(x)
        torch.testing.assert_close(result, program(x))
        assert result.stride() == program(x).stride()
