"""The call of a compiled graph: its host function with everything around it that keeps the answer eager's.

Inputs laid out otherwise than the examples were go op by op, before anything ran.  What stops half-way is run again
op by op where that can be done without a trace: the random generator is put back, and nothing had been written.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from ..base.errors import InternalError
from ..base.events import KernelRan, record
from ..graph.facts import facts_of, is_random
from ..graph.promises import MetadataDeparture
from ..loops.ir import Extern, LoopProgram
from ..schedule.execution_plan import ExecutionPlan
from ..schedule.work import work_of
from ..symbolic.symbolic_sizes import FUNCTIONS
from .host import HostProgram, local, on_device

Compiled = Callable[..., tuple[object, ...]]


@dataclass(frozen=True, slots=True)
class GraphFallback:
    """What a compiled graph does when it cannot go on.

    op_by_op: the graph through ATen.  strict: raise errors of ours instead.  report: put one on record, with inputs.
    """

    op_by_op: Compiled
    strict: bool
    report: Callable[[Exception, Sequence[object]], None]

    def after(self, error: Exception, inputs: Sequence[object]) -> tuple[object, ...]:
        """Run the graph op by op; if that raises too, it is eager's own error, else `error` was ours."""
        try:
            result = self.op_by_op(*inputs)
        except Exception as eagers:
            raise eagers from None
        self.report(error, inputs)
        return result


def bind(
    plan: ExecutionPlan, host: HostProgram, segments: Sequence[Callable[..., int]], rescue: GraphFallback
) -> Compiled:
    """Return the host function with its kernels; raises MetadataDeparture where an ATen call breaks its promise.

    segments: one function per segment, of the addresses of its parameters and the dynamic sizes.
    """
    program = plan.program
    scope: dict[str, object] = {
        "torch": torch,
        "empty": torch.empty,
        "empty_strided": torch.empty_strided,
        "as_promised": _as_promised,
        "device": program.device,
        "on_failure": _KernelFailure,
        "math": math,
        "clock": time.perf_counter,
        "note": _noting(plan),
        **FUNCTIONS,
        **host.objects,
    }
    if len(segments) != len(plan.segments):
        raise InternalError("segments without code", hint="report the graph")
    scope.update({f"segment_{number}": function for number, function in enumerate(segments)})
    exec(compile(host.text, "<plumbline host>", "exec"), scope)
    run = scope["run"]
    if not callable(run):
        raise InternalError("the host text defines no run()", hint="report the graph")
    return _guarded(run, _fits(program), program, rescue)


def _noting(plan: ExecutionPlan) -> Callable[[int, float], None]:
    """Return what a timed host calls behind each step: it puts the time, and how much was done, on record."""
    rows: dict[int, KernelRan] = {}

    def note(number: int, started: float) -> None:
        seconds = time.perf_counter() - started
        if number not in rows:
            step = plan.steps[number]
            part = step if isinstance(step, Extern) else step.loops[0]
            work = work_of(part, plan.program)
            kind = "ATen" if isinstance(step, Extern) else "kernel"
            name = str(step.target) if isinstance(step, Extern) else part.name
            rows[number] = KernelRan(kind, name, 0.0, work.bytes, work.flops, part.origins)
        record(replace(rows[number], seconds=seconds))

    return note


def _fits(program: LoopProgram) -> Callable[..., object]:
    """Return the function of the inputs that says whether they are laid out as the code was written for."""
    scope: dict[str, object] = {"torch": torch, "device": program.device, **FUNCTIONS}
    conditions = []
    for name in program.inputs:
        buffer = program.buffers.get(name)
        if buffer is None:
            continue
        place, layout = local(name), f"({buffer.shape}, {buffer.strides}, {buffer.dtype})"
        if not program.sizes:
            scope[f"layout_{name}"] = (buffer.shape, buffer.strides, buffer.dtype)
            layout = f"layout_{name}"
        conditions.append(f"({place}.shape, {place}.stride(), {place}.dtype) == {layout}")
        conditions.append(f"{on_device(place, program.device)} and not {place}.is_neg()")
    parameters = ", ".join([*map(local, program.inputs), *program.sizes])
    fits: Callable[..., object] = eval(f"lambda {parameters}: {' and '.join(conditions) or True}", scope)
    return fits


