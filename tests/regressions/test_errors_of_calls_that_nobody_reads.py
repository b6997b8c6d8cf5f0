"""A call that eager refuses for its dtypes was dropped without an error where nobody read its result.

`select_scatter` and `slice_scatter` with parts that do not fit gave results, and wrote elsewhere in generated code.
"""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

import plumbline

REFUSED: dict[str, Callable[[torch.Tensor], object]] = {
    "logcumsumexp of bytes": lambda x: torch.logcumsumexp(x.byte(), 0),
    "std of whole numbers": lambda x: x.long().std(),
    "product of truths": lambda x: x.bool() @ x.bool().T,
    "convolution of truths": lambda x: functional.conv1d(x[None].bool(), x[None].bool()),
    "sorted complex numbers": lambda x: x.to(torch.complex64).sort(),
    "shifted complex numbers": lambda x: torch.bitwise_right_shift(x.to(torch.complex64), -2.0),
    "select_scatter out of range": lambda x: torch.select_scatter(x, x[0], 0, 9),
    "as_strided_scatter beyond the memory": lambda x: torch.as_strided_scatter(x, x[:2, :2], (2, 2), (6, 1), 6),
    "slice_scatter of other sizes": lambda x: torch.slice_scatter(x, x[:1], 0, 0, 2),
}
BACKENDS = ["aot_eager", pytest.param("inductor", marks=pytest.mark.cc)]


@pytest.mark.parametrize("read", [False, True])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REFUSED)
def test_eagers_error_is_raised(name: str, backend: str, read: bool) -> None:
    def f(x: torch.Tensor) -> object:
        result = REFUSED[name](x)
        return result if read else x + 1

    x = torch.ones(3, 4)
    with pytest.raises((RuntimeError, IndexError, TypeError)) as expected:
        f(x)
    with pytest.raises(expected.type) as actual:
        plumbline.compile(f, backend=backend)(x)
    assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize("backend", BACKENDS)
def test_parts_that_fit(backend: str) -> None:
    def f(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.select_scatter(x, x[0], 0, -1), torch.slice_scatter(x, x[:1], 0, 1, 2)

    x = torch.arange(12.0).view(3, 4)
    for actual, expected in zip(plumbline.compile(f, backend=backend)(x), f(x), strict=True):
        assert torch.equal(actual, expected)


@pytest.mark.parametrize("call", [torch.mm, torch.matmul, lambda x, y: torch.vmap(torch.mv)(x[None], y[:, :1].mT)])
def test_a_product_of_two_dtypes_that_nobody_reads(call):
    def program(x, y):
        call(x, y)
        return x + 1

    x, y = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.float64)
    with pytest.raises(RuntimeError) as eagers:
        program(x, y)
    with pytest.raises(RuntimeError) as ours:
        plumbline.compile(program, backend="aot_eager")(x, y)
    assert str(ours.value) == str(eagers.value)


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("like", [torch.zeros_like, lambda x: x.new_ones(x.shape), lambda x: torch.empty_like(x) * 0])
def test_a_call_of_which_only_the_size_is_read(like, backend):
    def program(x, places):
        return like(x[places].exp() + 1)

    x, places = torch.ones(2), torch.tensor([10, 1])
    compiled = plumbline.compile(program, backend=backend)
    assert compiled(x, torch.tensor([0, 1])).shape == (2,)
    with pytest.raises(IndexError) as eagers:
        program(x, places)
    with pytest.raises(IndexError) as ours:
        compiled(x, places)
    assert str(ours.value) == str(eagers.value)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(2,), ()])
def test_an_unread_batch_norm_without_channels(shape, training):
    def program(x):
        torch.batch_norm(x, None, None, torch.ones(1), torch.ones(1), training, 0.1, 1e-5, False)
        return x + 1

    with pytest.raises((IndexError, RuntimeError)) as eagers:
        program(torch.ones(shape))
    with pytest.raises(eagers.type) as ours:
        plumbline.compile(program, backend="aot_eager")(torch.ones(shape))
    assert str(ours.value) == str(eagers.value)


VARYING: dict[str, Callable[[torch.Tensor, float], object]] = {
    "softshrink": functional.softshrink,  # takes no negative number at all
    "end of a range": lambda x, n: torch.linspace(0, n, 3),
    "end of a range of another dtype": lambda x, n: torch.logspace(n, 0, 3, dtype=torch.half),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", VARYING)
def test_a_number_that_varies_until_eager_refuses_it(name: str, backend: str) -> None:
    def program(x: torch.Tensor, n: float) -> torch.Tensor:
        VARYING[name](x, n)
        return x + 1

    compiled = plumbline.compile(program, backend=backend)
    x = torch.ones(3)
    for n in (0.25, 0.5, -0.5, 1e39, -1e39, 0.75):
        assert outcome(compiled, x, n) == outcome(program, x, n)


def outcome(call: Callable[[torch.Tensor, float], torch.Tensor], x: torch.Tensor, n: float) -> object:
    try:
        return call(x, n).tolist()
    except RuntimeError as error:
        return str(error)
