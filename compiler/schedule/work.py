"""How much a step of a program does: bytes read and written, floating-point operations.  For reports, not for choices.

Bytes are those of the tensors a step touches, each once: what a cache that holds everything would move.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import flop_registry

from ..base.nested import map_nested
from ..loops.body import Scalar
from ..loops.ir import Extern, Loop, LoopProgram, Ref
from ..loops.scalar_ops import SCALAR_OPS
from ..symbolic.expr import Symbol, symbols
from ..symbolic.symbolic_sizes import hint_of


@dataclass(frozen=True, slots=True)
class Work:
    """One step: bytes touched, floating-point operations (0 for an ATen call that torch's counter does not know)."""

    bytes: int
    flops: int


def work_of(step: Loop | Extern, program: LoopProgram) -> Work:
    """Return the work of one run of a step; dynamic sizes count as they were when the program was compiled."""
    flops = _flops_of_loop(step) if isinstance(step, Loop) else _flops_of_call(step, program)
    return Work(_bytes_of(step.reads | step.writes, program), flops)


def _bytes_of(names: Iterable[str], program: LoopProgram) -> int:
    known = [program.buffers[name] for name in names if name in program.buffers]
    return sum(hint_of(buffer.numel) * buffer.dtype.itemsize for buffer in known)


def _flops_of_loop(loop: Loop) -> int:
    """Count one for each arithmetic operation on floats at each point where it is done."""
    kept, reduced = _points(loop.kept), _points(loop.reduced)
    inner = frozenset(loop.reduced)
    depends: dict[int, bool] = {}
    total = 0
    for scalar in loop.scalars():  # arguments come before their users
        inside = scalar.name == "scan" or (
            scalar.name != "reduce"
            and (any(depends[id(arg)] for arg in scalar.args) or bool(_variables(scalar) & inner))
        )
        depends[id(scalar)] = inside
        if scalar.name in ("reduce", "scan"):
            total += kept * reduced
        elif scalar.name in SCALAR_OPS and scalar.args[0].dtype.is_floating_point:
            total += (2 if scalar.name == "fma" else 1) * kept * (reduced if inside else 1)
    return total


def _points(variables: Iterable[Symbol]) -> int:
    points = 1
    for variable in variables:
        points *= hint_of(variable.size)
    return points


def _variables(scalar: Scalar) -> frozenset[Symbol]:
    if scalar.name == "load":
        return frozenset().union(*(symbols(part) for part in scalar.access.index))
    return symbols(scalar.expression) if scalar.name == "index" else frozenset()


def _without_data(name: str, program: LoopProgram) -> object:
    """Return a tensor of the same shape; one that is no buffer is a view that a call gives."""
    buffer = program.buffers.get(name)
    if buffer is not None:
        return torch.empty([hint_of(size) for size in buffer.shape], dtype=buffer.dtype, device="meta")
    made_by = next((step for step in program.steps if isinstance(step, Extern) and step.results == (name,)), None)
    if made_by is None:
        return None
    args, kwargs = map_nested(
        (made_by.args, made_by.kwargs),
        lambda leaf: _without_data(leaf.name, program) if isinstance(leaf, Ref) else leaf,
    )
    return made_by.target(*args, **kwargs)


def _flops_of_call(step: Extern, program: LoopProgram) -> int:
    """Ask torch's own counter of operations, which knows matrix products, convolutions and attention."""
    packet = getattr(step.target, "overloadpacket", None)
    count = flop_registry.get(packet)
    if count is None:
        return 0

    def like(leaf: object) -> object:
        return _without_data(leaf.name, program) if isinstance(leaf, Ref) else leaf

    try:
        results = [like(Ref(name)) for name in step.results if name]
        out = results[0] if step.single else tuple(results)
        return int(count(*map_nested(step.args, like), **map_nested(step.kwargs, like), out_val=out))
    except (
        TypeError,
        ValueError,
        IndexError,
        AttributeError,
        RuntimeError,
    ):  # arguments that its formula does not take
        return 0
