"""Calls that eager refuses for their arguments: compiled code raises the same, also where nobody reads the result."""

import pytest
import torch
from torch.nn import functional

import plumbline

REFUSED = {
    "squeeze": lambda x: x.squeeze((0, -2)),
    "squeeze of one": lambda x: x[:1].squeeze((0, 0)),
    "squeeze beyond": lambda x: x.squeeze((0, 5)),
    "unsqueeze": lambda x: x.unsqueeze(7),
    "flip": lambda x: x.flip((0, -2)),
    "permute": lambda x: x.permute(0, -2),
    "permute of one": lambda x: x.permute(0),
    "movedim": lambda x: x.movedim((0, -2), (0, 1)),
    "transpose": lambda x: x.transpose(0, 4),
    "sum": lambda x: x.sum((0, -2)),
    "amax": lambda x: x.amax((0, -2)),
    "any": lambda x: x.any((0, -2)),
    "logsumexp": lambda x: x.logsumexp((0, -2)),
    "logsumexp of none": lambda x: x.logsumexp(()),
    "norm": lambda x: x.norm(2, (0, -2)),
    "count_nonzero": lambda x: x.count_nonzero((0, -2)),
    "roll": lambda x: x.roll((1,), (5,)),
    "select": lambda x: x.select(0, 5),
    "narrow": lambda x: x.narrow(0, 1, 4),
    "diagonal": lambda x: x.diagonal(0, 0, -2),
    "unfold": lambda x: x.unfold(0, 5, 1),
    "unfold of less than nothing": lambda x: x.unfold(0, -1, 1),
    "unfold in no steps": lambda x: x.unfold(0, 1, 0),
    "split": lambda x: x.split((1, 2)),
    "chunk": lambda x: x.chunk(0),
    "unflatten": lambda x: x.unflatten(0, (3, -1)),
    "view": lambda x: x.view(4, -1),
    "view of strides": lambda x: x.t().view(6),
    "expand": lambda x: x.expand(3, 3),
    "cat": lambda x: torch.cat([x, x[:, :2]]),
    "stack": lambda x: torch.stack([x, x[:1]]),
    "softmax": lambda x: x.softmax(4),
    "log_softmax": lambda x: x.log_softmax(-3),
    "cumsum": lambda x: x.cumsum(4),
    "sort": lambda x: x.sort(4),
    "stable sort": lambda x: x.sort(dim=4, stable=True),
    "argsort": lambda x: x.argsort(2),
    "topk": lambda x: x.topk(9),
    "kthvalue": lambda x: x.kthvalue(0),
    "gather": lambda x: x.gather(0, torch.zeros(1, 1, 1, dtype=torch.long)),
    "tril": lambda x: x[0].tril(),
    "mm": lambda x: x @ x,
    "cross": lambda x: torch.linalg.cross(x.t(), x.t()),
    "repeat": lambda x: x.repeat(2),
    "pad": lambda x: functional.pad(x, (0, -5)),
    "reflection": lambda x: functional.pad(x, (5, 5), mode="reflect"),
    "amax of nothing": lambda x: x[:0].amax(),
    "searchsorted in a number": lambda x: torch.searchsorted(x[0, 0], x),
    "searchsorted of a number": lambda x: torch.searchsorted(x, x[0, 0]),
    "bucketize": lambda x: torch.bucketize(x, x),
    "glu": lambda x: functional.glu(x),
    "where": lambda x: torch.where(x > 0, x, x[:, :2]),
    "masked_fill": lambda x: x.masked_fill(x > 0, torch.ones(2)),
    "add_": lambda x: x[0].clone().add_(x),
    "arange": lambda x: torch.arange(0, 5, -1),
    "arange of truth values": lambda x: torch.arange(0, 5, dtype=torch.bool),
    "linspace of truth values": lambda x: torch.linspace(0, 5, 3, dtype=torch.bool),
    "full of half precision": lambda x: torch.full((2,), 70000, dtype=torch.float16),
    "full of bytes": lambda x: torch.full(tuple(x.shape), 2147483648, dtype=torch.uint8),
    "full_like": lambda x: torch.full_like(x, 1e39),
    "new_full": lambda x: x.new_full((2,), 300, dtype=torch.int8),
    "fill_": lambda x: x.half().fill_(-65505),
    "scalar_tensor": lambda x: torch.scalar_tensor(1e39),
    "scatter": lambda x: x.half().scatter(0, torch.zeros(1, 1, dtype=torch.long), 7e4),
    "value of a pad": lambda x: functional.pad(x.half(), (1, 1), value=7e4),
    "masked_fill beyond": lambda x: x.masked_fill(x > 0, 1e39),
    "where beyond": lambda x: torch.where(x > 0, x, 1e39),
    "clamp beyond": lambda x: x.clamp(min=1e39),
}
TAKEN = {
    "one element of half precision": lambda x: torch.full((1,), 70000, dtype=torch.float16),
    "infinity": lambda x: torch.full((2,), float("inf"), dtype=torch.float16),
    "the greatest": lambda x: x.half().masked_fill(x > 0, 65504),
    "a tensor without memory": lambda x: x + torch.full((2,), 300, dtype=torch.uint8, device="meta").numel(),
    "negative bytes": lambda x: torch.full((2,), -255, dtype=torch.uint8),
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_eager_refuses_is_refused_though_nobody_reads_it(name, dynamic):
    def program(x):
        REFUSED[name](x)
        return x * 2

    with pytest.raises(Exception) as eager:  # noqa: PT011  whatever it is
        program(torch.ones(2, 3))
    compiled = plumbline.compile(program, backend="aot_eager", dynamic=dynamic or None)
    with pytest.raises(eager.type):
        compiled(torch.ones(2, 3))


@pytest.mark.parametrize("name", TAKEN)
def test_numbers_that_eager_takes_are_taken(name):
    x = torch.ones(2, 3)
    assert torch.equal(plumbline.compile(TAKEN[name], backend="aot_eager")(x), TAKEN[name](x))


@pytest.mark.cc
@pytest.mark.parametrize(
    "fill", [lambda x, n: x.masked_fill(x > 0, n), lambda x, n: torch.full((2,), n, dtype=x.dtype)], ids=["mask", "new"]
)
@pytest.mark.parametrize("numbers", [(1.0, 2.0, 65504.0, 7e4, 3.0, -7e4), (1, 2, 300, 70000, 5)], ids=["float", "int"])
def test_a_number_that_varies_leaves_the_range_of_half_precision(fill, numbers):
    compiled = plumbline.compile(fill, backend="inductor")
    x = torch.ones(2, dtype=torch.float16)
    for number in numbers:
        if abs(number) > 65504:
            with pytest.raises(RuntimeError, match="without overflow"):
                compiled(x, number)
        else:
            assert torch.equal(compiled(x, number), fill(x, number))
