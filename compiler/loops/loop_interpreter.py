"""The meaning of a loop program: run it with torch tensors, one scalar operation at a time over all points.

Plain on purpose.  Each scalar operation runs as its table entry says, on tensors that span the loop's points, so a
difference from eager is a fault of lowering and a difference from C is a fault of code generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch

from ..symbolic.expr import Atom, Expr, Quotient, Symbol
from ..symbolic.symbolic_sizes import fixed
from .body import Scalar
from .instance import at_sizes
from .ir import Buffer, Extern, Loop, LoopProgram, LoopStore, Ref, Step
from .scalar_ops import SCALAR_OPS, identity
from .strided_access import strided_view


def interpret_program(program: LoopProgram, inputs: Sequence[torch.Tensor | float]) -> tuple[object, ...]:
    """Run a program on real tensors, and numbers for its dynamic sizes; returns the outputs as the graph nests them.

    Raises IndexError where a looked-up index is out of bounds, ZeroDivisionError for an integer division by zero.
    """
    count = len(program.inputs)
    arguments = [value for value in inputs[:count] if isinstance(value, torch.Tensor)]
    if program.sizes:
        numbers = [value for value in inputs[count:] if not isinstance(value, torch.Tensor)]
        point = dict(zip(program.sizes, numbers, strict=True))
        program = at_sizes(program, point)
    tensors = dict(zip(program.inputs, arguments, strict=True)) | dict(program.constants)
    for step in program.steps:
        run_step(step, program, tensors)
    return tuple(fill(output, tensors) for output in program.outputs)


def run_step(step: Step, program: LoopProgram, tensors: dict[str, torch.Tensor]) -> None:
    """Run one step; new tensors join `tensors`."""
    if isinstance(step, Extern):
        run_extern(step, tensors)
        return
    for name in step.writes:
        if name not in tensors:
            tensors[name] = allocate(program.buffers[name])
    run_loop(step, tensors)


@dataclass(frozen=True, slots=True, eq=False)
class InterpretedLoop:
    """A loop as a callable that takes the tensors of `reads` and gives new ones for `writes`: a kernel without C."""

    loop: Loop
    buffers: Mapping[str, Buffer]
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    def __call__(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run the loop."""
        tensors = dict(zip(self.reads, values, strict=True))
        tensors |= {name: allocate(self.buffers[name]) for name in self.writes}
        run_loop(self.loop, tensors)
        return tuple(tensors[name] for name in self.writes)


def allocate(buffer: Buffer) -> torch.Tensor:
    """Return an uninitialised tensor with a buffer's shape and strides."""
    shape, strides = tuple(map(fixed, buffer.shape)), tuple(map(fixed, buffer.strides))
    return torch.empty_strided(shape, strides, dtype=buffer.dtype)


def run_extern(step: Extern, tensors: dict[str, torch.Tensor]) -> None:
    """Call ATen and name the results."""
    args = [fill(arg, tensors) for arg in step.args]
    result = step.target(*args, **{key: fill(value, tensors) for key, value in step.kwargs.items()})
    results = [result] if step.single else list(result) if isinstance(result, tuple | list) else []
    for name, value in zip(step.results, results, strict=False):
        if name is not None and isinstance(value, torch.Tensor):
            tensors[name] = value


def fill(value: object, tensors: Mapping[str, torch.Tensor]) -> object:
    """Return nested arguments with tensors in place of their names."""
    if isinstance(value, Ref):
        return tensors[value.name]
    if isinstance(value, list | tuple):
        return type(value)([fill(each, tensors) for each in value])
    return value


def run_loop(loop: Loop, tensors: Mapping[str, torch.Tensor]) -> None:
    """Run one loop over all its points at once."""
    variables = [*loop.kept, *loop.reduced]
    sizes = [symbol.size for symbol in variables]
    grid = {
        symbol: torch.arange(fixed(symbol.size)).reshape([-1 if n == m else 1 for m in range(len(sizes))])
        for n, symbol in enumerate(variables)
    }
    values: dict[int, torch.Tensor] = {}
    for scalar in loop.scalars():
        values[id(scalar)] = _value(scalar, values, tensors, grid, loop)
    for store in loop.stores:
        _store(store, values[id(store.value)], tensors, grid)


def _value(
    scalar: Scalar,
    values: Mapping[int, torch.Tensor],
    tensors: Mapping[str, torch.Tensor],
    grid: Mapping[Symbol, torch.Tensor],
    loop: Loop,
) -> torch.Tensor:
    args = [values[id(arg)] for arg in scalar.args]
    if scalar.name == "constant":
        if not isinstance(scalar.detail, float | int):
            raise TypeError(f"constant {scalar.detail!r} is not a number")
        return torch.full([1] * len(grid), scalar.detail, dtype=scalar.dtype)
    if scalar.name == "index":
        return _place(scalar.expression, grid).to(scalar.dtype).reshape(_rank(scalar.expression, grid))
    if scalar.name == "cast":
        return args[0].to(scalar.dtype)
    if scalar.name == "checked":
        if not isinstance(scalar.detail, int) or bool(((args[0] < 0) | (args[0] >= scalar.detail)).any()):
            raise IndexError(f"index out of range for a dimension of size {scalar.detail}")
        return args[0]
    if scalar.name == "load":
        loaded = _load(scalar, args, tensors, grid)
        return loaded.clone() if scalar.access.buffer in loop.writes else loaded  # it may be a view
    if scalar.name == "reduce":
        return reduce_points(scalar, args, loop)
    if scalar.name == "scan":
        return scan_points(scalar, args[0], loop)
    if scalar.name == "trunc_div" and bool((args[1] == 0).any()):
        raise ZeroDivisionError("integer division by zero")
    return SCALAR_OPS[scalar.name].meaning(*args)


