"""A loop program as Python that runs: plain for-loops over 0-dimensional tensors.

`run_text` executes a print with the few names it uses; the tests hold the print to the interpreter's answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import torch

from ..base.events import Artifact, record
from ..symbolic.expr import text as index_text
from ..symbolic.scaled_sizes import FUNCTIONS
from ..symbolic.symbolic_sizes import Extent
from .body import Access, Scalar, walk
from .ir import Extern, Loop, LoopProgram, Ref, Step
from .loop_interpreter import first_place
from .phases import Plan, plan_phases, roots_of
from .scalar_ops import SCALAR_OPS, identity


def dtype_text(dtype: torch.dtype) -> str:
    """Return a dtype without its module: `float32`."""
    return str(dtype).removeprefix("torch.")


def print_program(program: LoopProgram) -> str:
    """Return the whole program as the text of a function `program(op, <inputs and buffers>)` per step, in order."""
    return "\n".join(print_step(step, program) for step in program.steps)


def record_program(program: LoopProgram, stage: str) -> None:
    """Put the text of a program on record, as a stage left it."""
    text = print_program(program)
    record(Artifact(stage, "loops.py", "python", text))


def print_step(step: Step, program: LoopProgram) -> str:
    """Return one step as Python text."""
    if isinstance(step, Extern):
        return _print_extern(step)
    return print_loop(step, program)


def _print_extern(step: Extern) -> str:
    def shown(value: object) -> str:
        if isinstance(value, Ref):
            return value.name
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(shown, value)) + "]"
        return repr(value)

    words = [shown(arg) for arg in step.args] + [f"{key}={shown(value)}" for key, value in step.kwargs.items()]
    results = ", ".join(name or "_" for name in step.results) or "_"
    return f"{results} = {step.target}({', '.join(words)})"


def print_loop(loop: Loop, program: LoopProgram) -> str:
    """Return a loop as a Python function `<name>(op, <buffers>)` that runs it."""
    names = sorted(loop.reads | loop.writes)
    lines = [f"# {origin}" for origin in loop.origins]
    lines.append(f"def {loop.name}(op, {', '.join(names)}):")
    for name in names:
        buffer = program.buffers[name]
        lines.append(f"    # {name}: {dtype_text(buffer.dtype)}{list(buffer.shape)} strides {list(buffer.strides)}")
    lines += _LoopPrinter(loop).body()
    return "\n".join(lines) + "\n"


class _LoopPrinter:
    """Writes one loop; holds the names of its values."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.plan: Plan = plan_phases(loop)
        self.names = {id(scalar): f"t{n}" for n, scalar in enumerate(loop.scalars())}
        self.done: set[int] = set()

    def body(self) -> list[str]:
        lines = [f"{'    ' * (n + 1)}for {s.name} in range({s.size}):" for n, s in enumerate(self.loop.kept)]
        outer = "    " * (len(self.loop.kept) + 1)
        for number, phase in enumerate(self.plan.phases):
            lines += [f"{outer}{self.names[id(r)]}_all = []" for r in phase.reductions]
            deep = outer
            header = []
            for symbol in self.loop.reduced:
                header.append(f"{deep}for {symbol.name} in range({symbol.size}):")
                deep += "    "
            inside: list[str] = []
            roots = roots_of(phase)
            lines += [f"{outer}{self.names[id(s)]}_far = None" for s in self._fresh(roots) if s.name == "scan"]
            for scalar in self._fresh(roots):
                inside.append(f"{deep}{self.names[id(scalar)]} = {self.expression(scalar)}")
            for reduction in phase.reductions:
                operands = ", ".join(self.names[id(arg)] for arg in reduction.args)
                inside.append(f"{deep}{self.names[id(reduction)]}_all.append(({operands},))")
            inside += [f"{deep}{_place(s.access)} = {self.names[id(s.value)]}" for s in phase.stores]
            lines += [*header, *inside] if inside else []
            for reduction in phase.reductions:
                name = self.names[id(reduction)]
                lines.append(
                    f"{outer}{name} = op.reduce({reduction.kind!r}, {name}_all, torch.{dtype_text(reduction.dtype)})"
                )
            for due, store in self.plan.kept_stores:
                if due == number + 1 or (due == 0 == number):
                    for scalar in self._fresh([store.value]):
                        lines.append(f"{outer}{self.names[id(scalar)]} = {self.expression(scalar)}")
                    lines.append(f"{outer}{_place(store.access)} = {self.names[id(store.value)]}")
        return lines

    def _fresh(self, roots: Sequence[Scalar]) -> list[Scalar]:
        """Values to compute here; those of kept points are recomputed where used, which loops afford."""
        return [scalar for scalar in walk(roots) if scalar.name != "reduce" and not _below_reduce(scalar, roots)]

    def expression(self, scalar: Scalar) -> str:
        args = [self.names[id(arg)] for arg in scalar.args]
        kind = f"torch.{dtype_text(scalar.dtype)}"
        if scalar.name == "constant":
            return f"op.constant({_number(scalar.detail)}, {kind})"
        if scalar.name == "index":
            return f"op.constant({index_text(scalar.expression)}, {kind})"
        if scalar.name == "cast":
            return f"{args[0]}.to({kind})"
        if scalar.name == "checked":
            return f"op.checked({args[0]}, {scalar.detail})"
        if scalar.name == "scan":
            far = f"{self.names[id(scalar)]}_far"
            return f"{far} = op.scan({scalar.kind!r}, {far}, {args[0]}.to({kind}))"
        if scalar.name == "load":
            return _place(scalar.access, dict(zip([s.name for s in scalar.access.looked_up], args, strict=True)))
        return f"op.{scalar.name}({', '.join(args)})"


