"""Batch norm by cuDNN is recorded as torch's own: its schema hides that it writes running statistics."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from plumbline.compiler.graph.graph_interpreter import interpret
from plumbline.compiler.graph.tracer import AtenRecorder

aten = torch.ops.aten
LIBRARY = aten.cudnn_batch_norm.default


def test_its_training_step_is_that_of_torchs_own() -> None:
    mode = FakeTensorMode()
    recorder = AtenRecorder(mode)
    real = [torch.randn(2, 3, 4, 4), torch.rand(3), torch.rand(3), torch.zeros(3), torch.ones(3)]
    with mode:
        fakes = [torch.empty(each.shape, requires_grad=place < 3) for place, each in enumerate(real)]
    for name, fake in zip("xwbmv", fakes, strict=True):
        recorder.add_input(name, fake)
    with mode, recorder:
        results = LIBRARY(*fakes, True, 0.1, 1e-5)
        shown = [results[0].detach(), *torch.autograd.grad(results[0].square().sum(), fakes[:3])]
    gm = recorder.finish(shown)
    called = {str(node.target) for node in gm.graph.nodes}
    assert {"aten._native_batch_norm_legit.default", "aten.native_batch_norm_backward.default"} <= called
    assert not any("cudnn" in each for each in called)
    given = [each.clone() for each in real]
    found = interpret(gm, given)
    leaves = [each.clone().requires_grad_() for each in real[:3]]
    mean, variance = torch.zeros(3), torch.ones(3)
    result = torch.nn.functional.batch_norm(leaves[0], mean, variance, leaves[1], leaves[2], True, 0.1, 1e-5)
    wanted = [result, *torch.autograd.grad(result.square().sum(), leaves)]
    for a, b in zip([*found, *given[3:]], [*wanted, mean, variance], strict=True):
        assert isinstance(a, torch.Tensor)
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def test_without_training_nothing_is_written() -> None:
    mode = FakeTensorMode()
    recorder = AtenRecorder(mode)
    with mode:
        fakes = [torch.empty(2, 3, 4, 4), *(torch.empty(3) for _ in range(4))]
    for name, fake in zip("xwbmv", fakes, strict=True):
        recorder.add_input(name, fake)
    with mode, recorder, torch.no_grad():
        results = LIBRARY(*fakes, False, 0.1, 1e-5)
    assert [tuple(each.shape) for each in results] == [(2, 3, 4, 4), (0,), (0,), (0,)]
    assert "aten.native_batch_norm.default" in {str(node.target) for node in recorder.graph.nodes}
