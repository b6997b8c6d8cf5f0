"""The call of a compiled graph: its host function with everything around it that keeps the answer eager's.

Inputs laid out otherwise than the examples were go op by op, before anything ran.  What stops half-way is run again
op by op where that can be done without a trace: the random generator is put back, and nothing had been written.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from ..base.errors import InternalError
from ..base.events import FellBack, record
from ..graph.owned_inputs import let_spend
from ..graph.promises import MetadataDeparture
from ..symbolic.scaled_sizes import FUNCTIONS
from .direct_calls import direct_call

Compiled = Callable[..., tuple[object, ...]]
_MOST_SHOWN = 256  # dynamic sizes of which is remembered that a call has gone well
Note = Callable[[int, float], None]  # the number of a step, and what the clock said before it


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


@dataclass(frozen=True, slots=True, eq=False)
class HostProgram:
    """The host function as text, with everything around it; plain data but for the objects that the texts name.

    text: defines `run([<inputs>])`, which empties the list and calls segment n as `segment_<n>`.  objects: what it
    needs by name.  fits: the text of a function of the inputs that says whether they are laid out as the code was
    written for; layouts: what that needs by name.  segments: how many there are.  calls: whether it calls ATen.
    repeats: whether it may run twice, the generator being put back; draws: whether it then has to be.  sizes: how many
    dynamic sizes stand behind the tensors.
    """

    text: str
    objects: dict[str, object]
    fits: str
    layouts: dict[str, object]
    device: torch.device
    segments: int
    calls: bool
    repeats: bool
    draws: bool
    sizes: int = 0


def local(name: str) -> str:
    """Return the host's variable for a tensor."""
    return f"v_{name}"


def on_device(place: str, device: torch.device) -> str:
    """Return the question whether a tensor is where the kernels are, as Python text that binds like a call."""
    return f"{place}.is_cpu" if device.type == "cpu" else f"({place}.device == device)"


def bind(
    host: HostProgram, segments: Sequence[Callable[..., int]], rescue: GraphFallback, note: Note | None = None
) -> Compiled:
    """Return the host function with its kernels; raises MetadataDeparture where an ATen call breaks its promise.

    segments: one function per segment, of the addresses of its parameters and the dynamic sizes.  note: called by a
    host that is timed, behind each step.
    """
    scope: dict[str, object] = {
        "torch": torch,
        "empty": torch.empty,
        "empty_strided": torch.empty_strided,
        "as_promised": _as_promised,
        "device": host.device,
        "on_failure": _KernelFailure,
        "math": math,
        "clock": time.perf_counter,
        "note": note,
        **FUNCTIONS,
        **{name: direct_call(value) for name, value in host.objects.items()},
    }
    if len(segments) != host.segments:
        raise InternalError("segments without code", hint="report the graph")
    scope.update({f"segment_{number}": function for number, function in enumerate(segments)})
    exec(compile(host.text, "<plumbline host>", "exec"), scope)
    run = scope["run"]
    if not callable(run):
        raise InternalError("the host text defines no run()", hint="report the graph")
    fits: Callable[..., object] = eval(
        host.fits, {"torch": torch, "device": host.device, "math": math, **FUNCTIONS, **host.layouts}
    )
    return _guarded(run, fits, host, rescue)


def _guarded(
    run: Callable[..., object], fits: Callable[..., object], host: HostProgram, rescue: GraphFallback
) -> Compiled:
    """Return run behind the question whether the inputs fit, and with what follows when it stops half-way."""
    calls, repeats, draws = host.calls, host.repeats, host.draws
    generator, op_by_op = generator_of(host.device), rescue.op_by_op
    shown: set[tuple[object, ...]] = set()
    rescued: list[bool] = []

    def call(*inputs: object) -> tuple[object, ...]:
        if not fits(*inputs):
            record(FellBack("graph", "an input is laid out otherwise than the one it was compiled for"))
            return op_by_op(*inputs)
        state = generator.get_state() if draws else None
        try:
            if calls:
                with torch.no_grad():
                    result = run([*inputs])
            else:
                result = run([*inputs])
        except Exception as error:
            if not repeats:
                raise _unrepeatable(error) from None
            if state is not None:
                generator.set_state(state)
            if rescue.strict or isinstance(error, MetadataDeparture):
                raise
            rescued.append(True)
            return rescue.after(error, inputs)
        if isinstance(result, _KernelFailure):
            if not repeats:
                raise result.error()
            if state is not None:
                generator.set_state(state)
            rescued.append(True)
            return rescue.after(result.unfounded(), inputs)  # eager's own error, if it has one
        return result  # type: ignore[return-value]  # generated text returns a tuple

    def spend(given: list[object]) -> tuple[object, ...]:
        """Run on inputs that are gone afterwards, once a call for the same sizes has shown that all is as promised."""
        sizes = tuple(given[-host.sizes :]) if host.sizes else ()
        if sizes not in shown or rescued or not fits(*given):
            result = call(*given)
            if len(shown) < _MOST_SHOWN:
                shown.add(sizes)
            return result
        try:
            with torch.no_grad():
                values = run(given)
        except Exception as error:
            raise _unrepeatable(error) from None
        if isinstance(values, _KernelFailure):
            raise values.error()
        return values  # type: ignore[return-value]  # as above

    let_spend(call, spend)
    return call


def generator_of(device: torch.device) -> torch.Generator:
    """Return the random generator that draws on a device take their numbers from."""
    if device.type == "cpu":
        return torch.default_generator
    generators: tuple[torch.Generator, ...] = torch.cuda.default_generators
    return generators[device.index or 0]


def _unrepeatable(error: Exception) -> Exception:
    """Return what is raised of a graph that must not start again."""
    if not isinstance(error, MetadataDeparture):
        return error
    return InternalError(
        str(error), why="the graph writes to its inputs, or they are gone", hint="correct the operator's shape rule"
    )


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