def _below_reduce(scalar: Scalar, roots: Sequence[Scalar]) -> bool:
    """Whether scalar is reached only through a finished reduction, so that this pass need not compute it."""
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        each = stack.pop()
        if each is scalar:
            return False
        if id(each) not in seen and each.name != "reduce":
            seen.add(id(each))
            stack.extend(each.args)
    return True


def _place(access: Access, looked_up: Mapping[str, str] | None = None) -> str:
    parts = [index_text(part) for part in access.index]
    for symbol, name in (looked_up or {}).items():
        parts = [part.replace(symbol, f"op.inside({name}, {_size(access, symbol)})") for part in parts]
    return f"{access.buffer}[{', '.join(parts) or '()'}]"


def _size(access: Access, name: str) -> Extent:
    return next(symbol.size for symbol in access.looked_up if symbol.name == name)


def _number(value: object) -> str:
    return f"float('{value}')" if isinstance(value, float) else repr(value)


def _inside(value: torch.Tensor, size: int) -> int:
    if not 0 <= int(value) < size:
        raise IndexError(f"index {int(value)} is out of range for size {size}")
    return int(value)


def _reduce(kind: str, points: list[tuple[torch.Tensor, ...]], dtype: torch.dtype) -> torch.Tensor:
    if not points:
        return torch.tensor(identity(kind, dtype), dtype=dtype)
    every = torch.stack([point[0] for point in points])
    if kind in ("sum", "prod"):
        return (every.to(dtype).sum(0, dtype=dtype)) if kind == "sum" else every.to(dtype).prod(0)
    if kind in ("max", "min"):
        return every.amax(0) if kind == "max" else every.amin(0)
    if kind in ("any", "all"):
        return every.any(0) if kind == "any" else every.all(0)
    return first_place(kind, every, torch.stack([point[1] for point in points]))


def _scan(kind: str, before: torch.Tensor | None, value: torch.Tensor) -> torch.Tensor:
    if before is None:
        return value
    if kind in ("max", "min"):
        later = value >= before if kind == "max" else value <= before
        return torch.where(later | (value != value), value, before)
    if kind == "logsumexp":
        return torch.logaddexp(before, value)
    return before + value if kind == "sum" else before * value


def scalar_operations() -> SimpleNamespace:
    """Return what a print calls `op`."""
    op = SimpleNamespace(**{each.name: each.meaning for each in SCALAR_OPS.values()})
    op.constant = lambda value, dtype: torch.tensor(value, dtype=dtype)
    op.inside = _inside
    op.checked = lambda value, size: torch.tensor(_inside(value, size), dtype=value.dtype)
    op.reduce = _reduce
    op.scan = _scan
    return op


def run_text(
    source: str, name: str, tensors: Mapping[str, torch.Tensor], sizes: Mapping[str, int] | None = None
) -> None:
    """Execute a printed loop on tensors by name, with dynamic sizes by name; the stores land in the tensors."""
    op = scalar_operations()
    scope: dict[str, object] = {"torch": torch, **FUNCTIONS, **(sizes or {})}
    exec(compile(source, f"<{name}>", "exec"), scope)
    function = scope[name]
    if callable(function):
        function(op, **tensors)
