"""Smaller programs than a failing one, by cuts that hypothesis cannot make: values are renumbered after each."""

from collections.abc import Iterator
from dataclasses import replace

from .programs import TransformProgram
from .vocabulary import VOCABULARY


def simpler_programs(program: TransformProgram) -> Iterator[TransformProgram]:
    """Yield programs with one unneeded step, transform or output less; hypothesis cannot renumber values."""
    for number in reversed(range(len(program.steps))):
        smaller = _without_step(program, number)
        if smaller is not None:
            yield smaller
    for number in range(len(program.steps)):
        bypassed = _without_effect(program, number)
        if bypassed is not None:
            yield bypassed
    for number in range(program.body_inputs):
        fewer = _without_input(program, number)
        if fewer is not None:
            yield fewer
    if len(program.outputs) > 1 and not program.nest:
        for output in program.outputs:
            yield replace(program, outputs=(output,), container="one")
    if program.nest and not program.nest[-1].takes_vector and program.nest[-1].transform != "vmap":
        yield replace(program, nest=program.nest[:-1], compiled=min(program.compiled, len(program.nest) - 1))
    for number, spec in enumerate(program.inputs):
        plain = replace(spec, layout="contiguous", values="normal", seed=0, requires_grad=False, shares=-1)
        if plain != spec:
            yield replace(program, inputs=(*program.inputs[:number], plain, *program.inputs[number + 1 :]))
    for size in sorted({size for spec in program.inputs for size in spec.shape if size > 2}):
        inputs = tuple(
            replace(spec, shape=tuple(2 if other == size else other for other in spec.shape)) for spec in program.inputs
        )
        yield replace(program, inputs=inputs)


def _without_step(program: TransformProgram, dropped: int) -> TransformProgram | None:
    """Return the program without a step that nothing reads, None when something does."""
    step = program.steps[dropped]
    rest = (*program.steps[:dropped], *program.steps[dropped + 1 :])
    if VOCABULARY[step.operator].statement:
        return replace(program, steps=rest)
    before = sum(not VOCABULARY[earlier.operator].statement for earlier in program.steps[:dropped])
    gone = program.body_inputs + before
    if gone in program.outputs or any(gone in later.operands for later in rest):
        return None

    def renumbered(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number - (number > gone) for number in numbers)

    steps = tuple(replace(step, operands=renumbered(step.operands)) for step in rest)
    return replace(program, steps=steps, outputs=renumbered(program.outputs))


def _without_effect(program: TransformProgram, bypassed: int) -> TransformProgram | None:
    """Return the program with readers of a step reading its first operand instead; None for statements."""
    step = program.steps[bypassed]
    if VOCABULARY[step.operator].statement:
        return None
    number = program.body_inputs + sum(not VOCABULARY[s.operator].statement for s in program.steps[:bypassed])

    def redirected(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(step.operands[0] if n == number else n for n in numbers)

    later = tuple(replace(s, operands=redirected(s.operands)) for s in program.steps[bypassed + 1 :])
    around = replace(program, steps=(*program.steps[: bypassed + 1], *later), outputs=redirected(program.outputs))
    return _without_step(around, bypassed)


def _without_input(program: TransformProgram, gone: int) -> TransformProgram | None:
    """Return the program without an input of the body that nothing reads, None when a transform needs it."""
    read = {number for step in program.steps for number in step.operands} | set(program.outputs)
    if gone in read or len(program.inputs) == 1:
        return None
    nest = []
    for level in program.nest:
        in_dims = tuple(dim for number, dim in enumerate(level.in_dims) if number != gone)
        differentiates = level.transform != "vmap" and level.argument == gone
        if differentiates or (level.transform == "vmap" and all(dim is None for dim in in_dims)):
            return None
        argument = level.argument - (level.argument > gone)
        nest.append(replace(level, arguments=level.arguments - 1, argument=argument, in_dims=in_dims))

    def renumbered(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number - (number > gone) for number in numbers)

    return replace(
        program,
        inputs=(*program.inputs[:gone], *program.inputs[gone + 1 :]),
        body_inputs=program.body_inputs - 1,
        steps=tuple(replace(step, operands=renumbered(step.operands)) for step in program.steps),
        outputs=renumbered(program.outputs),
        nest=tuple(nest),
    )
