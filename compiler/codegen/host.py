"""The host: Python text that allocates, calls kernels and ATen in order, frees, and returns.

The text runs with a few names: `torch`'s allocation functions, the segments of the C file, the ATen operators and
nested arguments that cannot be written as literals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from ..loops.ir import Buffer, Extern, Loop, LoopProgram, Ref, SymbolicNumber
from ..schedule.memory_plan import Lifetime, MemoryPlan, plan_memory
from ..symbolic.expr import Symbol
from ..symbolic.symbolic_sizes import Extent, Size, hint_of


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """A run of kernels called at once; parameters: the tensors passed, arena ones included."""

    loops: tuple[Loop, ...]
    parameters: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class HostProgram:
    """The host function's text, the segments it calls as `segment_<n>`, and objects it needs by name."""

    text: str
    segments: tuple[Segment, ...]
    objects: dict[str, object]
    arena_bytes: Extent


@dataclass(slots=True)
class _HostBuilder:
    """Writes the host text of one program; lives for one call of `write_host`."""

    program: LoopProgram
    lines: list[str] = field(default_factory=list)
    objects: dict[str, object] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    read_by_loops: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()  # read by a step or given to the caller

    def literal(self, value: object) -> str:
        """Return Python text for a nested argument; what has no literal is passed as an object."""
        if isinstance(value, Ref):
            return local(value.name)
        if isinstance(value, Size):
            return repr(value)
        if isinstance(value, SymbolicNumber):
            return f"({value.text})"
        if isinstance(value, list):
            return "[" + ", ".join(self.literal(each) for each in value) + "]"
        if isinstance(value, tuple):
            return "(" + "".join(self.literal(each) + ", " for each in value) + ")"
        if value is None or isinstance(value, bool | int | str):
            return repr(value)
        name = f"object_{len(self.objects)}"
        self.objects[name] = value
        return name

    def reads_unknown(self, step: Extern) -> bool:
        """Return whether a call takes a tensor of a kind that loops do not know, a complex one for instance."""
        return any(name not in self.program.buffers for name in step.reads)


def local(name: str) -> str:
    """Return the host's variable for a tensor."""
    return f"v_{name}"


def has_points(loop: Loop) -> bool:
    """Return whether a loop stores anything: some kept point exists."""
    stored: Iterable[Symbol] = loop.kept
    return all(symbol.size for symbol in stored)


def _runs(program: LoopProgram) -> list[tuple[Loop, ...] | Extern]:
    """Return steps with neighbouring loops gathered."""
    result: list[tuple[Loop, ...] | Extern] = []
    for step in program.steps:
        if isinstance(step, Extern):
            result.append(step)
        elif not has_points(step):
            continue
        elif result and isinstance(result[-1], tuple):
            result[-1] = (*result[-1], step)
        else:
            result.append((step,))
    return result


def _needs_tensor(program: LoopProgram, runs: Sequence[tuple[Loop, ...] | Extern]) -> set[str]:
    """Return names that must be real tensors: seen by the caller, by ATen, or by more than one segment."""
    real = set(program.inputs) | set(program.constants) | set(program.output_names)
    seen: dict[str, int] = {}
    for number, run in enumerate(runs):
        if isinstance(run, Extern):
            real |= run.reads | run.writes
            continue
        for loop in run:
            for name in loop.reads | loop.writes:
                if seen.setdefault(name, number) != number:
                    real.add(name)
    return real


