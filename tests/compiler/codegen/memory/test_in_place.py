"""Results that take the memory of a tensor that ends: which may, what the host and the C say, and the same answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.codegen.host import write_host
from plumbline.compiler.codegen.memory.in_place import with_results_in_place
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.native import compile_graph
from plumbline.compiler.schedule.execution_plan import ExecutionPlan, plan_execution
from plumbline.compiler.schedule.schedule import schedule

AVX512 = 64


def planned(function: Callable[..., object], *inputs: torch.Tensor, vector_bytes: int = AVX512) -> ExecutionPlan:
    plan = plan_execution(schedule(lower_graph(trace(function, inputs)), Options()))
    return with_results_in_place(plan, vector_bytes)


def square(size: int = 128) -> torch.Tensor:
    return torch.randn(size, size)


def test_a_pointwise_result_takes_the_product_that_ends() -> None:
    plan = planned(lambda x: (x @ x).relu(), square())
    ((new, old),) = plan.in_place.items()
    assert f"v_{new} = v_{old}\n" in write_host(plan).text


def test_a_result_of_another_shape_is_the_same_memory_seen_otherwise() -> None:
    plan = planned(lambda x: (x @ x).view(4, 32, 128).relu() @ x, square())
    ((new, old),) = plan.in_place.items()
    assert f"v_{new} = v_{old}.as_strided((4, 32, 128), (4096, 128, 1))\n" in write_host(plan).text


REFUSED: dict[str, tuple[Callable[..., object], tuple[torch.Tensor, ...]]] = {
    "an input belongs to the caller": (lambda x: x + 1, (square(),)),
    "the product is read again later": (lambda x: (lambda y: (y.relu() @ x, y @ x))(x @ x), (square(),)),
    "the product is given out": (lambda x: (lambda y: (y, y.relu()))(x @ x), (square(),)),
    "a view of the product is given out": (lambda x: (lambda y: (y.t(), y.relu()))(x @ x), (square(),)),
    "a call gives pieces of the product without saying so": (
        lambda x: (lambda y: (torch.ops.aten.unsafe_split.Tensor(y, 64)[0] @ x, y.relu()))(x @ x),
        (square(),),
    ),
    "elements are read elsewhere": (lambda x: (x @ x).t().relu().contiguous(), (square(),)),
    "elements are read twice": (lambda x: (lambda y: y + y.flip(0))(x @ x), (square(),)),
    "the result is smaller": (lambda x: (x @ x)[:64].relu(), (square(),)),
    "the result has another dtype": (lambda x: (x @ x).double(), (square(),)),
    "the last step of vectors overlaps": (lambda x: (x @ x).relu(), (square(129),)),
    "little is gained": (lambda x: (x @ x).relu(), (square(2),)),
    "the caller would get a view": (lambda x: (x @ x).view(4, 32, 128).relu(), (square(),)),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_it_is_refused_where(name: str) -> None:
    function, inputs = REFUSED[name]
    assert planned(function, *inputs).in_place == {}


def test_an_element_at_a_time_overlaps_nothing() -> None:
    assert planned(lambda x: (x @ x).relu(), square(129), vector_bytes=4).in_place


PASSES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "softmax": lambda x: (x @ x).softmax(1) @ x,
    "layer norm": lambda x: torch.nn.functional.layer_norm(x @ x, (128,)) @ x,
    "the sum of columns": lambda x: (lambda y: (y + y.sum(0)) @ x)(x @ x),
    "one result in the first pass, one in the last": lambda x: (
        lambda y: (y * 2) @ x + (y - y.exp().sum(1, keepdim=True)) @ x
    )(x @ x),
    "the sum of columns beside": lambda x: (lambda y: (y * y.exp()) @ x + (y * y.exp()).sum(0))((x @ x).tanh()),
}


@pytest.mark.parametrize("name", sorted(PASSES))
def test_rows_that_passes_read_are_overwritten_by_the_last(name: str) -> None:
    x = square() / 20
    assert planned(PASSES[name], x).in_place
    compiled = compile_graph(trace(PASSES[name], (x,)), [x], Options(strict=True))
    torch.testing.assert_close(compiled(x)[0], PASSES[name](x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("size", [128, 129])
def test_what_other_stores_read_is_read_before(size: int) -> None:
    """Two results of one kernel: the one in place is written last, whichever comes first in the program."""

    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x @ x
        first = y.sigmoid()
        return first @ x, (y * first + y).cos() @ x, first

    x = square(size) / 10
    for found, expected in zip(
        compile_graph(trace(program, (x,)), [x], Options(strict=True))(x), program(x), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
