"""A program runs in segments between ATen calls; what one segment keeps to itself is in its arena."""

import torch

from plumbline.compiler.base.options import Options
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.ir import Extern
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.schedule.execution_plan import ExecutionPlan, Segment, plan_execution
from plumbline.compiler.schedule.schedule import schedule


def planned(function, *inputs: torch.Tensor, fuse: bool = True) -> ExecutionPlan:
    return plan_execution(schedule(lower_graph(trace(function, inputs)), Options(fuse=fuse)))


def test_kernels_on_either_side_of_a_call_are_segments_of_their_own() -> None:
    x = torch.rand(4, 4)
    plan = planned(lambda x: ((x + 1) @ x).relu(), x)
    assert [type(step) for step in plan.steps] == [Segment, Extern, Segment]
    assert [len(segment.loops) for segment in plan.segments] == [1, 1]
    assert all(not segment.arena.offsets for segment in plan.segments)  # ATen sees what they write


def test_what_one_segment_keeps_to_itself_is_in_its_arena() -> None:
    plan = planned(lambda x: (x.sin() + 1).cos(), torch.rand(4, 4), fuse=False)
    (segment,) = plan.segments
    assert len(segment.loops) == 3
    assert len(segment.arena.offsets) == 2
    assert segment.arena.arena_bytes == 2 * 64
    assert set(segment.arena.offsets) < set(segment.parameters)


def test_a_tensor_ends_after_the_last_step_that_reads_it() -> None:
    plan = planned(lambda x: ((x + 1) @ x) @ x, torch.rand(4, 4))
    written = next(iter(plan.segments[0].loops[0].writes))
    first, second = [step for step in plan.steps if isinstance(step, Extern)]
    assert plan.ends == ((), (written,), tuple(sorted({*first.writes, *plan.program.inputs})))
    assert second.writes == plan.program.output_names


def test_an_input_that_no_step_needs_is_named() -> None:
    plan = planned(lambda x, y: (x + 1, y[:0]), torch.rand(4, 4), torch.rand(4))
    assert plan.unread == ()
    assert plan.ends[-1][0] in plan.program.inputs
    plan = planned(lambda x, y: x + 1, torch.rand(4, 4), torch.rand(4))
    assert plan.unread == plan.program.inputs[1:]


def test_loops_without_points_are_not_run() -> None:
    assert planned(lambda x: x + 1, torch.rand(0, 4)).steps == ()
