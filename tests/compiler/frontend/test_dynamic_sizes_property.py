"""Random programs of sizes and numbers, called with random sizes: compiled is eager's answer, whatever became a symbol.

Sizes 0 and 1, batches inside a tensor, transposed inputs and changing numbers are among the calls.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import plumbline

Tensor = torch.Tensor
Step = Callable[[Tensor, Any], Tensor]
STEPS: list[Step] = [
    lambda a, k: a * a.shape[0] + k,
    lambda a, k: a[: a.shape[0] // 2 + 1],
    lambda a, k: a.t(),
    lambda a, k: a.reshape(-1, a.shape[0]),
    lambda a, k: a.reshape(a.shape[1], a.shape[0]) * k,
    lambda a, k: torch.cat([a, a + k]),
    lambda a, k: a[a.shape[0] // 2].unsqueeze(0) + a if a.shape[0] else a,
    lambda a, k: a * 2 if a.shape[0] % 2 else a * 3,
    lambda a, k: a + torch.arange(a.shape[1]),
    lambda a, k: torch.zeros(a.shape[0] + 1, a.shape[1]) + a.sum() * k,
    lambda a, k: a / (a.numel() + 1) + math.floor(a.shape[0] / 3),
    lambda a, k: a if k > 2 else a - round(a.shape[1] / 2),
    lambda a, k: a.expand(2, *a.shape).flatten(0, 1),
    lambda a, k: a.clone().index_fill_(0, torch.tensor(0), 5.0) if a.shape[0] > 1 else a,
    lambda a, k: a * (k * 0.1 * 3) + divmod(a.shape[0], 3)[1],
    lambda a, k: a.view(a.shape[0], -1) if a.is_contiguous() else a.contiguous(),
]
SIZE = st.sampled_from([0, 1, 2, 3, 4, 5, 8, 17])
KINDS = ("plain", "inside", "transposed", "gaps")


def made(kind: str, rows: int, columns: int) -> Tensor:
    whole = torch.arange(400.0).reshape(20, 20) % 7 - 3
    if kind == "inside":
        return torch.arange(1000.0)[3 : 3 + rows * columns].reshape(rows, columns) % 5
    if kind == "transposed":
        return whole[:columns, :rows].contiguous().t()
    return whole[:rows, :columns] if kind == "gaps" else whole[:rows, :columns].clone()


CALLS = st.lists(
    st.tuples(st.sampled_from(KINDS), SIZE, SIZE, st.sampled_from([2, 3, -1, 2.5, 0.1, 7.25])), min_size=2, max_size=5
)


def check(backend: str, dynamic: bool | None, steps: list[int], calls: list[tuple[str, int, int, Any]]) -> None:
    def function(a: Tensor, k: Any) -> tuple[Any, ...]:
        for step in steps:
            a = STEPS[step](a, k)
        return a, a.shape[0], a.shape, k * 2

    compiled = plumbline.compile(function, backend=backend, dynamic=dynamic)
    for kind, rows, columns, k in calls:
        given_tensor = made(kind, rows, columns)
        try:
            wanted: Any = function(given_tensor, k)
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(given_tensor, k)
            continue
        found = compiled(given_tensor, k)
        assert torch.equal(found[0], wanted[0])
        assert found[0].dtype == wanted[0].dtype
        assert (found[1:], list(map(type, found[1:]))) == (wanted[1:], list(map(type, wanted[1:])))


STEPS_DRAWN = st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=4)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dynamic=st.sampled_from([None, True]), steps=STEPS_DRAWN, calls=CALLS)
def test_captured_programs(dynamic: bool | None, steps: list[int], calls: list[tuple[str, int, int, Any]]) -> None:
    check("eager", dynamic, steps, calls)


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dynamic=st.sampled_from([None, True]), steps=STEPS_DRAWN, calls=CALLS)
def test_traced_programs(dynamic: bool | None, steps: list[int], calls: list[tuple[str, int, int, Any]]) -> None:
    check("aot_eager", dynamic, steps, calls)
