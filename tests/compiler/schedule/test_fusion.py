"""What becomes one kernel, and which named rule keeps other things apart.  The numbers here are quality, not truth."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it

from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.events import FusionRefused, recording
from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Loop, LoopProgram
from plumbline.compiler.loops.loop_interpreter import interpret_program
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule.fusion import FusionDecision, merge
from plumbline.compiler.schedule.schedule import PASSES, replace_pass, schedule

X = torch.randn(6, 8)


def kernels(function: Callable[..., object], *inputs: torch.Tensor, fuse: bool = True) -> int:
    program = schedule(lower_graph(trace(function, inputs)), Options(verify=True, fuse=fuse))
    return sum(isinstance(step, Loop) for step in program.steps)


ONE_KERNEL: dict[str, Callable[[torch.Tensor], object]] = {
    "chain": lambda x: ((x.sin() + 1).relu() * x).exp(),
    "softmax": lambda x: x.softmax(1),
    "softmax_of_columns": lambda x: x.softmax(0),
    "layer_norm": lambda x: F.layer_norm(x, [8]) + x,
    "through_a_view": lambda x: (x.relu().view(2, 3, 8) + 1).sum(2),
    "through_a_transpose": lambda x: (x * 2).t() + x.sum(1),
    "two_reductions": lambda x: (x.sum(1), x.amax(1), x.mean(1)),
    "reduction_then_rows": lambda x: (x.sum(1).sqrt() + 1).log(),
    "loss": lambda x: ((x - 1) ** 2).mean(),
    "bias": lambda x: x + torch.full((8,), 2.0) * torch.arange(8),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name: str) -> None:
    assert kernels(ONE_KERNEL[name], X) == 1
    assert kernels(ONE_KERNEL[name], X, fuse=False) >= 1


SCANS: dict[str, tuple[int, Callable[[torch.Tensor], object]]] = {
    "what is around it": (1, lambda x: (x * 2).cumsum(1) + x),
    "a reduction of the same rows": (1, lambda x: (x.softmax(1).cumsum(1), x.sum(1))),
    "two along one dimension": (1, lambda x: x.cumsum(1).cumprod(1)),
    "two along different dimensions": (2, lambda x: (x.cumsum(1), x.cumprod(0))),
    "a scan of what it gives in another order": (2, lambda x: x.cumsum(1).flip(1).cumsum(1)),
    "all points as one row, and rows": (2, lambda x: (x.view(-1).cumsum(0), x.cumsum(1))),
}


@pytest.mark.parametrize("name", SCANS)
def test_scans_join_what_visits_their_points_in_order(name: str) -> None:
    count, function = SCANS[name]
    lowered = lower_graph(trace(function, (X,)), scans=True)
    program = schedule(lowered, Options(verify=True))
    assert sum(isinstance(step, Loop) for step in program.steps) == count
    results, wanted = interpret_program(program, (X,)), function(X)
    torch.testing.assert_close(results, wanted if isinstance(wanted, tuple) else (wanted,))


def test_rows_and_columns_stay_apart_and_say_why() -> None:
    with recording() as events:
        assert kernels(lambda x: (x.sum(1), x.sum(0)), X) == 2
    (refusal,) = [event for event in events if isinstance(event, FusionRefused)]
    assert refusal.rule == "same_points"


def test_a_call_in_between_does_not_hold_a_producer_back() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        early = x.sin()
        return torch.mm(x, w) + early.cos()

    assert kernels(program, X, torch.randn(8, 8)) == 1


def loops_of(function: Callable[..., object]) -> tuple[LoopProgram, list[Loop]]:
    program = lower_graph(trace(function, (X,)))
    return program, [step for step in program.steps if isinstance(step, Loop)]


REFUSALS: dict[str, Callable[[torch.Tensor], object]] = {
    "something_is_shared": lambda x: (torch.ones(6, 8), x + 1),
    "both_have_points": lambda x: (x[:0] + 1, x + 2),
    "joined_tensors_are_complete": lambda x: torch.cat([x, x]) + 1,
    "same_points": lambda x: (x.sum(0), x.sum(1)),
    "reads_same_element": lambda x: (y := x[:, :6] + 1) * y.t(),
}


@pytest.mark.parametrize("rule", REFUSALS)
def test_each_rule_refuses_something(rule: str) -> None:
    program, loops = loops_of(REFUSALS[rule])
    found = [merge(one, two, program.buffers) for one in loops for two in loops if one is not two]
    assert rule in {decision.rule for decision in found if isinstance(decision, FusionDecision)}


def test_large_kernels_are_refused() -> None:
    def program(x: torch.Tensor) -> list[torch.Tensor]:
        return [(x + n).sin() for n in range(40)]

    with recording() as events:
        assert kernels(lambda x: tuple(program(x)), X) > 1
    assert "kernel_stays_small" in {event.rule for event in events if isinstance(event, FusionRefused)}


@pytest.mark.parametrize(
    "order", [PASSES, PASSES[::-1], PASSES[1:], PASSES[2:3]], ids=["listed", "reversed", "tail", "one"]
)
def test_every_pass_keeps_the_meaning_in_any_order(order: tuple[Callable[[LoopProgram], LoopProgram], ...]) -> None:
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = (x * 2 + torch.full((8,), 3.0)).relu()
        return y.softmax(1).t() @ x, y.sum(0), torch.cat([y, x])[1:7] * y

    lowered = lower_graph(trace(program, (X,)))
    changed = lowered
    for each in order:
        changed = each(changed)
    for found, wanted in zip(interpret_program(changed, (X,)), interpret_program(lowered, (X,)), strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_pass_can_be_replaced_in_a_scope() -> None:
    seen = []

    def spy(program: LoopProgram) -> LoopProgram:
        seen.append(len(program.steps))
        return program

    with replace_pass("join_forward", spy):
        assert kernels(lambda x: x.sum(1).view(6, 1) + x.exp().sum(0), X) >= 2
    count = len(seen)
    assert count > 0
    kernels(lambda x: x.sum(1).view(6, 1) + x.exp().sum(0), X)
    assert len(seen) == count
    with pytest.raises(UserError, match="no pass is named"), replace_pass("nothing", spy):
        pass
