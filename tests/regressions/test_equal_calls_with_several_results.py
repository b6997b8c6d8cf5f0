"""Two equal calls with several results became one, so that the caller got one tensor twice."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

import plumbline
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.passes import SIMPLIFY, run_passes
from plumbline.compiler.graph.tracer import trace

OPERATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "layer_norm": lambda x: F.layer_norm(x, (4,)),
    "group_norm": lambda x: F.group_norm(x, 2),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "max": lambda x: x.max(1).values,
    "indices": lambda x: x.max(1).indices,
    "sort": lambda x: x.sort(1).values,
    "topk": lambda x: x.topk(2).values,
    "var_mean": lambda x: torch.var_mean(x, 1)[0],
    "svd": lambda x: torch.linalg.svd(x).S,
    "split copies": lambda x: torch.split_copy(x, 2)[0],
    "a view of a result": lambda x: x.max(1).values[1:],
}
X = torch.rand(4, 4, generator=torch.Generator().manual_seed(3))


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_each_result_is_a_tensor_of_its_own(name: str, backend: str) -> None:
    operation = OPERATIONS[name]
    first, second, third = plumbline.compile(
        lambda x: (operation(x), operation(x), operation(x) + 1), backend=backend, fullgraph=True
    )(X)
    wanted = operation(X).clone()
    first.zero_()
    torch.testing.assert_close(second, wanted)
    torch.testing.assert_close(third, wanted + 1)


@pytest.mark.cc
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_a_write_after_a_break_changes_one_result(backend: str) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = F.layer_norm(x, (4,)), F.layer_norm(x, (4,))
        plumbline.graph_break()
        first.add_(1)
        return first, second

    for result, wanted in zip(plumbline.compile(program, backend=backend)(X), program(X), strict=True):
        torch.testing.assert_close(result, wanted)


@pytest.mark.cc
def test_a_write_inside_the_graph_changes_one_result() -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = x.max(1).values, x.max(1).values
        first.mul_(2)
        return first, second * 1

    for backend in ("aot_eager", "inductor"):
        torch.testing.assert_close(plumbline.compile(program, backend=backend)(X), program(X))


def test_equal_calls_that_give_out_different_results_are_one() -> None:
    gm = run_passes(trace(lambda x: (x.max(1).values, x.max(1).indices), (X,)), SIMPLIFY, Options(verify=True))
    assert [node.target for node in gm.graph.nodes].count(torch.ops.aten.max.dim) == 1
