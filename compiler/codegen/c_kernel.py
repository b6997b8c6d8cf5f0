"""One kernel: a loop written as a C function, vector and scalar code by the same rules.

Values are emitted once where they can be known: numbers at the head, values of kept points before the inner passes,
values of reduced points inside each pass.  A costly value needed in two passes is kept in a row of its own.
Long sums are taken in blocks whose totals are added with the rounding error carried along.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch

from ..loops.body import Scalar
from ..loops.ir import Buffer, Loop, Store
from ..loops.phases import Phase, Plan, plan_phases, roots_of
from ..loops.scalar_ops import SCALAR_OPS, identity
from ..symbolic.expr import Atom, Expr, Quotient, Symbol, bounds, coefficient, substitute
from .c_library import MATH, Library
from .c_types import ELEMENT, REGISTER, STORED, WIDTH, number_text
from .kernel_shape import KernelShape, depending_on, shape_kernel

BLOCK = 64  # vector steps summed plainly before the total is carried over exactly
COLUMNS = 1024  # columns whose accumulators stand in memory together
PLAIN = {"f": torch.float32, "d": torch.float64, "i": torch.int32, "l": torch.int64, "b": torch.int32}
MOST_ROW_BYTES = 32 * 1024  # a stashed row should stay in the first-level cache


def offset_text(value: Expr, names: Mapping[str, str]) -> str:
    """Return an index expression as C over long long variables; divisions are of non-negative numbers or floored."""
    parts = []
    for atom, factor in value.terms:
        shown = _atom_text(atom, names)
        parts.append(shown if factor == 1 else f"{factor}LL*{shown}")
    if value.constant or not parts:
        parts.append(f"{value.constant}LL")
    return " + ".join(parts)


def _atom_text(atom: Atom, names: Mapping[str, str]) -> str:
    if isinstance(atom, Symbol):
        return names.get(atom.name, atom.name)
    inner = offset_text(atom.value, names)
    if bounds(atom.value)[0] >= 0:  # C's own division is floor division here
        return f"(({inner}) {'/' if isinstance(atom, Quotient) else '%'} {atom.divisor}LL)"
    name = "floor_quotient" if isinstance(atom, Quotient) else "floor_remainder"
    return f"{name}({inner}, {atom.divisor}LL)"


class KernelWriter:
    """Writes one kernel; lives for one call of `write_kernel`."""

    def __init__(self, shape: KernelShape, buffers: Mapping[str, Buffer], library: Library) -> None:
        self.shape = shape
        self.loop = shape.loop
        self.buffers = buffers
        self.library = library
        self.plan = _plan(self.loop)
        self.inner_ids = self._inner_values()
        self.number = {id(scalar): n for n, scalar in enumerate(self.loop.scalars())}
        self.head: list[str] = []  # numbers, before all loops
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[tuple[int, int], str] = {}  # (scalar, lanes) -> C name, in the scope being written
        self.constants: dict[tuple[str, str, int], str] = {}
        self.stashed: dict[int, str] = {}

    # -- plan ------------------------------------------------------------------------------------------------

    def _inner_values(self) -> frozenset[int]:
        """Ids of values that differ between points of the inner loops (for pointwise loops: the last variable)."""
        if self.loop.reduced or self.loop.reduces:
            return self.plan.inner
        return depending_on(self.loop, frozenset(self.shape.inner))

    @property
    def outer_lanes(self) -> int:
        """Lanes of values that belong to kept points."""
        return self.shape.lanes if self.shape.columns else 1

    @property
    def inner_lanes(self) -> int:
        """Lanes of values inside the passes."""
        return self.shape.lanes

    # -- text ------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def write(self, name: str) -> str:
        """Return the C function `static int <name>(void **p)`; buffers in sorted order are its pointers."""
        if self._wide_columns():
            self._write_columns()
        else:
            self._write_passes()
        order = sorted(self.loop.reads | self.loop.writes)
        pointers = []
        for position, buffer in enumerate(order):
            kind = STORED[self.buffers[buffer].dtype]
            const = "" if buffer in self.loop.writes else "const "
            pointers.append(f"  {const}{kind} *__restrict__ p_{position} = p[{position}];")
        comment = [f"/* {origin.replace('*/', '* /')} */" for origin in self.loop.origins]
        return "\n".join(
            [*comment, f"static int {name}(void **p) {{", *pointers, "  int failed = 0, *error = &failed; (void)error;",
             *self.head, *self.lines, "  return failed;", "}"]
        )  # fmt: skip

    def _write_passes(self) -> None:
        self._choose_stashes()
        for symbol in self.shape.outer:
            self._open_loop(symbol)
        for number, phase in enumerate(self.plan.phases):
            self._due_kept_stores(number)
            self._write_pass(number, phase)
        self._due_kept_stores(len(self.plan.phases))
        for _ in self.shape.outer:
            self._close()

    # -- many columns at once ------------------------------------------------------------------------------------

    def _wide_columns(self) -> bool:
        """Whether rows should be read whole, with a row of accumulators: many columns, reduced in one pass."""
        vector = self.shape.vector
        return (
            self.shape.columns
            and vector is not None
            and vector.size > 4 * self.shape.lanes
            and bool(self.shape.inner)
            and len(self.plan.phases) == 1
        )

    def _write_columns(self) -> None:
        vector, lanes = self.shape.vector, self.shape.lanes
        if vector is None:
            raise ValueError("columns without a vector variable")
        (phase,) = self.plan.phases
        for symbol in self.shape.outer[:-1]:
            self._open_loop(symbol)
        chunks = max(vector.size // COLUMNS, 1)
        width = vector.size - (chunks - 1) * COLUMNS  # the last chunk takes the rest, so none is narrower than a vector
        self.line(f"for (long long chunk = 0; chunk < {chunks}; chunk++) {{")
        self.depth += 1
        end = f"chunk == {chunks - 1} ? {vector.size} : ({COLUMNS}LL*chunk + {COLUMNS})"
        self.line(f"const long long column0 = {COLUMNS}LL*chunk, column1 = {end};")
        long = [reduction for reduction in phase.reductions if self._is_long_sum(reduction)]
        for reduction in phase.reductions:
            self._declare_row(f"acc{self.number[id(reduction)]}", reduction, width)
        for reduction in long:
            self._declare_row(f"acc{self.number[id(reduction)]}_lost", reduction, width)
        for symbol in self.shape.inner[:-1]:
            self._open_loop(symbol)
        rows = self.shape.inner[-1]
        if long:
            self.line(f"for (long long {rows.name}_block = 0; {rows.name}_block < {rows.size}; {rows.name}_block += {BLOCK}) {{")
            self.depth += 1
            for reduction in long:
                self._declare_row(f"acc{self.number[id(reduction)]}_part", reduction, width)
        self._open_innermost(rows, blocked=bool(long))
        self._open_columns(vector, lanes)
        outer_names = dict(self.names)
        for reduction in phase.reductions:
            self._accumulate_row(reduction, vector, part=reduction in long)
        for store in phase.stores:
            self._store(store, lanes, 0)
        self._close()
        self._close()
        self.names = outer_names
        if long:
            self._carry_rows(long, vector, lanes)
            self._close()
        for _ in self.shape.inner[:-1]:
            self._close()
        self._finish_rows(phase, long, vector, lanes)
        self._close()
        for _ in self.shape.outer[:-1]:
            self._close()

    def _declare_row(self, name: str, reduction: Scalar, width: int) -> None:
        register = REGISTER[reduction.dtype]
        start = number_text(0 if name.endswith(("_lost", "_part")) else identity(reduction.kind, reduction.dtype), register)
        self.line(f"{ELEMENT[register]} {name}[{width}] __attribute__((aligned(64)));")
        self.line(f"for (int k = 0; k < {width}; k++) {name}[k] = {start};")

    def _open_columns(self, vector: Symbol, lanes: int) -> None:
        name = vector.name
        last = f"column1 - {lanes}"
        self.line(f"for (long long {name}_next = column0; {name}_next < column1; {name}_next += {lanes}) {{")
        self.depth += 1
        self.line(f"const long long {name} = {name}_next > {last} ? {last} : {name}_next;")

    def _row_place(self, name: str, vector: Symbol) -> str:
        return f"({name} + {vector.name} - column0)"

    def _accumulate_row(self, reduction: Scalar, vector: Symbol, *, part: bool) -> None:
        register, lanes = REGISTER[reduction.dtype], self.shape.lanes
        value = self.value(reduction.args[0], lanes, 0)
        if vector.size % lanes:  # an overlapping last step must not count its columns twice
            value = self._masked(reduction, value, vector)
        row = self._row_place(f"acc{self.number[id(reduction)]}{'_part' if part else ''}", vector)
        plain = PLAIN[register]
        before = f"{self.library.load(plain, lanes)}({row})"
        joined = self.library.combine(reduction.kind, register, lanes, before, value)
        self.line(f"{self.library.store(plain, lanes)}({row}, {joined});")

    def _carry_rows(self, long: list[Scalar], vector: Symbol, lanes: int) -> None:
        self._open_columns(vector, lanes)
        for reduction in long:
            register = REGISTER[reduction.dtype]
            name, plain = f"acc{self.number[id(reduction)]}", PLAIN[register]
            kind, load, store = self.library.type(register, lanes), self.library.load(plain, lanes), self.library.store(plain, lanes)
            whole, part, lost = (self._row_place(f"{name}{ending}", vector) for ending in ("", "_part", "_lost"))
            new = self._new_lanes(vector) if vector.size % lanes else None
            zero = self._constant(0, register, lanes)
            taken = f"{load}({part})" if new is None else f"{self.library.select(register, lanes)}({new}, {load}({part}), {zero})"
            self.line(f"{kind} {name}_a = {load}({whole}), {name}_p = {taken};")
            self.line(f"{kind} {name}_s = {name}_a + {name}_p, {name}_b = {name}_s - {name}_a;")
            self.line(f"{store}({lost}, {load}({lost}) + (({name}_a - ({name}_s - {name}_b)) + ({name}_p - {name}_b)));")
            self.line(f"{store}({whole}, {name}_s);")
        self._close()
        self.names = {key: name for key, name in self.names.items() if key[0] != id(vector)}

    def _finish_rows(self, phase: Phase, long: list[Scalar], vector: Symbol, lanes: int) -> None:
        self._open_columns(vector, lanes)
        outer_names = dict(self.names)
        for reduction in phase.reductions:
            register = REGISTER[reduction.dtype]
            accumulator, name = f"acc{self.number[id(reduction)]}", f"t{self.number[id(reduction)]}"
            kind, load = self.library.type(register, lanes), self.library.load(PLAIN[register], lanes)
            self.line(f"{kind} {name} = {load}({self._row_place(accumulator, vector)});")
            if reduction in long:
                self.line(f"{kind} {name}_lost = {load}({self._row_place(f'{accumulator}_lost', vector)});")
                self.line(f"{name} = {self._with_lost(reduction, name, lanes)};")
            self.names[id(reduction), lanes] = name
        self._due_kept_stores(0)
        self._due_kept_stores(1)
        self._close()
        self.names = outer_names

    def pointer(self, buffer: str) -> str:
        return f"p_{sorted(self.loop.reads | self.loop.writes).index(buffer)}"

    def _open_loop(self, symbol: Symbol) -> None:
        if symbol is not self.shape.vector:
            self.line(f"for (long long {symbol.name} = 0; {symbol.name} < {symbol.size}; {symbol.name}++) {{")
            self.depth += 1
            return
        lanes, name = self.shape.lanes, symbol.name
        if symbol.size % lanes == 0:
            self.line(f"for (long long {name} = 0; {name} < {symbol.size}; {name} += {lanes}) {{")
            self.depth += 1
            return
        # the last step overlaps the one before, so that no partial vector is ever read or written
        last = symbol.size - lanes
        self.line(f"for (long long {name}_next = 0; {name}_next < {symbol.size}; {name}_next += {lanes}) {{")
        self.depth += 1
        self.line(f"long long {name} = {name}_next > {last} ? {last} : {name}_next;")

    def _close(self) -> None:
        self.depth -= 1
        self.line("}")

    def _write_pass(self, number: int, phase: Phase) -> None:
        if not phase.reductions and not phase.stores:
            return
        self._hoist(phase)
        accumulators = [self._declare_accumulator(reduction) for reduction in phase.reductions]
        outer_names = dict(self.names)
        inner = self.shape.inner
        for symbol in inner[:-1]:
            self._open_loop(symbol)
        blocked = self._opens_blocks(phase, accumulators)
        if inner:
            self._open_innermost(inner[-1], blocked=blocked)
        else:
            self.line("{")  # a scope of its own, as a loop would give
            self.depth += 1
        for reduction, accumulator in zip(phase.reductions, accumulators, strict=True):
            self._accumulate(reduction, accumulator, number, blocked=blocked)
        for store in phase.stores:
            self._store(store, self.inner_lanes, number)
        self._close()
        if blocked:
            self._close_blocks(phase, accumulators)
        for _ in inner[:-1]:
            self._close()
        self.names = outer_names
        for reduction, accumulator in zip(phase.reductions, accumulators, strict=True):
            self._finish(reduction, accumulator)

    def _open_innermost(self, symbol: Symbol, *, blocked: bool) -> None:
        if not blocked:
            self._open_loop(symbol)
            return
        name, lanes = symbol.name, self._step_of(symbol)
        end = f"{name}_block + {BLOCK * lanes} < {symbol.size} ? {name}_block + {BLOCK * lanes} : {symbol.size}"
        self.line(f"long long {name}_end = {end};")
        if lanes > 1 and symbol.size % lanes:
            last = symbol.size - lanes
            self.line(f"for (long long {name}_next = {name}_block; {name}_next < {name}_end; {name}_next += {lanes}) {{")
            self.depth += 1
            self.line(f"long long {name} = {name}_next > {last} ? {last} : {name}_next;")
            return
        step = f"{name} += {lanes}" if lanes > 1 else f"{name}++"
        self.line(f"for (long long {name} = {name}_block; {name} < {name}_end; {step}) {{")
        self.depth += 1

    def _step_of(self, symbol: Symbol) -> int:
        return self.shape.lanes if symbol is self.shape.vector else 1

    # -- reductions --------------------------------------------------------------------------------------------

    def _is_long_sum(self, reduction: Scalar) -> bool:
        points = prod(symbol.size for symbol in self.shape.inner)
        steps = points // max(self._step_of(self.shape.inner[-1]), 1) if self.shape.inner else 0
        return reduction.kind == "sum" and reduction.dtype.is_floating_point and steps > BLOCK

    def _opens_blocks(self, phase: Phase, accumulators: list[str]) -> bool:
        long = [(r, a) for r, a in zip(phase.reductions, accumulators, strict=True) if self._is_long_sum(r)]
        if not long:
            return False
        symbol = self.shape.inner[-1]
        width = BLOCK * self._step_of(symbol)
        self.line(f"for (long long {symbol.name}_block = 0; {symbol.name}_block < {symbol.size}; {symbol.name}_block += {width}) {{")
        self.depth += 1
        for reduction, accumulator in long:
            kind = self.library.type(REGISTER[reduction.dtype], self.inner_lanes)
            zero = self.library.constant(0, REGISTER[reduction.dtype], self.inner_lanes)
            self.line(f"{kind} {accumulator}_part = {zero};")
        return True

    def _close_blocks(self, phase: Phase, accumulators: list[str]) -> None:
        """Add each block's total; the rounding error of the addition is carried (Knuth's two-sum)."""
        for reduction, accumulator in zip(phase.reductions, accumulators, strict=True):
            if self._is_long_sum(reduction):
                kind = self.library.type(REGISTER[reduction.dtype], self.inner_lanes)
                self.line(f"{kind} {accumulator}_s = {accumulator} + {accumulator}_part, {accumulator}_b = {accumulator}_s - {accumulator};")
                self.line(
                    f"{accumulator}_lost += ({accumulator} - ({accumulator}_s - {accumulator}_b)) + ({accumulator}_part - {accumulator}_b);"
                )
                self.line(f"{accumulator} = {accumulator}_s;")
        self._close()

    def _declare_accumulator(self, reduction: Scalar) -> str:
        name = f"acc{self.number[id(reduction)]}"
        kind = reduction.kind
        if kind.startswith("arg"):
            value = REGISTER[reduction.args[0].dtype]
            self.line(f"{self.library.type(value, 1)} {name} = 0; long long {name}_at = -1;")
            return name
        register = REGISTER[reduction.dtype]
        start = self.library.constant(identity(kind, reduction.dtype), register, self.inner_lanes)
        self.line(f"{self.library.type(register, self.inner_lanes)} {name} = {start};")
        if self._is_long_sum(reduction):
            zero = self.library.constant(0, register, self.inner_lanes)
            self.line(f"{self.library.type(register, self.inner_lanes)} {name}_lost = {zero};")
        return name

    def _accumulate(self, reduction: Scalar, accumulator: str, number: int, *, blocked: bool) -> None:
        value = self.value(reduction.args[0], self.inner_lanes, number)
        kind = reduction.kind
        if kind.startswith("arg"):
            self._accumulate_place(reduction, accumulator, value, self.value(reduction.args[1], 1, number))
            return
        register = REGISTER[reduction.dtype]
        vector = self.shape.vector
        if vector is not None and not self.shape.columns and vector.size % self.shape.lanes:
            value = self._masked(reduction, value, vector)
        target = f"{accumulator}_part" if blocked and self._is_long_sum(reduction) else accumulator
        self.line(f"{target} = {self.library.combine(kind, register, self.inner_lanes, target, value)};")

    def _masked(self, reduction: Scalar, value: str, vector: Symbol) -> str:
        """Give lanes that an overlapping last step counts again the identity of the reduction."""
        register, lanes = REGISTER[reduction.dtype], self.shape.lanes
        start = self._constant(identity(reduction.kind, reduction.dtype), register, lanes)
        return f"{self.library.select(register, lanes)}({self._new_lanes(vector)}, {value}, {start})"

    def _new_lanes(self, vector: Symbol) -> str:
        """Return the mask of lanes that the step before did not have."""
        lanes = self.shape.lanes
        mask = f"{vector.name}_new"
        if (id(vector), lanes) not in self.names:
            ints = self.library.type("i", lanes)
            steps = ", ".join(str(n) for n in range(lanes))
            splat = self.library.splat("i", lanes)
            self.line(f"{ints} {mask} = ({ints})(({ints}){{{steps}}} >= {splat}((int)({vector.name}_next - {vector.name})));")
            self.names[id(vector), lanes] = mask
        return mask

    def _accumulate_place(self, reduction: Scalar, accumulator: str, value: str, place: str) -> None:
        """Keep the smallest place of the extreme; NaN is the extreme of all."""
        sign = ">" if reduction.kind == "argmax" else "<"
        better = f"{value} {sign} {accumulator}"
        equal = f"{value} == {accumulator}"
        if reduction.args[0].dtype.is_floating_point:
            better = f"({better} && {accumulator} == {accumulator}) || ({value} != {value} && {accumulator} == {accumulator})"
            equal = f"({equal} || ({value} != {value} && {accumulator} != {accumulator}))"
        self.line(f"if ({accumulator}_at < 0 || {better} || ({equal} && {place} < {accumulator}_at))")
        self.line(f"  {{ {accumulator} = {value}; {accumulator}_at = {place}; }}")

    def _finish(self, reduction: Scalar, accumulator: str) -> None:
        register, lanes = REGISTER[reduction.dtype], self.outer_lanes
        name = f"t{self.number[id(reduction)]}"
        kind = self.library.type(register, lanes)
        if reduction.kind.startswith("arg"):
            self.line(f"{kind} {name} = {accumulator}_at;")
        else:
            whole = accumulator
            if lanes != self.inner_lanes:
                if self._is_long_sum(reduction):
                    # lanes and their lost parts first; a lost part that is no number means the sum overflowed
                    whole = self._with_lost(reduction, accumulator, self.inner_lanes)
                whole = f"{self.library.across(reduction.kind, register, self.inner_lanes)}({whole})"
            elif self._is_long_sum(reduction):
                whole = self._with_lost(reduction, accumulator, lanes)
            self.line(f"{kind} {name} = {whole};")
        self.names[id(reduction), lanes] = name

    def _with_lost(self, reduction: Scalar, accumulator: str, lanes: int) -> str:
        register = REGISTER[reduction.dtype]
        lost = f"{accumulator}_lost"
        known = f"{self.library.compare('eq', register, lanes)}({lost}, {lost})"
        return f"{self.library.select(register, lanes)}({known}, {accumulator} + {lost}, {accumulator})"

    # -- stores and stashes --------------------------------------------------------------------------------------

    def _due_kept_stores(self, level: int) -> None:
        for due, store in self.plan.kept_stores:
            if due == level:
                self._store(store, self.outer_lanes, level)

    def _store(self, store: Store, lanes: int, number: int) -> None:
        value = self.value(store.value, lanes, number)
        dtype = self.buffers[store.access.buffer].dtype
        offset, pointer = store.access.index[0], self.pointer(store.access.buffer)
        vector = self.shape.vector
        factor = coefficient(offset, vector) if vector is not None and lanes > 1 else 0
        if lanes == 1 or factor == 1:
            self.line(f"{self.library.store(dtype, lanes)}({pointer} + {offset_text(offset, {})}, {value});")
            return
        if vector is None:
            raise ValueError("vector store without a vector variable")
        held = f"w{self.number[id(store.value)]}_{len(self.lines)}"
        self.line(f"{self.library.type(REGISTER[dtype], lanes)} {held} = {value};")
        moved = substitute(offset, {vector: _lane(vector)})
        scalar = self.library.store(dtype, 1)
        self.line(
            f"for (int lane = 0; lane < {lanes}; lane++) {scalar}({pointer} + {offset_text(moved, _lane_names(vector))}, {held}[lane]);"
        )

    def _choose_stashes(self) -> None:
        """Give a row of its own to each costly value that two passes need."""
        needed: dict[int, list[int]] = {}
        scalars: dict[int, Scalar] = {}
        for number, phase in enumerate(self.plan.phases):
            roots = roots_of(phase)
            for scalar in self._touched(roots):
                needed.setdefault(id(scalar), []).append(number)
                scalars[id(scalar)] = scalar
        points = prod(symbol.size for symbol in self.shape.inner) * (self.shape.lanes if self.shape.columns else 1)
        for key, passes in needed.items():
            scalar = scalars[key]
            op = SCALAR_OPS.get(scalar.name)
            if len(passes) < 2 or key not in self.inner_ids or op is None or not op.costly:
                continue
            register = REGISTER[scalar.dtype]
            if points * WIDTH[register] > MOST_ROW_BYTES:
                continue
            name = f"row{self.number[key]}"
            self.head.append(f"  {ELEMENT[register]} {name}[{points}] __attribute__((aligned(64)));")
            self.stashed[key] = name

    def _touched(self, roots: list[Scalar]) -> list[Scalar]:
        seen: dict[int, Scalar] = {}
        stack = list(roots)
        while stack:
            scalar = stack.pop()
            if scalar.name == "reduce" or id(scalar) in seen:
                continue
            seen[id(scalar)] = scalar
            stack.extend(scalar.args)
        return list(seen.values())

    def _stash_place(self, name: str) -> str:
        inner = self.shape.inner
        flat = " + ".join(f"{prod(s.size for s in inner[n + 1:])}*{s.name}" for n, s in enumerate(inner)) or "0"
        return f"{name} + ({flat}) * {self.shape.lanes}" if self.shape.columns else f"{name} + {flat}"

    # -- values --------------------------------------------------------------------------------------------------

    def _hoist(self, phase: Phase) -> None:
        """Compute values of kept points that the pass needs, and repeat them over lanes, before its loops."""
        roots = roots_of(phase)
        border: dict[int, Scalar] = {}
        seen: set[int] = set()
        stack = list(roots)
        while stack:
            scalar = stack.pop()
            if id(scalar) in seen:
                continue
            seen.add(id(scalar))
            if id(scalar) not in self.inner_ids:
                if scalar.name != "constant":
                    border[id(scalar)] = scalar
                continue
            stack.extend(scalar.args)
        for scalar in border.values():
            self.value(scalar, self.outer_lanes, 0)
            if (id(scalar), self.inner_lanes) not in self.names:
                self._repeat(scalar)

    def _repeat(self, scalar: Scalar) -> str:
        register, lanes = REGISTER[scalar.dtype], self.inner_lanes
        name = f"t{self.number[id(scalar)]}_v"
        made = f"{self.library.splat(register, lanes)}({self.names[id(scalar), 1]})"
        self.line(f"{self.library.type(register, lanes)} {name} = {made};")
        self.names[id(scalar), lanes] = name
        return name

    def _constant(self, value: float | int | bool, register: str, lanes: int) -> str:
        if lanes == 1:
            return number_text(value, register)
        key = (repr(value), register, lanes)
        if key not in self.constants:
            name = self.constants[key] = f"c{len(self.constants)}"
            self.head.append(f"  const {self.library.type(register, lanes)} {name} = {self.library.constant(value, register, lanes)};")
        return self.constants[key]

    def value(self, root: Scalar, lanes: int, number: int) -> str:
        """Return the C name of a value with that many lanes, emitting what is missing."""
        stack = [root]
        while stack:
            scalar = stack[-1]
            at = lanes if id(scalar) in self.inner_ids else self.outer_lanes
            if (id(scalar), lanes) in self.names or scalar.name == "constant":
                stack.pop()
                continue
            stash = self.stashed.get(id(scalar)) if id(scalar) in self.inner_ids else None
            if stash is not None and not self._is_first_pass(scalar, number):
                self._emit_unstash(scalar, lanes, stash)
                stack.pop()
                continue
            missing = [arg for arg in scalar.args if arg.name != "constant" and (id(arg), at) not in self.names]
            if at != lanes and (id(scalar), at) in self.names:
                self._repeat(scalar)
                stack.pop()
            elif missing and scalar.name != "reduce":
                for arg in missing:
                    if at == self.inner_lanes and (id(arg), self.outer_lanes) in self.names and id(arg) not in self.inner_ids:
                        self._repeat(arg)
                    else:
                        stack.append(arg)
            else:
                self._emit(scalar, at)
                if stash is not None:
                    register = REGISTER[scalar.dtype]
                    self.line(f"{self.library.store(PLAIN[register], lanes)}({self._stash_place(stash)}, {self.names[id(scalar), lanes]});")
        if root.name == "constant":
            return self._constant(_number(root), REGISTER[root.dtype], lanes)
        return self.names[id(root), lanes]

    def _is_first_pass(self, scalar: Scalar, number: int) -> bool:
        for earlier in range(number):
            phase = self.plan.phases[earlier]
            roots = roots_of(phase)
            if any(each is scalar for each in self._touched(roots)):
                return False
        return True

    def _emit_unstash(self, scalar: Scalar, lanes: int, stash: str) -> None:
        register = REGISTER[scalar.dtype]
        name = f"t{self.number[id(scalar)]}"
        self.line(f"{self.library.type(register, lanes)} {name} = {self.library.load(PLAIN[register], lanes)}({self._stash_place(stash)});")
        self.names[id(scalar), lanes] = name

    def _emit(self, scalar: Scalar, lanes: int) -> None:
        name = f"t{self.number[id(scalar)]}"
        register = REGISTER[scalar.dtype]
        if scalar.name == "load":
            text = self._load(scalar, lanes, name)
        elif scalar.name == "index":
            text = self._index(scalar, lanes, name)
        else:
            args = [
                self._constant(_number(arg), REGISTER[arg.dtype], lanes) if arg.name == "constant" else self.names[id(arg), lanes]
                for arg in scalar.args
            ]
            text = self._operation(scalar, args, lanes)
        if text is not None:
            self.line(f"{self.library.type(register, lanes)} {name} = {text};")
        self.names[id(scalar), lanes] = name

    def _load(self, scalar: Scalar, lanes: int, name: str) -> str | None:
        """Return the text of a load, or emit it as statements where lanes are gathered one by one."""
        access, offset = scalar.access, scalar.access.index[0]
        pointer, vector = self.pointer(access.buffer), self.shape.vector
        one = self.library.load(scalar.dtype, 1)
        register = REGISTER[scalar.dtype]
        if access.looked_up:
            return self._gather(scalar, lanes, name)
        if lanes == 1:
            return f"{one}({pointer} + {offset_text(offset, {})})"
        if vector is None:
            raise ValueError("vector load without a vector variable")
        factor = coefficient(offset, vector)
        if factor == 0:
            return f"{self.library.splat(register, lanes)}({one}({pointer} + {offset_text(offset, {})}))"
        if factor == 1:
            return f"{self.library.load(scalar.dtype, lanes)}({pointer} + {offset_text(offset, {})})"
        if factor is not None:
            base = offset_text(offset, {})
            listed = ", ".join(f"{one}(q{name} + {factor * lane}LL)" for lane in range(lanes))
            self.line(f"const {STORED[scalar.dtype]} *q{name} = {pointer} + {base};")
            return f"({self.library.type(register, lanes)}){{{listed}}}"
        self.line(f"{self.library.type(register, lanes)} {name};")
        moved = substitute(offset, {vector: _lane(vector)})
        self.line(
            f"for (int lane = 0; lane < {lanes}; lane++) {name}[lane] = {one}({pointer} + {offset_text(moved, _lane_names(vector))});"
        )
        return None

    def _gather(self, scalar: Scalar, lanes: int, name: str) -> None:
        """Emit a load whose place was read from memory; a place out of range sets *error and reads element zero."""
        access, register = scalar.access, REGISTER[scalar.dtype]
        vector = self.shape.vector
        args = [
            self._constant(_number(arg), REGISTER[arg.dtype], lanes) if arg.name == "constant" else self.names[id(arg), lanes]
            for arg in scalar.args
        ]
        self.line(f"{self.library.type(register, lanes)} {name};")
        offset = access.index[0]
        names = {}
        inside = []
        for symbol, arg in zip(access.looked_up, args, strict=True):
            names[symbol.name] = f"{name}_{symbol.name}"
            element = f"{arg}[lane]" if lanes > 1 else arg
            inside.append(f"long long {name}_{symbol.name} = {element};")
            inside.append(
                f"if ((unsigned long long){name}_{symbol.name} >= {symbol.size}ULL) {{ *error = 1; {name}_{symbol.name} = 0; }}"
            )
        target = name
        if lanes > 1 and vector is not None:
            offset = substitute(offset, {vector: _lane(vector)})
            names |= _lane_names(vector)
            target = f"{name}[lane]"
        read = f"{target} = {self.library.load(scalar.dtype, 1)}({self.pointer(access.buffer)} + {offset_text(offset, names)});"
        opening = f"for (int lane = 0; lane < {lanes}; lane++) " if lanes > 1 else ""
        self.line(f"{opening}{{ {' '.join(inside)} {read} }}")

    def _index(self, scalar: Scalar, lanes: int, name: str) -> str | None:
        value, register = scalar.expression, REGISTER[scalar.dtype]
        element, vector = ELEMENT[register], self.shape.vector
        if lanes == 1 or vector is None:
            return f"({element})({offset_text(value, {})})"
        factor = coefficient(value, vector)
        base = f"{self.library.splat(register, lanes)}(({element})({offset_text(value, {})}))"
        if factor == 0:
            return base
        kind = self.library.type(register, lanes)
        if factor is not None:
            steps = ", ".join(str(factor * lane) for lane in range(lanes))
            return f"{base} + ({kind}){{{steps}}}"
        self.line(f"{kind} {name};")
        moved = substitute(value, {vector: _lane(vector)})
        self.line(f"for (int lane = 0; lane < {lanes}; lane++) {name}[lane] = ({element})({offset_text(moved, _lane_names(vector))});")
        return None

    def _operation(self, scalar: Scalar, args: list[str], lanes: int) -> str:
        op, library = scalar.name, self.library
        source = scalar.args[-1].dtype
        register = REGISTER[source]
        if op == "cast":
            return self._cast(scalar.args[0].dtype, scalar.dtype, args[0], lanes)
        if op == "checked":
            return f"{library.checked(register, lanes)}({args[0]}, {scalar.detail}LL, error)"
        if op == "where":
            return f"{library.select(register, lanes)}({', '.join(args)})"
        if op in ("eq", "ne", "lt", "le", "gt", "ge"):
            if source == torch.bool and op not in ("eq", "ne"):
                args = args[::-1]  # a mask is minus one where a bool is one
            return f"{library.compare(op, register, lanes)}({', '.join(args)})"
        if op in ("minimum", "maximum"):
            return f"{library.extreme(op, register, lanes)}({', '.join(args)})"
        if op == "copysign":
            return f"{library.copysign(register, lanes)}({', '.join(args)})"
        if op == "sqrt":
            return f"{library.square_root(register, lanes)}({args[0]})"
        if op in MATH:
            return f"{library.math(op, register, lanes)}({', '.join(args)})"
        if op == "trunc_div":
            text = f"{library.trunc_divide(register, lanes)}({', '.join(args)}, error)"
        elif op in ("shift_left", "shift_right"):
            text = f"{library.shift(op, source, lanes)}({', '.join(args)})"
        elif op == "abs":
            text = f"{library.absolute(register, lanes)}({args[0]})"
        elif op in ("neg", "bit_not"):
            text = f"({'-' if op == 'neg' else '~'}{args[0]})"
        else:
            sign = {"add": "+", "sub": "-", "mul": "*", "div": "/", "bit_and": "&", "bit_or": "|", "bit_xor": "^"}[op]
            text = f"({args[0]} {sign} {args[1]})"
        wrap = library.wrap(scalar.dtype, lanes) if register == "i" else None
        return f"{wrap}({text})" if wrap else text

    def _cast(self, source: torch.dtype, target: torch.dtype, value: str, lanes: int) -> str:
        start, end = REGISTER[source], REGISTER[target]
        library = self.library
        if end == "b":
            if start == "b":
                return value
            return f"{library.compare('ne', start, lanes)}({value}, {self._constant(0, start, lanes)})"
        if start in "fd" and target == torch.uint8:
            # through 64 bits, as eager does, so that negative and large values wrap
            wide = f"{library.convert(start, 'l', lanes)}({value})"
            return f"{library.wrap(target, lanes)}({library.convert('l', 'i', lanes)}({wide}))"
        text = value if start == end else f"{library.convert(start, end, lanes)}({value})"
        if target in (torch.float16, torch.bfloat16) and source != target:
            return f"{library.round_half(target, lanes)}({text})"
        wrap = library.wrap(target, lanes) if end == "i" else None
        return f"{wrap}({text})" if wrap and source != torch.bool else text


def _plan(loop: Loop) -> Plan:
    """Return the passes of a loop; one without reduced variables is a single pass over its last variable."""
    plan = plan_phases(loop)
    if loop.reduced or loop.reduces:
        return plan
    return Plan((Phase((), loop.stores),), plan.level, plan.inner, ())


def _number(scalar: Scalar) -> float | int | bool:
    if not isinstance(scalar.detail, float | int):
        raise TypeError(f"constant {scalar.detail!r} is no number")
    return scalar.detail


def _lane(vector: Symbol) -> Expr:
    """Return the vector variable plus the lane, as one opaque variable of the same range."""
    return Expr(((Symbol(f"{vector.name}@lane", vector.size), 1),), 0)


def _lane_names(vector: Symbol) -> dict[str, str]:
    return {f"{vector.name}@lane": f"({vector.name} + lane)"}


def write_kernel(loop: Loop, buffers: Mapping[str, Buffer], library: Library, name: str, vector_bytes: int) -> str:
    """Return a loop as the C function `static int <name>(void **p)`, its buffers in sorted order in p.

    The function returns 0, 1 for an index out of range, 2 for an integer division by zero.
    """
    shape = shape_kernel(loop, buffers, vector_bytes)
    return KernelWriter(shape, buffers, library).write(name)