def _arena(run: tuple[Loop, ...], inside: set[str], buffers: dict[str, Buffer]) -> MemoryPlan:
    """Place the tensors that live only inside one segment."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for number, loop in enumerate(run):
        for name in (loop.reads | loop.writes) & inside:
            first.setdefault(name, number)
            last[name] = number
    return plan_memory(
        [
            Lifetime(name, buffers[name].span * buffers[name].dtype.itemsize, first[name], last[name])
            for name in sorted(first)
        ]
    )


def write_host(program: LoopProgram) -> HostProgram:
    """Return the host function `run(<inputs>)` as text with everything it names."""
    read = (name for step in program.steps if isinstance(step, Loop) for name in step.reads)
    used = program.output_names.union(*(step.reads for step in program.steps))
    builder = _HostBuilder(program, read_by_loops=frozenset(read), used=used)
    runs = _runs(program)
    real = _needs_tensor(program, runs)
    allocated = set(program.inputs) | set(program.constants)
    arena_bytes: Extent = 0
    last_use = _last_uses(runs, program)
    for number, run in enumerate(runs):
        if isinstance(run, Extern):
            for name in sorted(run.reads - allocated):  # written by loops without points, which are not run
                builder.lines.append(_allocation(program.buffers[name]))
                allocated.add(name)
            _write_extern(builder, run)
            allocated |= run.writes
        else:
            arena_bytes = max(arena_bytes, _write_segment(builder, run, real, allocated), key=hint_of)
        dead = [name for name, at in last_use.items() if at == number and name in real]
        if dead:
            builder.lines.append(f"del {', '.join(local(name) for name in sorted(dead))}")
    for name in sorted(program.output_names - allocated):  # outputs without elements
        builder.lines.append(_allocation(program.buffers[name]))
    outputs = "".join(builder.literal(output) + ", " for output in program.outputs)
    builder.lines.append(f"return ({outputs})")
    inputs = ", ".join([*(local(name) for name in program.inputs), *program.sizes])
    text = f"def run({inputs}):\n" + "".join(f"    {line}\n" for line in builder.lines)
    objects = {**builder.objects, **{local(name): value for name, value in program.constants.items()}}
    return HostProgram(text, tuple(builder.segments), objects, arena_bytes)


def _last_uses(runs: Sequence[tuple[Loop, ...] | Extern], program: LoopProgram) -> dict[str, int]:
    last: dict[str, int] = {}
    keep = set(program.inputs) | set(program.constants) | set(program.output_names)
    for number, run in enumerate(runs):
        for step in (run,) if isinstance(run, Extern) else run:
            for name in (step.reads | step.writes) - keep:
                last[name] = number
    return last


def _allocation(buffer: Buffer) -> str:
    return (
        f"{local(buffer.name)} = empty_strided({buffer.shape}, {buffer.strides}, dtype=torch.{str(buffer.dtype)[6:]}, "
        "device=cpu)"  # said: the default device may be another one
    )


def _write_extern(builder: _HostBuilder, step: Extern) -> None:
    target = f"call_{len(builder.objects)}"
    builder.objects[target] = step.target
    words = [builder.literal(arg) for arg in step.args]
    words += [f"{key}={builder.literal(value)}" for key, value in step.kwargs.items()]
    call = f"{target}({', '.join(words)})"
    if step.single:
        builder.lines.append(f"{local(step.results[0] or '_')} = {call}")
    elif any(step.results):
        names = ", ".join(local(name) if name else "_" for name in step.results)
        builder.lines.append(f"{names}, = {call}")
    else:
        builder.lines.append(call)
    if step.dtypes:
        for name, dtype in zip(step.results, step.dtypes, strict=True):
            if name in builder.used and name is not None and dtype is not None:
                _write_check(builder, step, name, dtype)


def _write_check(builder: _HostBuilder, step: Extern, name: str, dtype: torch.dtype) -> None:
    """Write the comparison of a call's result with what its shape rule promised; `as_promised` mends what it can.

    Where kernels read the result, memory layout, device and a lazy negation matter too.  Each question is a C call of
    its own: together they cost half of what comparing one tuple costs.
    """
    place, buffer = local(name), builder.program.buffers.get(name)
    faults, shape, strides = [f"{place}.dtype is not {dtype}"], None, None
    if buffer is not None:
        shape = buffer.shape
        faults.append(f"{place}.shape != {shape}")
    if buffer is not None and name in builder.read_by_loops:
        strides = buffer.strides
        faults.append(f"{place}.stride() != {strides}")
        if not str(step.target).startswith("aten."):  # ATen stays on the device of its arguments
            faults.append(f"not {place}.is_cpu")
        if builder.reads_unknown(step):  # nothing but an imaginary part of a conjugate is negated lazily
            faults.append(f"{place}.is_neg()")
    mended = f"as_promised({place}, {dtype}, {shape}, {strides}, {str(step.target)!r})"
    builder.lines.append(f"if {' or '.join(faults)}: {place} = {mended}")


def _write_segment(builder: _HostBuilder, run: tuple[Loop, ...], real: set[str], allocated: set[str]) -> Extent:
    """Write the call of one segment; returns the bytes of arena it needs."""
    buffers = builder.program.buffers
    touched = sorted({name for loop in run for name in loop.reads | loop.writes})
    inside = {name for name in touched if name not in real}
    plan = _arena(run, inside, buffers)
    for name in touched:
        if name in real and name not in allocated:
            builder.lines.append(_allocation(buffers[name]))
            allocated.add(name)
    if not isinstance(plan.arena_bytes, int) or plan.arena_bytes:
        builder.lines.append(f"arena = empty({plan.arena_bytes}, dtype=torch.uint8, device=cpu)")
        builder.lines.append("base = arena.data_ptr()")
    elif inside:
        builder.lines.append("base = 0")  # tensors without elements
    places = [f"base + {plan.offsets[name]}" if name in inside else f"{local(name)}.data_ptr()" for name in touched]
    number = len(builder.segments)
    builder.lines.append(f"failed = segment_{number}({', '.join([*places, *builder.program.counts])})")
    builder.lines.append("if failed: return on_failure(failed)")
    builder.segments.append(Segment(run, tuple(touched)))
    return plan.arena_bytes
