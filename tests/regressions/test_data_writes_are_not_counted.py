"""A write through `.data` does not raise the version of the tensor: what autograd saved before it stays usable."""

import pytest
import torch

import plumbline


def _shift_data(weight, x):
    weight.data.add_(1)
    return x.sin()


def _shift_detached_data_of_a_view(weight, x):
    weight[1:].detach().data.mul_(2)
    return x.sin()


def _save_then_write_nothing(weight, x):
    saved = torch.maximum(weight, x) + 0
    weight[3:].data.add_(1.0)
    return saved


def _shift_counted(weight, x):
    weight.detach().add_(1)
    return x.sin()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize(
    "program", [_shift_data, _shift_detached_data_of_a_view, _save_then_write_nothing, _shift_counted]
)
def test_versions_and_gradients_are_those_of_eager(program, backend):
    seen = []
    for call in (program, plumbline.compile(program, backend=backend)):
        weight, x = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
        outside = weight * x  # saves both before the call writes
        result = call(weight, x)
        try:
            (result.sum() + outside.sum()).backward()
            outcome = (weight.grad, x.grad)
        except RuntimeError as error:
            outcome = str(error).split(":")[0]
        seen.append((str(outcome), weight._version, weight.detach().tolist()))
    assert seen[0] == seen[1]
