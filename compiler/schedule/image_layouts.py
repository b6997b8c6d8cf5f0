"""Where images lie in memory between kernels and convolutions: channels innermost, as oneDNN reads them fastest.

What only loops and convolutions see may have any strides.  A convolution gives its result in the layout of its image,
so a choice for one tensor is handed on to the next; what the caller or another ATen call sees keeps eager's strides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from ..loops.body import Access, ScalarBuilder
from ..loops.ir import Buffer, Extern, Loop, LoopProgram, LoopStore, Ref, Step
from ..symbolic.expr import Symbol, as_expr

_CONVOLUTION = torch.ops.aten.convolution.default


def channels_innermost(program: LoopProgram) -> LoopProgram:
    """Put channels innermost where convolutions read what loops wrote or a copy of an input, and in what these give."""
    if program.device.type != "cpu" or program.sizes:
        return program
    made = {name for step in program.steps if isinstance(step, Loop) for name in step.writes}
    fixed = set(program.output_names) | set(program.inputs) | set(program.constants) | set(_seen_by_others(program))
    buffers, changed, steps = dict(program.buffers), set(), list[Step]()
    for step in program.steps:
        image, given = _image_and_result(step)
        if image not in buffers or given not in buffers or given in fixed or not isinstance(step, Extern):
            steps.append(step)
            continue
        is_free = image not in fixed and (image in changed or image in made)
        if _is_image(buffers[image]) and _is_image(buffers[given]) and (is_free or image in program.inputs):
            name = image if is_free else f"{image}_channels_innermost"
            if name not in buffers:
                steps.append(_copy(buffers[image], name, step.origins))
            buffers |= {name: replace(_innermost(buffers[image]), name=name), given: _innermost(buffers[given])}
            changed |= {name, given}
            step = replace(step, args=(Ref(name), *step.args[1:]))
        steps.append(step)
    return replace(program, buffers=buffers, steps=tuple(steps)) if changed else program


def _image_and_result(step: Step) -> tuple[str, str]:
    """Return the names of a convolution's image and result; empty ones for another step."""
    if not isinstance(step, Extern) or not _is_convolution(step) or not isinstance(step.args[0], Ref):
        return "", ""
    return step.args[0].name, step.results[0] or ""


def _copy(buffer: Buffer, name: str, origins: tuple[str, ...]) -> Loop:
    """Return the loop that copies an image into another tensor."""
    symbols = tuple(Symbol(f"i{n}", size) for n, size in enumerate(buffer.shape))
    index = tuple(as_expr(symbol) for symbol in symbols)
    value = ScalarBuilder().load(buffer.name, index, buffer.dtype)
    return Loop(f"loop_{name}", symbols, (), (LoopStore(Access(name, index), value),), origins)


def _is_convolution(step: object) -> bool:
    """Return whether a step is a convolution that is not transposed."""
    return isinstance(step, Extern) and step.target is _CONVOLUTION and step.args[6] is False


def _seen_by_others(program: LoopProgram) -> Iterator[str]:
    """Yield the tensors that ATen calls read or write, but for the images of convolutions and what those give."""
    for step in program.steps:
        if not isinstance(step, Extern):
            continue
        if not _is_convolution(step):
            yield from step.reads | step.writes
            continue
        for argument in step.args[1:]:
            if isinstance(argument, Ref):
                yield argument.name


def _is_image(buffer: Buffer) -> bool:
    """Return whether strides can say that channels are innermost: neither one channel nor one place."""
    if len(buffer.shape) != 4 or buffer.dtype != torch.float32:
        return False
    _, channels, height, width = buffer.shape
    return channels > 1 and height * width > 1 and bool(buffer.numel)


def _innermost(buffer: Buffer) -> Buffer:
    _, channels, height, width = buffer.shape
    return replace(buffer, strides=(channels * height * width, 1, channels * width, channels))
