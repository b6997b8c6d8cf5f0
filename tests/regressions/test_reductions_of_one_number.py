"""A reduction of a 0-d tensor was fused into the reduction that made it, and then ran once per element of that one."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

import plumbline
from plumbline.compiler.base.errors import InternalError
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule import alignment
from plumbline.compiler.schedule.schedule import schedule

FIRST = {
    "sum": torch.sum,
    "mean": torch.mean,
    "prod": torch.prod,
    "max": torch.max,
    "min": torch.min,
    "var": torch.var,
    "norm": torch.linalg.vector_norm,
    "logsumexp": lambda x: x.flatten().logsumexp(0),
    "loss": lambda x: F.mse_loss(x, x + 1),
}
SECOND = {
    "sum": torch.sum,
    "mean": torch.mean,
    "prod": torch.prod,
    "max": torch.max,
    "var": lambda x: x.var(correction=0),
    "std": lambda x: x.std(correction=0),
    "norm": torch.linalg.vector_norm,
    "loss": lambda x: F.l1_loss(x, torch.tensor(2.0)),
    "argmax": torch.argmax,
    "softmax": lambda x: x.softmax(0),
}
SHAPES = ((5,), (3, 4), (1,), ())


@pytest.mark.cc
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("first", FIRST)
def test_a_second_reduction_counts_one_number_once(first: str, dynamic: bool) -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        number = FIRST[first](x)
        return [number, *(second(number) for second in SECOND.values())]

    compiled = plumbline.compile(program, backend="inductor", dynamic=dynamic)
    for shape in SHAPES:
        x = torch.rand(shape, generator=torch.Generator().manual_seed(1)) + 0.5
        torch.testing.assert_close(compiled(x), program(x), equal_nan=True)


KEPT: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "one row kept": lambda x: x.sum(1, keepdim=True).sum(1),
    "one row kept, then used": lambda x: x - x.amax(1, keepdim=True).mean(1, keepdim=True),
    "a size of one": lambda x: x.unsqueeze(1).sum(1).sum(0).sum(),
    "three in a row": lambda x: x.sum().mean().sum(),
}


@pytest.mark.cc
@pytest.mark.parametrize("name", KEPT)
def test_sizes_of_one_count_once(name: str) -> None:
    x = torch.rand(4, 3, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(plumbline.compile(KEPT[name], backend="inductor")(x), KEPT[name](x))


def test_verification_sees_a_reduction_that_changed_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "is_sound", lambda mapping, fixed, moving: True)
    program = lower_graph(trace(lambda x: x.sum().sum(), (torch.ones(5),)))
    with pytest.raises(InternalError, match=r"reduces 5 points for .*, not 1"):
        schedule(program, Options(verify=True))
