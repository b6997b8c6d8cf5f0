"""A backward read what the caller had been given, so that a write to it ended the backward where eager's went on."""

import pytest
import torch

import plumbline
from support.overwritten_results import EQUAL, RAISED, outcome
from support.torch_release import SAVED_TENSORS_ARE_READ_ONE_BY_ONE


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_quotient_is_not_kept_for_its_own_backward(backend):
    """Eager's formula divides once more; the equal division of the forward is the caller's."""

    def gradients(call):
        x, y = torch.full((3,), 3.0, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
        result = call(x, y)
        result += 5
        return torch.autograd.grad(result.sum(), (x, y))

    compiled = plumbline.compile(lambda x, y: x / y, backend=backend)
    torch.testing.assert_close(gradients(compiled), gradients(lambda x, y: x / y))


@pytest.mark.parametrize(
    "name",
    [
        "div.no_rounding_mode", "nn.functional.normalize", "nn.functional.local_response_norm",
        "nn.functional.softsign", "erfinv", "masked.normalize", "exp", "sigmoid", "softmax", "native_layer_norm",
    ],
)  # fmt: skip
def test_a_write_to_a_result_ends_the_backward_where_eagers_ends(name):
    assert outcome(name, "aot_eager") in (EQUAL, RAISED)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_saved_value_is_not_the_equal_one_that_the_caller_gets(backend):
    def program(x):
        return x.exp().sin().sum(), x.exp()

    def gradient(call):
        x = torch.linspace(-1, 1, 3, requires_grad=True)
        total, result = call(x)
        with torch.no_grad():
            result.fill_(7)
        return torch.autograd.grad(total, x)[0]

    compiled = plumbline.compile(program, backend=backend)
    if not SAVED_TENSORS_ARE_READ_ONE_BY_ONE:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            gradient(compiled)
        return
    torch.testing.assert_close(gradient(compiled), gradient(program))
