"""The invariants of a loop program, as a table: named checks, and the stages after which each holds.

A fault names the check, the stage, the step with its neighbours, and the user's line that the step came from, so a
broken pass is caught where it is.  docs/ir-checks.md is this table, rendered.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

from ..base.errors import InternalError
from ..symbolic.expr import Atom, Expr, Quotient, Symbol, symbols
from ..symbolic.index_space import digits_of, flat_position, product, row_major
from ..symbolic.symbolic_sizes import Extent, Size, hint_of, same
from .body import Access, Scalar
from .ir import Extern, Loop, LoopProgram, Step, refs_in
from .scalar_ops import REDUCTIONS, SCALAR_OPS, SCANS


class LoopStage(enum.Enum):
    """Where a loop program is verified under `Options(verify=True)`."""

    LOWERING = "lowering"
    PASS = "each scheduling pass"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong; step: with which, None where it is the program's outputs."""

    text: str
    step: Step | None = None


# Yields what is wrong with a program; `before` is the program that a pass was given.
Rule = Callable[[LoopProgram, LoopProgram], Iterator[Fault]]


@dataclass(frozen=True, slots=True)
class LoopCheck:
    """A named invariant and the stages after which it holds."""

    rule: Rule
    stages: frozenset[LoopStage]

    @property
    def name(self) -> str:
        """The name of the rule."""
        return str(getattr(self.rule, "__name__", self.rule))


def verify(program: LoopProgram, after: str, before: LoopProgram | None = None) -> LoopProgram:
    """Return program unchanged, or raise InternalError with the first broken invariant.

    after: "lowering", or the name of the scheduling pass that made the program out of `before`.
    """
    stage = LoopStage.LOWERING if before is None else LoopStage.PASS
    for check in CHECKS:
        if stage not in check.stages:
            continue
        for fault in check.rule(program, before or program):
            raise InternalError(
                f"after {after}, {check.name.replace('_', ' ')} is broken: {fault.text}",
                where=_user_line(fault.step),
                why=_neighbours(program, fault.step),
                hint="please report it with the graph; backend='aot_eager' runs without this stage",
            )
    return program


def _user_line(step: Step | None) -> str:
    """Return the user's line that a step came from, empty where nobody knows."""
    return "" if step is None or not step.origins else step.origins[0].strip()


def _neighbours(program: LoopProgram, step: Step | None) -> str:
    """Return the step between the one before it and the one behind it, each by what it reads and writes."""
    if step is None or step not in program.steps:
        return ""
    place = program.steps.index(step)
    return "; ".join(_outline(each) for each in program.steps[max(place - 1, 0) : place + 2])


def _outline(step: Step) -> str:
    return f"{step.name}({', '.join(sorted(step.reads))}) -> {', '.join(sorted(step.writes))}"


def _loops(program: LoopProgram) -> Iterator[Loop]:
    return (step for step in program.steps if isinstance(step, Loop))


