"""Channels innermost between kernels and convolutions: which tensors change, which do not, and the same values."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import LoopProgram
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.schedule.schedule import schedule
from support.backend_levels import STRICT

IMAGE, FIRST, SECOND = torch.randn(2, 3, 9, 8), torch.randn(4, 3, 3, 3), torch.randn(5, 4, 3, 3)


def changed(function: Callable[..., object], *inputs: torch.Tensor) -> list[str]:
    """Return the tensors whose channels are innermost although eager's are not."""
    program: LoopProgram = schedule(lower_graph(trace(function, inputs)), Options(verify=True))
    names = [name for name, each in program.buffers.items() if len(each.shape) == 4 and each.strides[1] == 1]
    return sorted(names)


def two(x: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return F.conv2d(F.conv2d(x, v).relu(), w).relu()


def shown_between(x: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    first = F.conv2d(x, v).relu()
    return first, F.conv2d(first, w)


def read_by_another_call(x: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    first = F.conv2d(x, v).relu()
    return F.conv2d(first, w).relu(), first.cumsum(1)


def test_images_between_kernels_and_convolutions_change() -> None:
    names = changed(two, IMAGE, FIRST, SECOND)
    assert len(names) == 4  # the copy of the input, both results, and what is between
    assert not any(name.startswith("relu") and name.endswith("1") for name in names)


@pytest.mark.parametrize("program", [shown_between, read_by_another_call])
def test_what_others_see_does_not(program: Callable[..., object]) -> None:
    assert len(changed(program, IMAGE, FIRST, SECOND)) == 2  # the copy of the input, and the first result


def test_one_channel_has_no_such_layout() -> None:
    assert not changed(lambda x, w: F.conv2d(x.relu(), w).relu(), torch.randn(2, 1, 9, 8), torch.randn(1, 1, 3, 3))


@pytest.mark.cc
@pytest.mark.parametrize("program", [two, shown_between, read_by_another_call])
def test_values_and_strides_are_eagers(program: Callable[..., object]) -> None:
    inputs = (IMAGE, FIRST, SECOND)
    found = compile_graph(trace(program, inputs), inputs, STRICT)(*inputs)
    wanted = program(*inputs)
    for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert isinstance(one, torch.Tensor)
        assert one.stride() == other.stride()
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-4)
