"""The normalisation layers in half precision, with their running statistics, against eager on every backend.

Their statistics have dtypes of their own, which torch's shape rules have got wrong before.
"""

import copy

import pytest
import torch
from torch import nn

import plumbline

pytestmark = pytest.mark.cc
LAYERS = {
    "batch 1d": (lambda: nn.BatchNorm1d(5), (8, 5)),
    "batch 1d sequence": (lambda: nn.BatchNorm1d(5), (4, 5, 3)),
    "batch 2d": (lambda: nn.BatchNorm2d(5), (2, 5, 3, 4)),
    "batch 3d": (lambda: nn.BatchNorm3d(5), (2, 5, 2, 3, 2)),
    "batch, cumulative average": (lambda: nn.BatchNorm1d(5, momentum=None), (8, 5)),
    "batch, no statistics": (lambda: nn.BatchNorm1d(5, track_running_stats=False), (8, 5)),
    "batch, not affine": (lambda: nn.BatchNorm1d(5, affine=False), (8, 5)),
    "instance": (lambda: nn.InstanceNorm1d(5), (2, 5, 7)),
    "instance, statistics": (lambda: nn.InstanceNorm1d(5, affine=True, track_running_stats=True), (2, 5, 7)),
    "instance 2d, statistics": (lambda: nn.InstanceNorm2d(5, track_running_stats=True), (2, 5, 3, 4)),
    "group": (lambda: nn.GroupNorm(3, 6), (4, 6, 5)),
    "layer": (lambda: nn.LayerNorm(6), (4, 6)),
    "root mean square": (lambda: nn.RMSNorm(6), (4, 6)),
    "local response": (lambda: nn.LocalResponseNorm(2), (2, 5, 4)),
}


def after_two_steps(layer: nn.Module, call, inputs) -> dict[str, torch.Tensor]:
    """Return all that two calls leave: outputs, buffers, gradients of parameters and of the input."""
    result = {}
    for number, value in enumerate(inputs):
        leaf = value.detach().clone().requires_grad_()
        output = call(leaf)
        # a plain sum or square of what was normalised has no gradient but noise
        (output.float() * torch.linspace(-1, 2, output.numel()).view(output.shape).cos()).sum().backward()
        result |= {f"output {number}": output.detach(), f"input gradient {number}": leaf.grad}
    result |= {f"gradient {name}": value.grad for name, value in layer.named_parameters()}
    return result | {f"buffer {name}": value.clone() for name, value in layer.named_buffers()}


def assert_as_eager(make, inputs, dtype, backend, *, training=True, parameters=None, dynamic=None) -> None:
    torch.manual_seed(3)
    layer = make().to(parameters or dtype).train(training)
    twin, exact = copy.deepcopy(layer), copy.deepcopy(layer).double()
    expected = after_two_steps(layer, layer, inputs)
    truth = after_two_steps(exact, exact, [value.double() for value in inputs])
    actual = after_two_steps(twin, plumbline.compile(twin, backend=backend, dynamic=dynamic), inputs)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert (actual[name].dtype, actual[name].shape) == (value.dtype, value.shape), name
        if "gradient" in name:  # sums of what nearly cancels: as near to the truth as eager is
            unit = torch.finfo(value.dtype).eps * truth[name].abs().max()
            allowed = 2 * max((value - truth[name]).abs().max(), unit)
            assert (actual[name] - truth[name]).abs().max() <= allowed, name
        else:
            torch.testing.assert_close(actual[name], value, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_half_precision(name: str, dtype: torch.dtype, backend: str, training: bool) -> None:
    make, shape = LAYERS[name]
    inputs = [torch.randn(shape).to(dtype) for _ in range(2)]
    assert_as_eager(make, inputs, dtype, backend, training=training)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["batch 1d", "batch 2d", "instance, statistics", "group", "layer"])
def test_layers_whose_batch_changes(name: str, backend: str) -> None:
    make, shape = LAYERS[name]
    inputs = [torch.randn(length, *shape[1:]).bfloat16() for length in (6, 9, 7)]
    assert_as_eager(make, inputs, torch.bfloat16, backend, dynamic=True)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["batch 1d", "batch 2d", "instance, statistics", "group", "layer"])
def test_half_precision_inputs_of_layers_in_float32(name: str, backend: str) -> None:
    make, shape = LAYERS[name]
    inputs = [torch.randn(shape).bfloat16() for _ in range(2)]
    assert_as_eager(make, inputs, torch.bfloat16, backend, parameters=torch.float32)


def test_corrected_shape_rules_pass_the_checks() -> None:
    layer = nn.BatchNorm1d(5).bfloat16()
    with plumbline.config.patch(verify=True, strict=True):
        plumbline.compile(layer, backend="inductor")(torch.randn(8, 5).bfloat16()).sum().backward()
