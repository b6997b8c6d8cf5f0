"""Found by `sweep operators`: bicubic images that need gradients were resized by a composition under dynamic sizes."""

import pytest
import torch

import plumbline
from plumbline.compiler.base.events import Broke, Captured, FellBack, recording

KINDS = [("bicubic", False), ("bicubic", True), ("bilinear", True)]


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize(("mode", "antialias"), KINDS)
def test_resizing_calls_the_kernel(mode: str, antialias: bool, order: torch.memory_format) -> None:
    def resized(x):
        return torch.nn.functional.interpolate(x, scale_factor=1.7, mode=mode, antialias=antialias).relu()

    compiled = plumbline.compile(resized, backend="aot_eager", dynamic=True)
    with recording() as events:
        for size in (5, 7, 9):
            x = torch.randn(2, 3, size, size + 1).contiguous(memory_format=order).requires_grad_()
            y = x.detach().clone().requires_grad_()
            expected, actual = resized(x), compiled(y)
            expected.sum().backward()
            actual.sum().backward()
            assert torch.equal(actual, expected)
            assert torch.equal(y.grad, x.grad)
            assert (actual.stride(), y.grad.stride()) == (expected.stride(), x.grad.stride())
    assert [type(event) for event in events if isinstance(event, Captured | Broke | FellBack)] == [Captured]


@pytest.mark.parametrize(("mode", "rank"), [("nearest", 1), ("nearest", 3), ("nearest-exact", 1), ("linear", 1)])
def test_gradients_of_lines_and_volumes_keep_sizes_open(mode: str, rank: int) -> None:
    """Found by calls with numbers that vary: torch has no rule for symbols, and says so where the user reads."""

    def resized(x, size):
        return torch.nn.functional.interpolate(x, size=(size,) * rank, mode=mode)

    compiled = plumbline.compile(resized, backend="aot_eager", dynamic=True)
    with recording() as events:
        for length, size in ((5, 3), (7, 2), (4, 9)):
            x = torch.randn(2, 3, *[length + n for n in range(rank)], requires_grad=True)
            y = x.detach().clone().requires_grad_()
            expected, actual = resized(x, size), compiled(y, size)
            expected.sum().backward()
            actual.sum().backward()
            assert torch.equal(actual, expected)
            assert torch.equal(y.grad, x.grad)
            assert y.grad.stride() == x.grad.stride()
    assert [type(event) for event in events if isinstance(event, Captured | Broke | FellBack)] == [Captured]


@pytest.mark.parametrize("order", [torch.contiguous_format, torch.channels_last])
def test_only_the_kernel_runs(order: torch.memory_format) -> None:
    """The composition by which the sizes are found was run as well, for the errors of its indexing."""
    compiled = plumbline.compile(
        lambda x: torch.nn.functional.interpolate(x, scale_factor=2, mode="bicubic"), dynamic=True
    )
    x = torch.randn(2, 3, 5, 4).contiguous(memory_format=order)
    with recording() as events:
        compiled(x)
    assert {event.operation for event in events if isinstance(event, FellBack)} == {"aten.upsample_bicubic2d.default"}
