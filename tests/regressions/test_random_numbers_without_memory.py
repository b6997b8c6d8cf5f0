"""Random operators on the meta device draw nothing: there is no generator to put back."""

import pytest
import torch

import plumbline


def skipped_initialisation(x):
    return x * torch.nn.utils.skip_init(torch.nn.Linear, 2, 2).weight.shape[0]


def made(x):
    return torch.randn(3, device="meta").shape[0] + x


def written(x):
    return torch.empty(3, device="meta").normal_().shape[0] + x


def dropped(x):
    return torch.nn.functional.dropout(torch.empty(3, device="meta")).shape[0] + x


def beside_real_ones(x):
    return torch.nn.functional.dropout(torch.empty(3, device="meta")).shape[0] + x * torch.rand(2)


PROGRAMS = [skipped_initialisation, made, written, dropped, beside_real_ones]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_eager(program, backend):
    torch.manual_seed(0)
    wanted, following = program(torch.ones(2)), torch.rand(2)
    torch.manual_seed(0)
    found = plumbline.compile(program, backend=backend)(torch.ones(2))
    assert torch.equal(found, wanted)
    assert torch.equal(torch.rand(2), following)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_a_model_on_the_meta_device(backend):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout()).to("meta")
    result = plumbline.compile(model, backend=backend)(torch.ones(3, 2, device="meta"))
    assert result.shape == (3, 2)
    assert result.device.type == "meta"
