"""Images of dynamic sizes that are resized by a factor broke the graph; a backward of one image told of a failure."""

import pytest
import torch
from torch.nn.functional import interpolate

import plumbline

MODES = {"bilinear": 2, "bicubic": 2, "nearest": 2, "linear": 1, "trilinear": 3}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("mode", MODES)
def test_it_is_one_graph_with_eagers_layout(mode: str, count: int, capfd: pytest.CaptureFixture[str]) -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return interpolate(x, scale_factor=2.0, mode=mode)

    compiled = plumbline.compile(doubled, backend="aot_eager", dynamic=True, fullgraph=True, options={"strict": True})
    orders = [torch.contiguous_format, *([torch.channels_last] if MODES[mode] == 2 else [])]
    for sizes, order in [((6, 4, 5), orders[0]), ((7, 5, 9), orders[-1])]:
        x = torch.randn(count, 3, *sizes[: MODES[mode]]).contiguous(memory_format=order)
        ours, eagers = x.clone().requires_grad_(), x.clone().requires_grad_()
        result, expected = compiled(ours), doubled(eagers)
        assert torch.equal(result, expected)
        assert result.stride() == expected.stride()
        for tensor, leaf in ((result, ours), (expected, eagers)):
            tensor.square().sum().backward()
            assert leaf.grad is not None
        torch.testing.assert_close(ours.grad, eagers.grad)
        assert ours.grad.stride() == eagers.grad.stride()
    assert capfd.readouterr().err == ""
