"""Long sums over two variables of which the inner one takes a few steps: rows share a block."""

import math

import pytest
import torch

from plumbline.compiler.base.events import Artifact, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.native import compile_graph

pytestmark = pytest.mark.cc


def outer_sums(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x[:, :, None] * y[:, None, :]).sum((1, 2))


def compiled(*inputs: torch.Tensor) -> tuple[torch.Tensor, str]:
    with recording() as events:
        run = compile_graph(trace(outer_sums, inputs), inputs, Options(strict=True, verify=True))
    text = next(event.text for event in events if isinstance(event, Artifact) and event.name == "graph.c")
    (found,) = run(*inputs)
    return found, text


def test_the_rounding_error_is_carried_once_per_block_and_not_per_row() -> None:
    _, text = compiled(torch.ones(2, 64, dtype=torch.float64), torch.ones(2, 64, dtype=torch.float64))
    has_vectors = torch.backends.cpu.get_cpu_capability() != "DEFAULT"  # without them 64 steps are a block
    assert ("_rows += " in text) == has_vectors
    inside_a_row = text.partition("_part = ")[2].partition("_rows += " if has_vectors else "_lost += ")[0]
    assert inside_a_row
    assert "_lost" not in inside_a_row
    assert text.count("_lost +=") == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (64, 60), (33, 130), (200, 5), (7, 300), (2, 1000), (100, 1)])
def test_sums_are_as_exact_as_the_rows_allow(rows: int, columns: int, dtype: torch.dtype) -> None:
    """The error stays within two units of the sum of the absolute values, however many rows there are."""
    x, y = (torch.rand(3, count, dtype=torch.float64).to(dtype) + 0.5 for count in (rows, columns))
    found, _ = compiled(x, y)
    for position in range(3):
        products = (x[position, :, None] * y[position, None, :]).double().flatten().tolist()
        exact = math.fsum(products)
        assert abs(float(found[position]) - exact) <= 2 * torch.finfo(dtype).eps * exact


def test_infinities_and_nans_come_through() -> None:
    x, y = torch.ones(3, 64), torch.ones(3, 64)
    x[0, 5], x[1, 9], y[2, 3] = math.inf, math.nan, -math.inf
    found, _ = compiled(x, y)
    assert found[0] == math.inf
    assert found[1].isnan()
    assert found[2] == -math.inf
