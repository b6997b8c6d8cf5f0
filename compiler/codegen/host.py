"""The host: Python text that allocates, calls kernels and ATen in order, frees, and returns.

The text runs with a few names: `torch`'s allocation functions, the segments of the C file, the ATen operators and
nested arguments that cannot be written as literals.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from ..graph.facts import facts_of, is_random
from ..graph.promises import workspace_of
from ..loops.ir import Buffer, Extern, Loop, LoopProgram, Ref, SymbolicNumber
from ..schedule.execution_plan import ExecutionPlan, Segment
from ..symbolic.symbolic_sizes import Size
from .host_call import HostProgram, local, on_device
from .memory.in_place import taken_over


@dataclass(slots=True)
class _HostBuilder:
    """Writes the host text of one program; lives for one call of `write_host`."""

    program: LoopProgram
    lines: list[str] = field(default_factory=list)
    objects: dict[str, object] = field(default_factory=dict)
    segments: int = 0  # written so far
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


def write_host(plan: ExecutionPlan, *, timed: bool = False) -> HostProgram:
    """Return the host function `run([<inputs>])` as text with everything it names; it empties the list.

    timed: it calls `clock()` before each step and `note(<number of the step>, <what clock gave>)` behind it.
    """
    program = plan.program
    read = (name for step in program.steps if isinstance(step, Loop) for name in step.reads)
    used = program.output_names.union(*(step.reads for step in program.steps))
    builder = _HostBuilder(program, read_by_loops=frozenset(read), used=used)
    allocated = set(program.inputs) | set(program.constants)
    if plan.unread:
        builder.lines.append(f"del {', '.join(map(local, plan.unread))}")
    for number, (step, ends) in enumerate(zip(plan.steps, plan.ends, strict=True)):
        if timed:
            builder.lines.append("started = clock()")
        if isinstance(step, Extern):
            for name in sorted(step.reads - allocated):  # written by loops without points, which are not run
                builder.lines.append(_allocation(program.buffers[name]))
                allocated.add(name)
            _write_extern(builder, step)
            allocated |= step.writes
        else:
            _write_segment(builder, step, allocated, plan)
        if timed:
            builder.lines.append(f"note({number}, started)")
        if ends:
            builder.lines.append(f"del {', '.join(map(local, ends))}")
    for name in sorted(program.output_names - allocated):  # outputs without elements
        builder.lines.append(_allocation(program.buffers[name]))
    outputs = "".join(builder.literal(output) + ", " for output in program.outputs)
    builder.lines.append(f"return ({outputs})")
    inputs = "".join(f"{name}, " for name in (*map(local, program.inputs), *program.sizes))
    taken = [f"{inputs}= given" if inputs else "", "given.clear()"]  # what is left is for the host alone to free
    text = "def run(given):\n" + "".join(f"    {line}\n" for line in (*filter(None, taken), *builder.lines))
    objects = {**builder.objects, **{local(name): value for name, value in program.constants.items()}}
    calls = [step for step in program.steps if isinstance(step, Extern)]
    repeats = all(map(_can_repeat, calls))
    fits, layouts = _fits(program)
    return HostProgram(
        text,
        objects,
        fits,
        layouts,
        program.device,
        len(plan.segments),
        calls=bool(calls),
        repeats=repeats,
        draws=repeats and any(is_random(step.target) for step in calls),
        sizes=len(program.sizes),
    )


def _can_repeat(step: Extern) -> bool:
    """Return whether a call may run twice, the generator being put back: it writes to no argument."""
    facts = facts_of(step.target)
    return not step.ordered or (facts is not None and not facts.mutates)


def _fits(program: LoopProgram) -> tuple[str, dict[str, object]]:
    """Return the text of the function of the inputs that says whether they are laid out as the code was written for.

    Beside it the objects that the text names.
    """
    layouts: dict[str, object] = {}
    conditions = []
    anywhere, workspaces = _read_wherever_they_are(program), _workspaces(program)
    for name in program.inputs:
        buffer = program.buffers.get(name)
        if buffer is None or name in workspaces:
            continue
        place, layout = local(name), f"({buffer.shape}, {buffer.strides}, {buffer.dtype})"
        if not program.sizes:
            layout = f"layout_{name}"
            layouts[layout] = (buffer.shape, buffer.strides, buffer.dtype)
        conditions.append(f"({place}.shape, {place}.stride(), {place}.dtype) == {layout}")
        if name not in anywhere:
            conditions.append(on_device(place, program.device))
        conditions.append(f"not {place}.is_neg()")
    parameters = ", ".join([*map(local, program.inputs), *program.sizes])
    return f"lambda {parameters}: {' and '.join(conditions) or True}", layouts


def _workspaces(program: LoopProgram) -> frozenset[str]:
    """Return the inputs that calls take as their workspace and nothing else reads: the library says how large it is."""
    read: set[str] = set()
    taken: set[str] = set()
    for step in program.steps:
        workspace = workspace_of(step.target, step.args) if isinstance(step, Extern) else None
        names = {workspace.name} if isinstance(workspace, Ref) else set[str]()
        taken |= names
        read |= step.reads - names
    return frozenset(taken - read - program.output_names)


def _read_wherever_they_are(program: LoopProgram) -> frozenset[str]:
    """Return the inputs that may lie on another device than promised: single numbers, for calls beside whole tensors.

    The seed of an attention that drops nothing is one: its operator gives it on the CPU, and its shape rule does not.
    """

    def is_single(name: str) -> bool:
        return name not in program.buffers or not program.buffers[name].shape

    single = {name for name in program.inputs if is_single(name)}
    for step in program.steps:
        if isinstance(step, Loop) or all(map(is_single, step.reads)):
            single -= step.reads
    return frozenset(single - program.output_names)


def _allocation(buffer: Buffer) -> str:
    return (
        f"{local(buffer.name)} = empty_strided({buffer.shape}, {buffer.strides}, dtype=torch.{str(buffer.dtype)[6:]}, "
        "device=device)"  # said: the default device may be another one
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
            faults.append(f"not {on_device(place, builder.program.device)}")
        if builder.reads_unknown(step):  # nothing but an imaginary part of a conjugate is negated lazily
            faults.append(f"{place}.is_neg()")
    mended = f"as_promised({place}, {dtype}, {shape}, {strides}, {str(step.target)!r}, device)"
    builder.lines.append(f"if {' or '.join(faults)}: {place} = {mended}")


def _write_segment(builder: _HostBuilder, segment: Segment, allocated: set[str], plan: ExecutionPlan) -> None:
    """Write the call of one segment, the allocation of its results before it."""
    arena = segment.arena
    for name in segment.parameters:
        if name not in arena.offsets and name not in allocated and name not in plan.in_place:
            builder.lines.append(_allocation(builder.program.buffers[name]))
            allocated.add(name)
    for name, old in taken_over(plan, segment):
        buffer, before = builder.program.buffers[name], builder.program.buffers[old]
        alike = (buffer.shape, buffer.strides) == (before.shape, before.strides)
        seen = "" if alike else f".as_strided({buffer.shape}, {buffer.strides})"
        builder.lines.append(f"{local(name)} = {local(old)}{seen}")
        allocated.add(name)
    if not isinstance(arena.arena_bytes, int) or arena.arena_bytes:
        builder.lines.append(f"arena = empty({arena.arena_bytes}, dtype=torch.uint8, device=device)")
        builder.lines.append("base = arena.data_ptr()")
    elif arena.offsets:
        builder.lines.append("base = 0")  # tensors without elements
    places = [
        f"base + {arena.offsets[name]}" if name in arena.offsets else f"{local(name)}.data_ptr()"
        for name in segment.parameters
    ]
    arguments = ", ".join([*places, *builder.program.counts])
    builder.lines.append(f"failed = segment_{builder.segments}({arguments})")
    builder.lines.append("if failed: return on_failure(failed)")
    if not isinstance(arena.arena_bytes, int) or arena.arena_bytes:
        builder.lines.append("del arena")
    builder.segments += 1
