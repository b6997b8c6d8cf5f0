"""The invariants of a loop program, each a small named check that yields what is wrong.

Raises InternalError from `verify`, naming the check, the stage and the step, so a broken pass is caught where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..base.errors import InternalError
from ..symbolic.expr import Expr, Symbol, bounds, symbols
from ..symbolic.index_space import digits_of, flat_position, row_major
from ..symbolic.symbolic_sizes import Size, hint_of
from .body import Access, Scalar
from .ir import Extern, Loop, LoopProgram, refs_in
from .scalar_ops import REDUCTIONS, SCALAR_OPS

Check = Callable[[LoopProgram], Iterator[str]]
CHECKS: list[Check] = []


def check(rule: Check) -> Check:
    """Register a named invariant."""
    CHECKS.append(rule)
    return rule


def verify(program: LoopProgram, stage: str) -> LoopProgram:
    """Return program unchanged, or raise InternalError with the first broken invariant."""
    for rule in CHECKS:
        for fault in rule(program):
            raise InternalError(
                f"after {stage}, {rule.__name__.replace('_', ' ')} is broken: {fault}",
                hint="please report it with the graph; backend='aot_eager' runs without this stage",
            )
    return program


def _loops(program: LoopProgram) -> Iterator[Loop]:
    return (step for step in program.steps if isinstance(step, Loop))


@check
def every_tensor_is_made_before_it_is_read(program: LoopProgram) -> Iterator[str]:
    """A step reads only inputs, constants and what earlier steps wrote."""
    ready = {*program.inputs, *program.constants}
    for step in program.steps:
        yield from (f"{step.name} reads {name}" for name in step.reads - ready)
        ready |= step.writes
    yield from (f"output {name}" for name in program.output_names - ready)


@check
def every_buffer_is_known(program: LoopProgram) -> Iterator[str]:
    """A loop touches only buffers with a layout."""
    for loop in _loops(program):
        yield from (f"{loop.name}: {name}" for name in (loop.reads | loop.writes) - set(program.buffers))


@check
def every_index_is_in_bounds(program: LoopProgram) -> Iterator[str]:
    """Each dimension's index stays in its range for every point of the loop."""
    for loop in _loops(program):
        if any(hint_of(symbol.size) == 0 for symbol in (*loop.kept, *loop.reduced)):
            continue
        accesses = [store.access for store in loop.stores] + [load.access for load in loop.loads()]
        for access in accesses:
            yield from _out_of_bounds(loop, access, program)


def _out_of_bounds(loop: Loop, access: Access, program: LoopProgram) -> Iterator[str]:
    shape = program.buffers[access.buffer].shape
    if len(shape) != len(access.index):
        yield f"{loop.name}: {access.buffer} has {len(shape)} dimensions, index has {len(access.index)}"
        return
    for dimension, (part, size) in enumerate(zip(access.index, shape, strict=True)):
        low, high = bounds(part)
        if hint_of(low) < 0 or (hint_of(high) >= hint_of(size) and _is_tight(part)):
            yield f"{loop.name}: {access.buffer} dimension {dimension} of size {size} indexed by {part}"


def _is_tight(part: Expr) -> bool:
    """Whether the bounds of an index are reached: those of quotients by dynamic sizes need not be."""
    return all(isinstance(atom, Symbol) or not isinstance(atom.divisor, Size) for atom, _ in part.terms)


@check
def every_index_variable_belongs_to_the_loop(program: LoopProgram) -> Iterator[str]:
    """An index mentions only the loop's variables and the load's own looked-up ones."""
    for loop in _loops(program):
        known = {*loop.kept, *loop.reduced}
        for access in [store.access for store in loop.stores] + [load.access for load in loop.loads()]:
            for part in access.index:
                yield from (f"{loop.name}: {s.name}" for s in symbols(part) - known - set(access.looked_up))


@check
def every_point_is_stored_once(program: LoopProgram) -> Iterator[str]:
    """A store's index counts every element of its buffer once, or is declared to write a part."""
    for loop in _loops(program):
        for store in loop.stores:
            buffer = program.buffers[store.access.buffer]
            if not store.whole or hint_of(buffer.numel) == 0:
                continue
            flat = flat_position(store.access.index, row_major(buffer.shape))
            if digits_of(flat, sorted(symbols(flat), key=lambda s: s.name)) is None:
                yield f"{loop.name}: {buffer.name}[{store.access.index}]"


@check
def every_scalar_has_its_arity_and_types(program: LoopProgram) -> Iterator[str]:
    """Operations take the number and kinds of arguments their table entry says."""
    for loop in _loops(program):
        for scalar in loop.scalars():
            yield from (f"{loop.name}: {fault}" for fault in _scalar_faults(scalar, program))


def _scalar_faults(scalar: Scalar, program: LoopProgram) -> Iterator[str]:
    if scalar.name == "load":
        if scalar.dtype != program.buffers[scalar.access.buffer].dtype:
            yield f"load of {scalar.access.buffer} as {scalar.dtype}"
    elif scalar.name == "reduce":
        if scalar.kind not in REDUCTIONS:
            yield f"reduction {scalar.kind}"
    elif scalar.name in SCALAR_OPS:
        op = SCALAR_OPS[scalar.name]
        compared = scalar.args[1:] if scalar.name == "where" else scalar.args
        if len(scalar.args) != op.arity:
            yield f"{scalar.name} has {len(scalar.args)} arguments"
        elif len({arg.dtype for arg in compared}) > 1:
            yield f"{scalar.name} mixes {[arg.dtype for arg in compared]}"
        elif compared[0].dtype not in op.dtypes:
            yield f"{scalar.name} on {compared[0].dtype}"
    elif scalar.name not in ("constant", "index", "cast", "checked"):
        yield f"unknown operation {scalar.name}"


@check
def every_extern_names_its_results(program: LoopProgram) -> Iterator[str]:
    """An extern's arguments are tensors of the program."""
    known = {*program.inputs, *program.constants, *(n for step in program.steps for n in step.writes)}
    for step in program.steps:
        if isinstance(step, Extern):
            yield from (f"{step.name}: {name}" for name in refs_in((step.args, step.kwargs)) if name not in known)
