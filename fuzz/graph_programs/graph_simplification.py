"""Smaller batches than a failing one: fewer programs, calls, outputs, steps and inputs, then plainer inputs."""

from collections.abc import Iterator
from dataclasses import replace

from .graph_program import GraphProgram, GraphStep, ProgramBatch
from .inputs import CallPlan, GraphInput


def simpler_batches(batch: ProgramBatch) -> Iterator[ProgramBatch]:
    """Yield smaller batches, the largest cuts first."""
    count = len(batch.programs)
    if count > 3:
        yield ProgramBatch(batch.programs[: count // 2])
        yield ProgramBatch(batch.programs[count // 2 :])
    if count > 1:
        for number in range(count):
            yield ProgramBatch((*batch.programs[:number], *batch.programs[number + 1 :]))
    for number, program in enumerate(batch.programs):
        for smaller in simpler_graph_programs(program):
            yield ProgramBatch((*batch.programs[:number], smaller, *batch.programs[number + 1 :]))


def simpler_graph_programs(program: GraphProgram) -> Iterator[GraphProgram]:
    """Yield programs with one thing less, or with an input that is plainer."""
    if program.sized:
        yield replace(program, sized=False)
    yield from _one_output(program)
    yield from _without_steps(program)
    yield from _fewer_calls(program)
    yield from _without_inputs(program)
    yield from _plainer_inputs(program)
    yield from _plainer_numbers(program)


def _one_output(program: GraphProgram) -> Iterator[GraphProgram]:
    if len(program.outputs) > 1:
        for output in program.outputs:
            yield replace(program, outputs=(output,))
        for number in range(len(program.outputs)):
            yield replace(program, outputs=(*program.outputs[:number], *program.outputs[number + 1 :]))


def _without_steps(program: GraphProgram) -> Iterator[GraphProgram]:
    for number in reversed(range(len(program.steps))):
        yield from _without_step(program, number)


def first_results(program: GraphProgram) -> list[int]:
    """Return the number of the first result of each step, and of what would come next."""
    numbers = [len(program.inputs)]
    for step in program.steps:
        numbers.append(numbers[-1] + step.row.results)
    return numbers


def _without_step(program: GraphProgram, gone: int) -> Iterator[GraphProgram]:
    """Yield the program without a step; what reads its results reads one of its operands, or an input, instead."""
    step, first = program.steps[gone], first_results(program)[gone]
    results = range(first, first + step.row.results)
    needed = any(number in results for later in program.steps[gone + 1 :] for number in later.operands) or any(
        number in results for number in program.outputs
    )
    stand_ins = list(dict.fromkeys((*step.operands, 0)))[:3] if needed else [0]
    for stand_in in stand_ins:

        def renumbered(numbers: tuple[int, ...], stand_in: int = stand_in) -> tuple[int, ...]:
            return tuple(
                stand_in if number in results else number - (len(results) if number >= first else 0)
                for number in numbers
            )

        steps = tuple(
            GraphStep(other.operator, renumbered(other.operands), _renamed(other.attributes))
            for number, other in enumerate(program.steps)
            if number != gone
        )
        yield replace(program, steps=steps, outputs=renumbered(program.outputs))


def _renamed(attributes: tuple[str, ...]) -> tuple[str, ...]:
    """Return attributes without sizes read from values, whose names may have changed."""
    return tuple("2" if ".shape[" in text else text for text in attributes)


def _fewer_calls(program: GraphProgram) -> Iterator[GraphProgram]:
    if len(program.calls) > 1:
        yield replace(program, calls=program.calls[:1])
        for number in range(len(program.calls)):
            yield replace(program, calls=(*program.calls[:number], *program.calls[number + 1 :]))


def _without_inputs(program: GraphProgram) -> Iterator[GraphProgram]:
    read = {number for step in program.steps for number in step.operands} | set(program.outputs)
    read |= {one.shares for one in program.inputs}
    for gone in range(len(program.inputs)):
        if gone in read or len(program.inputs) == 1 or any(one.shares > gone for one in program.inputs):
            continue

        def renumbered(numbers: tuple[int, ...], gone: int = gone) -> tuple[int, ...]:
            return tuple(number - (number > gone) for number in numbers)

        steps = tuple(
            GraphStep(step.operator, renumbered(step.operands), _renamed(step.attributes)) for step in program.steps
        )
        inputs = tuple(one for number, one in enumerate(program.inputs) if number != gone)
        yield replace(program, inputs=inputs, steps=steps, outputs=renumbered(program.outputs))


def _plainer_inputs(program: GraphProgram) -> Iterator[GraphProgram]:
    for number, one in enumerate(program.inputs):
        for plainer in _plainer(one):
            inputs = (*program.inputs[:number], plainer, *program.inputs[number + 1 :])
            if plainer != one:
                yield replace(program, inputs=inputs)
    for size in sorted({size for one in program.inputs for size in one.shape if size > 2}):
        inputs = tuple(
            replace(one, shape=tuple(2 if other == size else other for other in one.shape)) for one in program.inputs
        )
        yield replace(program, inputs=inputs)


def _plainer(one: GraphInput) -> Iterator[GraphInput]:
    yield replace(one, layout="contiguous", values="normal", requires_grad=False, shares=-1, shares_from=0, view="")
    yield replace(one, shares=-1, shares_from=0, view="")
    yield replace(one, layout="contiguous")
    yield replace(one, requires_grad=False)
    yield replace(one, values="normal")
    if one.is_float:
        yield replace(one, dtype="float32")
    for dim, size in enumerate(one.shape):
        yield replace(one, shape=(*one.shape[:dim], *one.shape[dim + 1 :]))
        if size > 2:
            yield replace(one, shape=(*one.shape[:dim], 2, *one.shape[dim + 1 :]))
        if size < 0:
            yield replace(one, shape=(*one.shape[:dim], 3, *one.shape[dim + 1 :]))


def _plainer_numbers(program: GraphProgram) -> Iterator[GraphProgram]:
    """Yield the program without numbers, or with first numbers that are plain; texts that name one keep it."""
    used = {text for step in program.steps for text in step.attributes if "n" in text}
    if program.numbers and not used:
        yield replace(program, calls=tuple(replace(plan, numbers=()) for plan in program.calls))
    if any(plan.sizes for plan in program.calls) and all(size >= 0 for one in program.inputs for size in one.shape):
        yield replace(program, calls=tuple(replace(plan, sizes=()) for plan in program.calls))
    if any(plan.seed for plan in program.calls):
        yield replace(program, calls=tuple(CallPlan(0, plan.sizes, plan.numbers) for plan in program.calls))
