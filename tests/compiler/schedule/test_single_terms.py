"""A sum with one term that is not zero is that term, bit for bit, and its loop needs no pass for it."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  the field's name for it
from hypothesis import given, settings
from hypothesis import strategies as st

from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Loop, LoopProgram
from plumbline.compiler.loops.loop_interpreter import interpret_program
from plumbline.compiler.loops.verify import verify
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule.schedule import replace_pass, schedule

STRICT = Options(strict=True, verify=True)


def programs(function: Callable[..., object], *inputs: torch.Tensor) -> tuple[LoopProgram, LoopProgram]:
    """Return the scheduled program, and the same without the pass."""
    lowered = lower_graph(trace(function, inputs))
    with replace_pass("single_terms", lambda program: program):
        before = schedule(lowered, STRICT)
    return verify(schedule(lowered, STRICT), "schedule"), before


def reductions(program: LoopProgram) -> int:
    return sum(each.name == "reduce" for step in program.steps if isinstance(step, Loop) for each in step.scalars())


def one_hot(value: torch.Tensor, place: torch.Tensor, keep: torch.Tensor, count: int) -> torch.Tensor:
    here = (torch.arange(count)[None, :] == place[:, None]) & keep[:, None]
    return torch.where(here, value[:, None], 0.0)


def test_the_gradient_of_cross_entropy_is_one_plain_loop() -> None:
    def gradient(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        logs = scores.log_softmax(-1)
        total = torch.tensor(5.0)
        given = torch.ones(())
        spread = torch.ops.aten.nll_loss_backward(given, logs, target, None, 1, -100, total)
        return torch.ops.aten._log_softmax_backward_data(spread, logs, 1, torch.float32)

    scores, target = torch.randn(5, 40), torch.tensor([0, 39, -100, 7, 7])
    program, before = programs(gradient, scores, target)
    assert reductions(program) == reductions(before) - 1
    (found,), (wanted,) = interpret_program(program, (scores, target)), interpret_program(before, (scores, target))
    assert torch.equal(found, wanted)
    leaf = scores.clone().requires_grad_()
    F.cross_entropy(leaf, target, reduction="sum").backward()
    torch.testing.assert_close(found, leaf.grad / 5)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(-3, 12), st.booleans(), st.sampled_from([0.0, -0.0, 1.5, -2.0, float("nan")]))))
def test_bit_for_bit_wherever_the_place_is(rows: list[tuple[int, bool, float]]) -> None:
    rows = [*rows, (0, True, -0.0), (9, True, 3.0), (10, True, 4.0), (-1, True, 5.0)]
    place, keep = torch.tensor([row[0] for row in rows]), torch.tensor([row[1] for row in rows])
    value = torch.tensor([row[2] for row in rows])

    def program(value: torch.Tensor, place: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        spread = one_hot(value, place, keep, 10)
        return spread - spread.sum(1, keepdim=True)

    after, before = programs(program, value, place, keep)
    assert reductions(after) == reductions(before) - 1
    found, wanted = (interpret_program(each, (value, place, keep))[0] for each in (after, before))
    assert found.view(torch.int32).equal(wanted.view(torch.int32))


@pytest.mark.parametrize("kind", ["another term", "no place", "two places", "another result"])
def test_other_sums_stay(kind: str) -> None:
    def program(value: torch.Tensor, place: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        numbers = torch.arange(10)[None, :]
        here = numbers == place[:, None]
        chosen = {
            "another term": torch.where(here, value[:, None], 1.0),
            "no place": torch.where(numbers < place[:, None], value[:, None], 0.0),
            "two places": torch.where(here | (numbers == 3), value[:, None], 0.0),
            "another result": torch.where(here, value[:, None] * numbers, 0.0),
        }[kind]
        return chosen - chosen.sum(1, keepdim=True)

    given = (torch.randn(4), torch.tensor([0, 3, 9, 10]), torch.ones(4, dtype=torch.bool))
    after, before = programs(program, *given)
    assert reductions(after) == reductions(before) > 0


def test_a_sum_that_is_kept_needs_its_loop() -> None:
    given = (torch.randn(4), torch.tensor([0, 3, 9, 10]), torch.tensor([True, True, False, True]))
    after, before = programs(lambda *args: one_hot(*args, 10).sum(1), *given)
    assert reductions(after) == reductions(before) == 1
    assert torch.equal(interpret_program(after, given)[0], one_hot(*given, 10).sum(1))
