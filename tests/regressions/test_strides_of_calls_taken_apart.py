"""Results of calls, also of those taken apart for loops, lie in memory as their kernels lay them out."""

import itertools

import pytest
import torch
from torch.nn import functional

import plumbline

LAYOUTS = [(6, 3, 3, 1), (6, 3, 6, 1), (1, 12, 4, 4), (1, 4, 99, 8), (3, 12, 3, 1)]
LOSSES = [
    functional.mse_loss,
    functional.smooth_l1_loss,
    functional.huber_loss,
    functional.binary_cross_entropy_with_logits,
]


def laid_out(steps):
    x = torch.empty_strided((4, 2, 1, 3), steps)
    return x.copy_(torch.arange(24.0).reshape(4, 2, 1, 3) / 24)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_losses_without_a_reduction(loss, backend):
    pairs = [(laid_out(first), laid_out(second)) for first, second in itertools.product(LAYOUTS, LAYOUTS)]

    def program(pairs):
        return [loss(x, y, reduction="none") for x, y in pairs]

    expected = program(pairs)
    results = plumbline.compile(program, backend=backend, dynamic=False)(pairs)
    assert [result.stride() for result in results] == [result.stride() for result in expected]
    for result, other in zip(results, expected, strict=True):
        torch.testing.assert_close(result, other)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("call", [functional.hardswish, lambda x: functional.unfold(x, 1)], ids=["hardswish", "unfold"])
def test_calls_on_one_operand(call, backend):
    def program(operands):
        return [call(x) for x in operands]

    operands = [laid_out(steps) for steps in LAYOUTS]
    results = plumbline.compile(program, backend=backend, dynamic=False)(operands)
    assert [result.stride() for result in results] == [result.stride() for result in program(operands)]
