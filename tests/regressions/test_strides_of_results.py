"""Results lie in memory as eager's do where torch's shape rules say another order: a program sees it in `stride()`."""

import pytest
import torch

import plumbline

A, B = torch.arange(20.0).reshape(5, 1, 4).permute(2, 1, 0), torch.arange(15.0).reshape(5, 3).t() + 1
FUNCTIONS = {
    "pow": lambda: 2**A,
    "pow of integers": lambda: 2 ** A.long(),
    "logical_and": lambda: torch.logical_and(A, B),
    "logaddexp": lambda: torch.logaddexp(A, B),
    "heaviside": lambda: torch.heaviside(A, B),
    "copysign": lambda: torch.copysign(A, B),
    "floor_divide": lambda: A // B,
    "rounded division": lambda: torch.div(A, B, rounding_mode="trunc"),
    "xlogy": lambda: torch.xlogy(A, B),
    "ldexp": lambda: torch.ldexp(A, B),
    "logsigmoid": lambda: torch.nn.functional.logsigmoid(A),
    "batch_norm": lambda: torch.nn.functional.batch_norm(A.expand(4, 3, 5), None, None, training=True),
    "channel_shuffle": lambda: torch.channel_shuffle(torch.ones(2, 3, 3, 4).permute(0, 3, 1, 2), 2),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_eager(name, backend):
    def seen():
        result = FUNCTIONS[name]()
        return result, result.stride(), torch.zeros_like(result), result.is_contiguous()

    expected, *facts = seen()
    actual, *found = plumbline.compile(seen, backend=backend)()
    torch.testing.assert_close(actual, expected, check_stride=True)
    assert [item.stride() if isinstance(item, torch.Tensor) else item for item in found] == [
        item.stride() if isinstance(item, torch.Tensor) else item for item in facts
    ]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_no_dimensions_are_all_of_them(backend):
    def reduced(x):
        total = torch.nansum(x, ())
        return total * 2, total.dim(), torch.nansum(x, (), keepdim=True)

    actual, expected = plumbline.compile(reduced, backend=backend)(A), reduced(A)
    assert actual[1] == expected[1]
    torch.testing.assert_close(actual, expected)
