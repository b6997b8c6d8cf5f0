"""Each named check refuses the program that breaks it."""

import dataclasses

import pytest
import torch

from plumbline.compiler.base.errors import InternalError
from plumbline.compiler.graph.tracer import trace
from plumbline.compiler.loops.body import Access, Scalar, ScalarBuilder
from plumbline.compiler.loops.ir import Loop, LoopProgram, LoopStore
from plumbline.compiler.loops.verify import CHECKS, verify
from plumbline.compiler.lowering.lower import lower_graph
from plumbline.compiler.symbolic.expr import Symbol, as_expr


def sound() -> LoopProgram:
    return lower_graph(trace(lambda x: (x + 1).sum(1), (torch.zeros(2, 3),)))


def with_first(program: LoopProgram, loop: Loop) -> LoopProgram:
    return dataclasses.replace(program, steps=(loop, *program.steps[1:]))


def first(program: LoopProgram) -> Loop:
    loop = program.steps[0]
    assert isinstance(loop, Loop)
    return loop


def stored_at(program: LoopProgram, *index: object) -> LoopProgram:
    loop = first(program)
    access = Access(loop.stores[0].access.buffer, tuple(as_expr(part) for part in index))  # type: ignore[arg-type]  # parts
    return with_first(program, dataclasses.replace(loop, stores=(LoopStore(access, loop.stores[0].value),)))


def with_value(program: LoopProgram, value: Scalar) -> LoopProgram:
    loop = first(program)
    return with_first(program, dataclasses.replace(loop, stores=(LoopStore(loop.stores[0].access, value),)))


def broken() -> dict[str, LoopProgram]:
    program = sound()
    i, j = first(program).kept
    b = ScalarBuilder()
    load = b.load("input_0", (as_expr(i), as_expr(j)), torch.float32)
    return {
        "every_tensor_is_made_before_it_is_read": dataclasses.replace(program, steps=program.steps[::-1]),
        "every_buffer_is_known": dataclasses.replace(program, buffers={"input_0": program.buffers["input_0"]}),
        "every_index_is_in_bounds": stored_at(program, as_expr(i) + 1, j),
        "every_index_variable_belongs_to_the_loop": stored_at(program, i, Symbol("z", 3)),
        "every_point_is_stored_once": stored_at(program, i, 0),
        "every_scan_runs_along_one_variable": with_value(program, b.scan("sum", load, torch.float32)),
        "every_scalar_has_its_arity_and_types": with_value(program, b.make("add", (load,), torch.float32)),
    }


def test_a_sound_program_passes() -> None:
    program = sound()
    assert verify(program, "lowering") is program


@pytest.mark.parametrize("name", broken())
def test_a_broken_program_is_named(name: str) -> None:
    rule = next(each.rule for each in CHECKS if each.name == name)
    assert list(rule(broken()[name], sound()))
    with pytest.raises(InternalError, match="is broken"):
        verify(broken()[name], "a test")


def test_a_tensor_in_pieces_is_not_given_out_before_all_pieces_are_there() -> None:
    program = lower_graph(trace(lambda x: torch.cat([x, x + 1]), (torch.zeros(2, 3),)))
    pieces = [step for step in program.steps if isinstance(step, Loop) and not step.stores[0].whole]
    assert len(pieces) == 2
    without = dataclasses.replace(program, steps=tuple(step for step in program.steps if step is not pieces[0]))
    with pytest.raises(InternalError, match="whole before it is read is broken: output cat"):
        verify(without, "a test")


def test_mixed_types_are_refused() -> None:
    program = sound()
    i, j = first(program).kept
    b = ScalarBuilder()
    load = b.load("input_0", (as_expr(i), as_expr(j)), torch.float32)
    mixed = b.make("add", (load, b.constant(1, torch.int64)), torch.float32)
    half = b.make("add", (b.cast(load, torch.float16), b.cast(load, torch.float16)), torch.float16)
    for value in (mixed, half):
        with pytest.raises(InternalError, match="arity and types"):
            verify(with_value(program, value), "a test")


def test_a_pass_that_reduces_other_points_is_refused() -> None:
    program = sound()
    reducing = next(step for step in program.steps if isinstance(step, Loop) and step.reduces)
    wider = dataclasses.replace(reducing, reduced=tuple(Symbol(each.name, 4) for each in reducing.reduced))
    steps = tuple(wider if step is reducing else step for step in program.steps)
    (rule,) = (each.rule for each in CHECKS if each.name == "reductions_keep_their_points")
    assert [fault.text for fault in rule(dataclasses.replace(program, steps=steps), program)] == [
        f"{reducing.name} reduces 4 points for {min(reducing.writes)}, not 3"
    ]
    assert not list(rule(program, program))


def test_a_fault_names_the_users_line_and_the_steps_around_it() -> None:
    program = broken()["every_index_is_in_bounds"]
    loop = dataclasses.replace(first(program), origins=("model.py:12  return (x + 1).sum(1)",))
    with pytest.raises(InternalError) as caught:
        verify(with_first(program, loop), "a test")
    assert caught.value.where == "model.py:12  return (x + 1).sum(1)"
    assert caught.value.why.startswith(f"{loop.name}(input_0) -> ")
    assert program.steps[1].name in caught.value.why
