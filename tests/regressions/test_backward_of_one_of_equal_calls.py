"""A backward of fewer results reads what the forward kept, also where it computes one of two equal calls again."""

import pytest
import torch

import plumbline
from support.torch_release import SAVED_TENSORS_ARE_READ_ONE_BY_ONE


def twice(x):
    first, second = torch.erfinv(x), torch.erfinv(x)
    return second, torch.nn.functional.logsigmoid(first)


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("asked", [(0,), (1,), (0, 1)])
def test_each_result_alone_has_its_gradient(backend, asked):
    x = torch.linspace(-0.9, 0.9, 65).requires_grad_()
    found, expected = (
        torch.autograd.grad([function(x)[place].sum() for place in asked], x)
        for function in (plumbline.compile(twice, backend=backend), twice)
    )
    torch.testing.assert_close(found, expected)


def kept_and_seen(x):
    result = torch.erfinv(x)
    return result, result.sin()


@pytest.mark.cc
@pytest.mark.skipif(not SAVED_TENSORS_ARE_READ_ONE_BY_ONE, reason="a write to one result ends the backward of others")
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize(("function", "count"), [(twice, 2), (kept_and_seen, 2)])
def test_a_result_may_be_written_to_before_the_backward_where_eager_lets_it(backend, function, count):
    def outcome(called, asked, written):
        x = torch.linspace(-0.9, 0.9, 65).requires_grad_()
        results = called(x)
        with torch.no_grad():
            results[written].zero_()
        try:
            return torch.autograd.grad(results[asked].sum(), x)[0]
        except RuntimeError as error:
            return str(error).partition(":")[0]

    for asked in range(count):
        for written in range(count):
            compiled = plumbline.compile(function, backend=backend)
            found, expected = outcome(compiled, asked, written), outcome(function, asked, written)
            if isinstance(expected, str):
                assert found == expected
            else:
                torch.testing.assert_close(found, expected)
