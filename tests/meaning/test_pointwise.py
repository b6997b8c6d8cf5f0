"""Eager = interpreted loops = fused loops = C, for the table of pointwise operators, hard values and vector tails."""

import pytest
import torch

from plumbline.compiler.base.options import Options
from support.backend_levels import eager, run_levels, same_form
from support.hard_values import hard_tensor, ulps_apart
from support.op_table import ALL, POINTWISE, Case

pytestmark = pytest.mark.cc
# Not "run": at hard values eager's vectors and its scalars differ, which `domain` and `noise` of a case say.
CHECKED = Options(strict=True, verify=True)


def faults(
    case: Case, level: str, found: torch.Tensor, wanted: torch.Tensor, x: torch.Tensor, y: torch.Tensor
) -> list[str]:
    if not same_form(found, wanted):
        return [
            f"{case.name} at {level}: {found.dtype}{list(found.shape)}{found.stride()},"
            f" not {wanted.dtype}{wanted.stride()}"
        ]
    if not wanted.numel():
        return []
    if wanted.shape != torch.broadcast_shapes(x.shape, y.shape):
        y = torch.ones_like(x)  # the operator does not take it
    x, y = torch.broadcast_tensors(x, y)
    apart = ulps_apart(found, wanted)
    bad = apart > case.ulp
    if case.noise is not None:
        bad &= ~((found.double() - wanted.double()).abs() <= case.noise(x, y))
    if case.domain is not None:
        bad &= case.domain(x, y)
    if not bad.any():
        return []
    at = int(torch.where(bad, apart, -1.0).reshape(-1).argmax())
    given = (x.reshape(-1)[at].item(), y.reshape(-1)[at].item())
    return [f"{case.name} at {level}{given}: {found.reshape(-1)[at].item()!r}, eager {wanted.reshape(-1)[at].item()!r}"]


def check_table(x: torch.Tensor, y: torch.Tensor) -> None:
    trap = y == 0
    if x.dtype in (torch.int64, torch.int32, torch.int8) and bool((x == torch.iinfo(x.dtype).min).any()):
        trap = trap | (y == -1)  # eager's own division traps on the most negative number by minus one
    divisor = torch.where(trap, torch.ones_like(y), y)
    cases = [case for case in POINTWISE if x.dtype in case.dtypes]

    def every(x: torch.Tensor, y: torch.Tensor, divisor: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(case.function(x, divisor if case.nonzero_divisor else y) for case in cases)

    wanted = eager(every, (x, y, divisor))
    wrong: list[str] = []
    for level, outputs in run_levels(every, (x, y, divisor), CHECKED).items():
        for case, found, want in zip(cases, outputs, wanted, strict=True):
            assert isinstance(want, torch.Tensor)
            wrong += faults(case, level, found, want, x, divisor if case.nonzero_divisor else y)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_operator_means_what_eager_means(dtype: torch.dtype) -> None:
    check_table(hard_tensor(dtype, 100, 1), hard_tensor(dtype, 100, 2))


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33])
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_vector_tails(dtype: torch.dtype, count: int) -> None:
    check_table(hard_tensor(dtype, count, 3), hard_tensor(dtype, count, 4))


LAYOUTS = {
    "scalar": lambda t: t[:1].reshape(()),
    "odd_matrix": lambda t: t[:35].reshape(5, 7),
    "transposed": lambda t: t[:77].reshape(7, 11).t(),
    "expanded": lambda t: t[:9].reshape(9, 1).expand(9, 18),
    "strided": lambda t: t.reshape(10, 10)[1::2, ::3],
    "offset": lambda t: t[3:],
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool], ids=str)
def test_layouts(dtype: torch.dtype, layout: str) -> None:
    check_table(LAYOUTS[layout](hard_tensor(dtype, 100, 5)), LAYOUTS[layout](hard_tensor(dtype, 100, 6)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32], ids=str)
def test_broadcasting(dtype: torch.dtype) -> None:
    check_table(hard_tensor(dtype, 33, 7).reshape(1, 33), hard_tensor(dtype, 5, 8).reshape(5, 1))
