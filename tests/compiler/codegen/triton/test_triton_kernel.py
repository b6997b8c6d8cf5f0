"""The text of kernels: the precise functions, typed constants, guarded lanes."""

from collections.abc import Callable

import torch

from support.triton_kernels import kernels_of


def text_of(function: Callable[..., object], *inputs: torch.Tensor) -> str:
    (kernel,) = kernels_of(function, *inputs)
    return kernel.text


def test_division_and_roots_are_rounded_once() -> None:
    text = text_of(lambda x, y: x.sqrt() / y, torch.empty(1000), torch.empty(1000))
    assert "tl.div_rn(" in text
    assert "tl.sqrt_rn(" in text
    assert "libdevice.exp(" in text_of(lambda x: x.exp(), torch.empty(1000))


def test_the_least_negative_zero_keeps_its_sign() -> None:
    assert "tl.full([1], -1.0, tl.float32)" in text_of(lambda x: torch.copysign(x, -0.0), torch.empty(1000))


def test_extremes_keep_nan() -> None:
    assert "greatest_or_nan" in text_of(lambda x: x.amax(1), torch.empty(8, 100))
    assert "greatest_or_nan" not in text_of(lambda x: x.amax(1), torch.empty(8, 100, dtype=torch.int64))


def test_half_types_are_values_of_float32_rounded_at_every_cast() -> None:
    text = text_of(lambda x: (x * 2) + 1, torch.empty(1000, dtype=torch.bfloat16))
    assert text.count(".to(tl.bfloat16).to(tl.float32)") == 2
    assert "tl.load(p1" in text or "tl.load(p0" in text


def test_only_ragged_lanes_are_masked() -> None:
    assert "mask" not in text_of(lambda x: x + 1, torch.empty(4096))
    assert "px_in = px < 4097" in text_of(lambda x: x + 1, torch.empty(4097))
    row = text_of(lambda x: x.softmax(-1), torch.empty(8, 130))
    assert "pr_in = pr < 130" in row
    assert 'float("-inf")' in row, "lanes beyond the row must not win"


def test_a_looked_up_place_is_checked_and_read_where_it_is_inside() -> None:
    text = text_of(lambda x, i: x[i] + 1, torch.empty(50, 64), torch.zeros(128, dtype=torch.int64))
    assert "report(flag, 1, " in text
    assert ", 0).to(tl.int32)" in text, "element zero is read in its place"


def test_a_place_that_cannot_leave_its_dimension_is_not_checked() -> None:
    text = text_of(lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1), torch.empty(2, 4, 16, 16))
    assert "flag" not in text
    assert "tl.int64" not in text
    assert "mask" in text_of(lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1), torch.empty(1, 1, 9, 9))


def test_what_belongs_to_a_row_is_one_number_per_program() -> None:
    text = text_of(lambda x, row: x * (row + 1), torch.empty(512, 4096), torch.empty(512, 1))
    assert "pz = pid // 4" in text
    assert " + (zero + pz))" in text
    ragged = text_of(lambda x, row: x * row, torch.empty(4096, 1000), torch.empty(4096, 1))
    assert "px = pid % 1 * 1024" in ragged, "24 idle lanes are less than a division in each"
    assert "pz" not in text_of(lambda x, row: x * row, torch.empty(4096, 700), torch.empty(4096, 1))