def _guarded(
    run: Callable[..., object], fits: Callable[..., object], program: LoopProgram, rescue: GraphFallback
) -> Compiled:
    """Return run behind the question whether the inputs fit, and with what follows when it stops half-way."""
    calls = [step for step in program.steps if isinstance(step, Extern)]
    repeats = all(map(_can_repeat, calls))
    draws = repeats and any(is_random(step.target) for step in calls)
    generator, op_by_op = generator_of(program.device), rescue.op_by_op

    def call(*inputs: object) -> tuple[object, ...]:
        if not fits(*inputs):
            return op_by_op(*inputs)
        state = generator.get_state() if draws else None
        try:
            if calls:
                with torch.no_grad():
                    result = run(*inputs)
            else:
                result = run(*inputs)
        except Exception as error:
            if not repeats:
                raise _unrepeatable(error) from None
            if state is not None:
                generator.set_state(state)
            if rescue.strict or isinstance(error, MetadataDeparture):
                raise
            return rescue.after(error, inputs)
        if isinstance(result, _KernelFailure):
            if not repeats:
                raise result.error()
            if state is not None:
                generator.set_state(state)
            return rescue.after(result.unfounded(), inputs)  # eager's own error, if it has one
        return result  # type: ignore[return-value]  # generated text returns a tuple

    return call


def generator_of(device: torch.device) -> torch.Generator:
    """Return the random generator that draws on a device take their numbers from."""
    if device.type == "cpu":
        return torch.default_generator
    generators: tuple[torch.Generator, ...] = torch.cuda.default_generators
    return generators[device.index or 0]


def _can_repeat(step: Extern) -> bool:
    """Return whether a call may run twice, the generator being put back: it writes to no argument."""
    facts = facts_of(step.target)
    return not step.ordered or (facts is not None and not facts.mutates)


def _unrepeatable(error: Exception) -> Exception:
    """Return what is raised of a graph that must not start again."""
    if not isinstance(error, MetadataDeparture):
        return error
    return InternalError(str(error), why="the graph writes to its inputs", hint="correct the operator's shape rule")


@dataclass(frozen=True, slots=True)
class _KernelFailure:
    """A kernel stopped: code 1 an index out of range, code 2 an integer division by zero."""

    code: int

    def unfounded(self) -> InternalError:
        """Return what is on record where eager goes on: whether a kernel stops is part of its answer."""
        return InternalError(f"a kernel stops where eager does not: {self.error()}", hint="report the graph")

    def error(self) -> Exception:
        if self.code == 1:
            return IndexError("index out of range in a compiled graph")
        return RuntimeError("ZeroDivisionError")


def _as_promised(
    value: torch.Tensor,
    dtype: torch.dtype,
    shape: tuple[int, ...] | None,
    strides: tuple[int, ...] | None,
    call: str,
    device: torch.device,
) -> torch.Tensor:
    """Return the result of an ATen call as it was promised, copied where only its memory layout is another.

    shape: None where loops do not know the tensor.  strides: in elements, None where no loop reads it.
    Raises MetadataDeparture where the result is another kind of tensor: its bytes mean something else.
    """
    is_kind = value.dtype is dtype and (shape is None or value.shape == shape)
    if not is_kind or (strides is not None and value.device != device):
        promised = f"{dtype}" if shape is None else f"{dtype} {shape}"
        raise MetadataDeparture(call, promised, f"{value.dtype} {tuple(value.shape)} on {value.device}")
    if shape is None or strides is None:
        raise InternalError(f"the result of {call} needs no change", hint="report the graph")
    return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device).copy_(value)