def _rank(value: Expr, grid: Mapping[Symbol, torch.Tensor]) -> list[int]:
    placed = _place(value, grid)
    return list(placed.shape) if placed.dim() else [1] * len(grid)


def _place(value: Expr, grid: Mapping[Symbol, torch.Tensor]) -> torch.Tensor:
    result = torch.tensor(fixed(value.constant))
    for atom, factor in value.terms:
        result = result + fixed(factor) * _atom(atom, grid)
    return result


def _atom(atom: Atom, grid: Mapping[Symbol, torch.Tensor]) -> torch.Tensor:
    if isinstance(atom, Symbol):
        return grid[atom]
    inner = _place(atom.value, grid)
    divisor = fixed(atom.divisor)
    return inner // divisor if isinstance(atom, Quotient) else inner % divisor


def _load(
    scalar: Scalar,
    args: Sequence[torch.Tensor],
    tensors: Mapping[str, torch.Tensor],
    grid: Mapping[Symbol, torch.Tensor],
) -> torch.Tensor:
    access = scalar.access
    places = dict(grid)
    empty = any(symbol.size == 0 for symbol in grid)
    for symbol, value in zip(access.looked_up, args, strict=True):
        if not empty and bool(((value < 0) | (value >= fixed(symbol.size))).any()):
            raise IndexError(f"index out of range for a dimension of size {symbol.size} of {access.buffer}")
        places[symbol] = value.to(torch.int64)
    tensor = tensors[access.buffer].detach()
    if not tensor.dim():
        return tensor.reshape([1] * len(grid))
    view = None if access.looked_up else strided_view(tensor, access.index, list(grid))
    if view is not None:
        return view
    index = [_place(part, places) for part in access.index]
    shape = _common_shape([*(part.shape for part in index), torch.Size((1,) * len(grid))])
    return tensor[tuple(part.expand(shape) for part in index)]


def _common_shape(shapes: Sequence[torch.Size]) -> torch.Size:
    """Return the shape that all broadcast to; scalars have rank zero."""
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return torch.Size(0 if 0 in sizes else max(sizes) for sizes in zip(*padded, strict=True))


def reduce_points(scalar: Scalar, args: Sequence[torch.Tensor], loop: Loop) -> torch.Tensor:
    """Return the reduction of a value (and the places of its points) over the loop's reduced points; the rank stays."""
    kept, count = len(loop.kept), len(loop.kept) + len(loop.reduced)
    sizes = [fixed(symbol.size) for symbol in (*loop.kept, *loop.reduced)]
    shape = _common_shape([arg.shape for arg in args])
    lead = shape[:kept]
    full, *places = (arg.expand([*lead, *sizes[kept:]]).reshape([*lead, prod(sizes[kept:])]) for arg in args)
    kind = scalar.kind
    if kind == "sum":
        result = full.sum(-1, dtype=scalar.dtype)
    elif kind == "prod":
        result = full.to(scalar.dtype).prod(-1)
    elif full.shape[-1] == 0:
        result = torch.full(lead, identity(kind, scalar.dtype), dtype=scalar.dtype)
    elif kind in ("max", "min"):
        result = full.amax(-1) if kind == "max" else full.amin(-1)
    elif kind in ("any", "all"):
        result = full.any(-1) if kind == "any" else full.all(-1)
    else:
        result = first_place(kind, full, places[0])
    return result.reshape([*lead, *([1] * (count - kept))])


def scan_points(scalar: Scalar, value: torch.Tensor, loop: Loop) -> torch.Tensor:
    """Return at each reduced point of a loop the reduction of all up to it; sizes of the reduced variables as given."""
    kept = len(loop.kept)
    sizes = [fixed(symbol.size) for symbol in loop.reduced]
    lead = value.shape[:kept]
    full = value.expand([*lead, *sizes]).reshape([*lead, prod(sizes)])
    return _SO_FAR[scalar.kind](full, scalar.dtype).reshape([*lead, *sizes])


_SO_FAR: Mapping[str, Callable[[torch.Tensor, torch.dtype], torch.Tensor]] = {
    "sum": lambda full, dtype: full.cumsum(-1, dtype=dtype),
    "prod": lambda full, dtype: full.cumprod(-1, dtype=dtype),
    "max": lambda full, dtype: full.to(dtype).cummax(-1).values,
    "min": lambda full, dtype: full.to(dtype).cummin(-1).values,
    "logsumexp": lambda full, dtype: full.to(dtype).logcumsumexp(-1),
}


def first_place(kind: str, values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Return the smallest place among the extremes along the last dimension; NaN is the extreme of all."""
    best = values.amax(-1, keepdim=True) if kind == "argmax" else values.amin(-1, keepdim=True)
    chosen = (values == best) | (values != values)
    return torch.where(chosen, places, torch.iinfo(torch.int64).max).amin(-1)


def _store(
    store: LoopStore,
    value: torch.Tensor,
    tensors: Mapping[str, torch.Tensor],
    grid: Mapping[Symbol, torch.Tensor],
) -> None:
    target = tensors[store.access.buffer].detach()
    if not target.dim():
        if value.numel():
            target.copy_(value.reshape(()))
        return
    view = strided_view(target, store.access.index, list(grid))
    if view is not None and _common_shape([view.shape, value.shape]) == view.shape:
        view.copy_(value)
        return
    index = [_place(part, grid) for part in store.access.index]
    shape = _common_shape([*(part.shape for part in index), value.shape])
    target[tuple(part.expand(shape) for part in index)] = value.expand(shape)