def every_tensor_is_made_before_it_is_read(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """A step reads only inputs, constants and what earlier steps wrote."""
    ready = {*program.inputs, *program.constants}
    for step in program.steps:
        yield from (Fault(f"{step.name} reads {name}", step) for name in sorted(step.reads - ready))
        ready |= step.writes
    yield from (Fault(f"output {name}") for name in sorted(program.output_names - ready))


def every_tensor_is_whole_before_it_is_read(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """A tensor that loops write piece by piece is read, called with or given out only when all pieces are there."""
    missing: dict[str, int] = {}
    for step in program.steps:
        yield from (Fault(f"{step.name} reads {name}", step) for name in sorted(_partial(missing, step.reads)))
        for store in step.stores if isinstance(step, Loop) else ():
            if not store.whole:
                name = store.access.buffer
                used = frozenset[Symbol]().union(*map(symbols, store.access.index))
                left = missing.get(name, hint_of(program.buffers[name].numel))
                missing[name] = left - prod(hint_of(symbol.size) for symbol in used)
    yield from (Fault(f"output {name}") for name in sorted(_partial(missing, program.output_names)))


def _partial(missing: Mapping[str, int], names: frozenset[str]) -> Iterator[str]:
    return (name for name in names if missing.get(name, 0) > 0)


def every_buffer_is_known(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """A loop touches only buffers with a layout."""
    for loop in _loops(program):
        unknown = sorted((loop.reads | loop.writes) - set(program.buffers))
        yield from (Fault(f"{loop.name}: {name}", loop) for name in unknown)


def every_index_is_in_bounds(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """Each dimension's index stays in its range for every point of the loop."""
    for loop in _loops(program):
        if any(hint_of(symbol.size) == 0 for symbol in (*loop.kept, *loop.reduced)):
            continue
        accesses = [store.access for store in loop.stores] + [load.access for load in loop.loads()]
        for access in accesses:
            yield from _out_of_bounds(loop, access, program)


def _out_of_bounds(loop: Loop, access: Access, program: LoopProgram) -> Iterator[Fault]:
    shape = program.buffers[access.buffer].shape
    if len(shape) != len(access.index):
        text = f"{loop.name}: {access.buffer} has {len(shape)} dimensions, index has {len(access.index)}"
        yield Fault(text, loop)
        return
    for dimension, (part, size) in enumerate(zip(access.index, shape, strict=True)):
        low, high = _bounds_at_hints(part)
        if low < 0 or (high >= hint_of(size) and _is_tight(part)):
            yield Fault(f"{loop.name}: {access.buffer} dimension {dimension} of size {size} indexed by {part}", loop)


def _bounds_at_hints(part: Expr) -> tuple[int, int]:
    """Return inclusive bounds of an index where dynamic sizes are their hints: those of a quotient are then numbers."""
    low = high = hint_of(part.constant)
    for atom, factor in part.terms:
        ends = [hint_of(factor) * end for end in _ends_at_hints(atom)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def _ends_at_hints(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Symbol):
        return 0, max(hint_of(atom.size) - 1, 0)
    (low, high), divisor = _bounds_at_hints(atom.value), hint_of(atom.divisor)
    if isinstance(atom, Quotient):
        return low // divisor, high // divisor
    return (low, high) if low >= 0 and high < divisor else (0, divisor - 1)


def _is_tight(part: Expr) -> bool:
    """Whether the bounds of an index are reached: those of quotients by dynamic sizes need not be."""
    return all(isinstance(atom, Symbol) or not isinstance(atom.divisor, Size) for atom, _ in part.terms)


def every_index_variable_belongs_to_the_loop(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """An index mentions only the loop's variables and the load's own looked-up ones."""
    for loop in _loops(program):
        known = {*loop.kept, *loop.reduced}
        for access in [store.access for store in loop.stores] + [load.access for load in loop.loads()]:
            for part in access.index:
                strange = sorted(symbol.name for symbol in symbols(part) - known - set(access.looked_up))
                yield from (Fault(f"{loop.name}: {name}", loop) for name in strange)


def every_point_is_stored_once(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """A store's index counts every element of its buffer once, or is declared to write a part."""
    for loop in _loops(program):
        for store in loop.stores:
            buffer = program.buffers[store.access.buffer]
            if not store.whole or hint_of(buffer.numel) == 0:
                continue
            flat = flat_position(store.access.index, row_major(buffer.shape))
            if digits_of(flat, sorted(symbols(flat), key=lambda s: s.name)) is None:
                yield Fault(f"{loop.name}: {buffer.name}[{store.access.index}]", loop)


def every_scalar_has_its_arity_and_types(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """Operations take the number and kinds of arguments their table entry says."""
    for loop in _loops(program):
        for scalar in loop.scalars():
            rule = _operation_faults if scalar.name in SCALAR_OPS else SCALAR_FORMS.get(scalar.name, _unknown_faults)
            yield from (Fault(f"{loop.name}: {text}", loop) for text in rule(scalar, program))


def every_scan_runs_along_one_variable(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """A loop with a result so far has one reduced variable: the order of several is for a writer to choose."""
    for loop in _loops(program):
        variables = [symbol for symbol in loop.reduced if not same(symbol.size, 1)]
        if loop.scans and len(variables) != 1:
            yield Fault(f"{loop.name} reduces over {[symbol.name for symbol in variables]}", loop)


ScalarRule = Callable[[Scalar, LoopProgram], Iterator[str]]


def _load_faults(scalar: Scalar, program: LoopProgram) -> Iterator[str]:
    if scalar.dtype != program.buffers[scalar.access.buffer].dtype:
        yield f"load of {scalar.access.buffer} as {scalar.dtype}"


def _reduce_faults(scalar: Scalar, _program: LoopProgram) -> Iterator[str]:
    if scalar.kind not in REDUCTIONS:
        yield f"reduction {scalar.kind}"


def _scan_faults(scalar: Scalar, _program: LoopProgram) -> Iterator[str]:
    if scalar.kind not in SCANS:
        yield f"scan {scalar.kind}"
    yield from _one_argument_faults(scalar, _program)


def _operation_faults(scalar: Scalar, _program: LoopProgram) -> Iterator[str]:
    operation = SCALAR_OPS[scalar.name]
    compared = scalar.args[1:] if scalar.name == "where" else scalar.args
    if len(scalar.args) != operation.arity:
        yield f"{scalar.name} has {len(scalar.args)} arguments"
    elif len({arg.dtype for arg in compared}) > 1:
        yield f"{scalar.name} mixes {[arg.dtype for arg in compared]}"
    elif compared[0].dtype not in operation.dtypes:
        yield f"{scalar.name} on {compared[0].dtype}"


def _one_argument_faults(scalar: Scalar, _program: LoopProgram) -> Iterator[str]:
    if len(scalar.args) != 1:
        yield f"{scalar.name} has {len(scalar.args)} arguments"


def _leaf_faults(scalar: Scalar, _program: LoopProgram) -> Iterator[str]:
    if scalar.args:
        yield f"{scalar.name} has arguments"


def _unknown_faults(scalar: Scalar, _program: LoopProgram) -> Iterator[str]:
    yield f"unknown operation {scalar.name}"


# What a loop body is made of besides the operations of `scalar_ops`.
SCALAR_FORMS: Mapping[str, ScalarRule] = {
    "load": _load_faults,
    "reduce": _reduce_faults,
    "scan": _scan_faults,
    "constant": _leaf_faults,
    "index": _leaf_faults,
    "cast": _one_argument_faults,
    "checked": _one_argument_faults,
}


def every_extern_names_its_results(program: LoopProgram, _before: LoopProgram) -> Iterator[Fault]:
    """An extern's arguments are tensors of the program."""
    known = {*program.inputs, *program.constants, *(n for step in program.steps for n in step.writes)}
    for step in program.steps:
        if isinstance(step, Extern):
            unknown = [name for name in refs_in((step.args, step.kwargs)) if name not in known]
            yield from (Fault(f"{step.name}: {name}", step) for name in unknown)


def _points(loop: Loop) -> Extent:
    """Return over how many points a loop reduces."""
    return product(symbol.size for symbol in loop.reduced)


def _whole(loop: Loop) -> set[str]:
    """Return the tensors of which no other loop writes a piece."""
    return {store.access.buffer for store in loop.stores if store.whole}


def reductions_keep_their_points(program: LoopProgram, before: LoopProgram) -> Iterator[Fault]:
    """A pass leaves over how many points the reductions behind a tensor run, which one loop writes."""
    points = {buffer: _points(loop) for loop in _loops(before) if loop.reduces for buffer in _whole(loop)}
    for loop in _loops(program):
        for buffer in sorted(_whole(loop) & set(points)) if loop.reduces else ():
            if not same(_points(loop), points[buffer]):
                yield Fault(f"{loop.name} reduces {_points(loop)} points for {buffer}, not {points[buffer]}", loop)


_ALWAYS = frozenset(LoopStage)

CHECKS: tuple[LoopCheck, ...] = (
    LoopCheck(every_tensor_is_made_before_it_is_read, _ALWAYS),
    LoopCheck(every_tensor_is_whole_before_it_is_read, _ALWAYS),
    LoopCheck(every_buffer_is_known, _ALWAYS),
    LoopCheck(every_index_is_in_bounds, _ALWAYS),
    LoopCheck(every_index_variable_belongs_to_the_loop, _ALWAYS),
    LoopCheck(every_point_is_stored_once, _ALWAYS),
    LoopCheck(every_scalar_has_its_arity_and_types, _ALWAYS),
    LoopCheck(every_scan_runs_along_one_variable, _ALWAYS),
    LoopCheck(every_extern_names_its_results, _ALWAYS),
    LoopCheck(reductions_keep_their_points, frozenset({LoopStage.PASS})),
)
