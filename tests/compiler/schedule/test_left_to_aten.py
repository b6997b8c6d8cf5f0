"""Who runs each step of a graph is on record, with one of a fixed set of reasons; the lists of tests only shrink."""

import tomllib
from collections.abc import Callable

import pytest
import torch

from plumbline.compiler import api
from plumbline.compiler.base.config import CONFIG
from plumbline.compiler.base.events import FellBack, KernelLaunched, LeftStep, StepsAssigned, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Extern
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.lowering.registry import lowering_of
from plumbline.compiler.native import compile_graph
from plumbline.compiler.runtime.triton_interpreter import why_unavailable
from plumbline.compiler.schedule.left_to_aten import Reason, reason_of
from support.triton_account import LIST, fallbacks, not_allowed

aten = torch.ops.aten
needs_triton = pytest.mark.skipif(bool(why_unavailable()), reason=f"no kernel is interpreted: {why_unavailable()}")
X = torch.rand(4, 4)
PLACES = torch.tensor([[0, 1, 0, 2]])
PROGRAMS: dict[Reason, Callable[..., object]] = {
    Reason.VIEW: lambda x, i: x.t(),
    Reason.EMPTY: lambda x, i: (torch.empty_like(x), x + 1)[1].copy_(x),
    Reason.DRAW: lambda x, i: torch.bernoulli(x),
    Reason.WRITE: lambda x, i: x.add_(1),
    Reason.PRODUCT: lambda x, i: x @ x,
    Reason.ORDER: lambda x, i: x.sort()[0],
    Reason.SCAN: lambda x, i: x.cumsum(0),
    Reason.SCATTER: lambda x, i: x.scatter_add(0, i, x[:1]),
    Reason.LINEAR_ALGEBRA: lambda x, i: torch.linalg.inv(x),
    Reason.UNHELD: lambda x, i: torch.complex(x, x).abs(),
    Reason.FORM: lambda x, i: torch.prod(x.half()),
    Reason.UNWRITTEN: lambda x, i: torch.special.i0(x),
}


@pytest.mark.parametrize("reason", PROGRAMS, ids=lambda reason: reason.name)
def test_reasons(reason: Reason) -> None:
    program = lower_graph(trace(PROGRAMS[reason], (X.clone(), PLACES)))
    assert reason in {reason_of(step) for step in program.steps if isinstance(step, Extern)}


@pytest.mark.cc
@pytest.mark.parametrize("language", ["c", pytest.param("triton", marks=needs_triton)])
def test_what_runs_a_graph_is_on_record(language: str) -> None:
    gm = trace(lambda x: ((x + 1).softmax(-1) @ x).cumsum(0) * 2, (X,))
    with recording() as events:
        compile_graph(gm, (X,), Options(strict=True, kernel_language=language))(X)
    (assigned,) = [event for event in events if isinstance(event, StepsAssigned)]
    assert assigned.language == language
    assert len(assigned.launched) == 2
    scans = [] if language == "triton" else [("aten.cumsum.default", "SCAN")]
    assert [(step.operation, step.reason) for step in assigned.left] == [("aten.mm.default", "PRODUCT"), *scans]
    launched = [event.name for event in events if isinstance(event, KernelLaunched)]
    assert launched == (list(assigned.launched) if language == "triton" else []), "C's launches are not on record"


@needs_triton
def test_explain_tells_it_where_triton_is_asked_for() -> None:
    assert "launches" not in str(api.explain(lambda x: x.relu() @ x, X))
    with CONFIG.patch(kernel_language="triton"):
        story = api.explain(lambda x: x.relu() @ x, X)
    assert len(story.steps) == 1
    assert "1 launches of 1 kernels in triton; left to ATen: aten.mm.default (PRODUCT)" in str(story)


def test_every_kind_of_fallback_is_a_fault() -> None:
    good = StepsAssigned("triton", ("pointwise_1", "row_2"), ())
    ran = [KernelLaunched("pointwise_1", 4), KernelLaunched("row_2", 1)]
    assert not list(fallbacks([good, *ran]))
    assert not list(fallbacks([good, *ran, *ran], calls=2))
    planted = {
        "no graph was compiled": ran,
        "op by op": [good, *ran, FellBack("graph", "no Triton")],
        "kernels are in c": [StepsAssigned("c", good.launched, ()), *ran],
        "launched were": [good, ran[0]],
        "launched were ['row_2', 'pointwise_1']": [good, *ran[::-1]],
        "left to ATen": [StepsAssigned("triton", good.launched, (LeftStep("aten.relu.default", "FORM", "no"),)), *ran],
    }
    for word, events in planted.items():
        faults = list(fallbacks(events))
        assert faults, word
        assert word in faults[0]


def test_views_and_draws_need_no_row() -> None:
    assert not list(not_allowed([LeftStep("aten.view.default", "VIEW", ""), LeftStep("aten.rand.default", "DRAW", "")]))
    assert list(not_allowed([LeftStep("aten.view.default", "UNWRITTEN", "no lowering")]))


def test_the_list_only_shrinks() -> None:
    table = tomllib.loads(LIST.read_text(encoding="utf-8"))
    assert len(table["left"]) <= table["most"], "the list only shrinks"
    names = {reason.name for reason in Reason}
    for row in table["left"]:
        packet, overload = row["operator"].removeprefix("aten.").split(".")
        operator = getattr(getattr(aten, packet), overload)
        assert row["reason"] in names
        assert (lowering_of(operator) is None) == ("why" not in row), f"{operator} has loops now: its row is stale"
