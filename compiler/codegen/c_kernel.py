"""One kernel: a loop written as a C function, vector and scalar code by the same rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..loops.body import Scalar, is_uniform
from ..loops.ir import Buffer, Loop, LoopStore
from ..loops.phases import Phase, roots_of
from ..loops.scalar_ops import identity
from ..symbolic.expr import Symbol, coefficient, constant, substitute
from ..symbolic.symbolic_sizes import Size, count_text, divides, floor_quotient, hint_of, larger, surely_at_least
from .c_library import Library
from .c_parallel import range_text, shared_variable, wrapper_text
from .c_reductions import BLOCK, ReductionWriter
from .c_types import ELEMENT, REGISTER, STORED, number_text
from .c_values import PLAIN, lane_names, lane_variable, offset_text
from .kernel_shape import crosses, is_one, shape_kernel

COLUMNS = 1024  # columns whose accumulators stand in memory together


class KernelWriter(ReductionWriter):
    """Writes one kernel; lives for one call of `write_kernel`."""

    def write(self, name: str, threads: int, sizes: Sequence[str] = ()) -> str:
        """Return the C function `static int <name>(void **p)`; `buffer_order` says what p holds.

        threads: the most threads that may share it, 0 for as many as torch uses.  sizes: names of dynamic sizes; with
        them the function takes their values in `const long long *z`.
        """
        self.shared = self._shared(threads)
        if self._wide_columns():
            self._write_columns()
        else:
            self._write_passes()
        pointers = []
        for position, buffer in enumerate(self.buffer_order):
            kind = STORED[self.buffers[buffer].dtype]
            const = "" if buffer in self.loop.writes else "const "
            pointers.append(f"  {const}{kind} *__restrict__ p_{position} = p[{position}];")
        body = [*pointers, *self.head, *self.lines]
        named, taken = size_lines(sizes), ", const long long *z" if sizes else ""
        if self.shared is None:
            opening = f"static int {name}(void **p{taken}) {{\n  int failed = 0, *error = &failed; (void)error;"
            return "\n".join([opening, *named, *body, "  return failed;", "}"])
        opening = f"static void {name}_run(void **p{taken}, int thread, int threads, int *error) {{\n  (void)error;"
        share = range_text(self.shared, self.step_of(self.shared))
        wrapper = wrapper_text(name, self.library, self.shape, threads, "\n".join(named))
        return "\n".join([opening, *named, share, *body, "}", wrapper])

    def _shared(self, threads: int) -> Symbol | None:
        if not self.library.has_threads:
            return None
        if self._wide_columns() and len(self.shape.outer) == 1:
            chunks = self._chunks()
            return chunks if hint_of(chunks.size) > 1 and shared_variable(self.shape, threads) else None
        return shared_variable(self.shape, threads)

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
        self._read_squares()
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

    def _read_squares(self) -> None:
        """Read what is transposed in memory as squares, row by row, and turn them in registers."""
        tile, vector, lanes = self.shape.tile, self.shape.vector, self.inner_lanes
        if tile is None or vector is None:
            return
        for load in self.loop.loads():
            access = load.access
            if access.looked_up or not crosses(access, tile, vector):
                continue
            stride = coefficient(access.index[0], vector) or 0
            register = REGISTER[load.dtype]
            name = self.squares[id(load)] = f"q{self.number[id(load)]}"
            start = offset_text(substitute(access.index[0], {tile: constant(0)}), {})
            self.line(f"{self.library.type(register, lanes)} {name}[{lanes}];")
            place = f"{self.pointer(access.buffer)} + {start} + {count_text(stride)}*k"
            read = f"{self.library.load(load.dtype, lanes)}({place})"
            self.line(f"for (int k = 0; k < {lanes}; k++) {name}[k] = {read};")
            self.line(f"{self.library.transpose(register, lanes)}({name});")

    def _open_innermost(self, symbol: Symbol, *, blocked: bool) -> None:
        if not blocked:
            self._open_loop(symbol)
            return
        name, lanes = symbol.name, self.step_of(symbol)
        end = f"{name}_block + {BLOCK * lanes} < {symbol.size} ? {name}_block + {BLOCK * lanes} : {symbol.size}"
        self.line(f"long long {name}_end = {end};")
        if lanes > 1 and not divides(lanes, symbol.size):
            last = symbol.size - lanes
            self.line(
                f"for (long long {name}_next = {name}_block; {name}_next < {name}_end; {name}_next += {lanes}) {{"
            )
            self.depth += 1
            self.line(f"long long {name} = {name}_next > {last} ? {last} : {name}_next;")
            return
        step = f"{name} += {lanes}" if lanes > 1 else f"{name}++"
        self.line(f"for (long long {name} = {name}_block; {name} < {name}_end; {step}) {{")
        self.depth += 1

    def _opens_blocks(self, phase: Phase, accumulators: list[str]) -> bool:
        long = [(r, a) for r, a in zip(phase.reductions, accumulators, strict=True) if self._is_long_sum(r)]
        if not long:
            return False
        symbol = self.shape.inner[-1]
        width = BLOCK * self.step_of(symbol)
        self.line(
            f"for (long long {symbol.name}_block = 0; {symbol.name}_block < {symbol.size};"
            f" {symbol.name}_block += {width}) {{"
        )
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
                self.line(
                    f"{kind} {accumulator}_s = {accumulator} + {accumulator}_part,"
                    f" {accumulator}_b = {accumulator}_s - {accumulator};"
                )
                self.line(
                    f"{accumulator}_lost += ({accumulator} - ({accumulator}_s - {accumulator}_b))"
                    f" + ({accumulator}_part - {accumulator}_b);"
                )
                self.line(f"{accumulator} = {accumulator}_s;")
        self._close()

    def _due_kept_stores(self, level: int) -> None:
        for due, store in self.plan.kept_stores:
            if due == level:
                self._store(store, self.outer_lanes, level)

    def _store(self, store: LoopStore, lanes: int, number: int) -> None:
        value = self.value(store.value, lanes, number)
        dtype = self.buffers[store.access.buffer].dtype
        offset, pointer = store.access.index[0], self.pointer(store.access.buffer)
        vector = self.shape.vector
        factor = coefficient(offset, vector) if vector is not None and lanes > 1 else 0
        if lanes == 1 or is_one(factor):
            self.line(f"{self.library.store(dtype, lanes)}({pointer} + {offset_text(offset, {})}, {value});")
            return
        if vector is None:
            raise ValueError("vector store without a vector variable")
        held = f"w{self.number[id(store.value)]}_{len(self.lines)}"
        self.line(f"{self.library.type(REGISTER[dtype], lanes)} {held} = {value};")
        moved = substitute(offset, {vector: lane_variable(vector)})
        scalar = self.library.store(dtype, 1)
        self.line(
            f"for (int lane = 0; lane < {lanes}; lane++)"
            f" {scalar}({pointer} + {offset_text(moved, lane_names(vector))}, {held}[lane]);"
        )

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
                if not is_uniform(scalar):
                    border[id(scalar)] = scalar
                continue
            stack.extend(scalar.args)
        for scalar in border.values():
            self.value(scalar, self.outer_lanes, 0)
            if (id(scalar), self.inner_lanes) not in self.names:
                self._repeat(scalar)

    def _wide_columns(self) -> bool:
        """Whether rows should be read whole, with a row of accumulators: many columns, reduced in one pass."""
        vector = self.shape.vector
        return (
            self.shape.columns
            and vector is not None
            and hint_of(vector.size) > 4 * self.shape.lanes
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
        chunks = self._chunks().size
        # the last chunk takes the rest, so none is narrower than a vector
        width = 2 * COLUMNS if isinstance(vector.size, Size) else vector.size - hint_of(chunks - 1) * COLUMNS
        first, last = (
            ("begin", "end") if self.shared is not None and self.shared.name == "chunk" else ("0", str(chunks))
        )
        self.line(f"for (long long chunk = {first}; chunk < {last}; chunk++) {{")
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
            self.line(
                f"for (long long {rows.name}_block = 0; {rows.name}_block < {rows.size};"
                f" {rows.name}_block += {BLOCK}) {{"
            )
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

    def _chunks(self) -> Symbol:
        """Return the variable that counts groups of columns."""
        return Symbol("chunk", larger(floor_quotient(self.shape.outer[-1].size, COLUMNS), 1))

    def _declare_row(self, name: str, reduction: Scalar, width: int) -> None:
        register = REGISTER[reduction.dtype]
        start = number_text(
            0 if name.endswith(("_lost", "_part")) else identity(reduction.kind, reduction.dtype), register
        )
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
        if not divides(lanes, vector.size):  # an overlapping last step must not count its columns twice
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
            kind, load, store = (
                self.library.type(register, lanes),
                self.library.load(plain, lanes),
                self.library.store(plain, lanes),
            )
            whole, part, lost = (self._row_place(f"{name}{ending}", vector) for ending in ("", "_part", "_lost"))
            new = None if divides(lanes, vector.size) else self._new_lanes(vector)
            zero = self._constant(0, register, lanes)
            taken = (
                f"{load}({part})"
                if new is None
                else f"{self.library.select(register, lanes)}({new}, {load}({part}), {zero})"
            )
            self.line(f"{kind} {name}_a = {load}({whole}), {name}_p = {taken};")
            self.line(f"{kind} {name}_s = {name}_a + {name}_p, {name}_b = {name}_s - {name}_a;")
            self.line(
                f"{store}({lost}, {load}({lost}) + (({name}_a - ({name}_s - {name}_b)) + ({name}_p - {name}_b)));"
            )
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


def size_lines(sizes: Sequence[str]) -> list[str]:
    """Return the C declarations of dynamic sizes from their array z."""
    return [f"  const long long {name} = z[{number}]; (void){name};" for number, name in enumerate(sizes)]


def write_kernel(
    loop: Loop,
    buffers: Mapping[str, Buffer],
    library: Library,
    name: str,
    vector_bytes: int,
    threads: int = 0,
    sizes: Sequence[str] = (),
) -> tuple[str, tuple[str, ...]]:
    """Return a loop as the C function `static int <name>(void **p)`, and the names of the buffers in p.

    The function returns 0, 1 for an index out of range, 2 for an integer division by zero.  With dynamic sizes it takes
    them too, and there may be several versions of it: each call takes the first whose condition holds.
    """
    shape = shape_kernel(loop, buffers, vector_bytes)
    writer = KernelWriter(shape, buffers, library)
    if not sizes:
        return writer.write(name, threads), writer.buffer_order
    wide = shape.vector is None or surely_at_least(shape.vector.size, shape.lanes)
    enough = "1" if wide else f"{shape.vector.size if shape.vector else 0} >= {shape.lanes}"
    first = writer.write(f"{name}_first", threads, sizes)
    versions: list[tuple[str, str]] = []
    points, most = writer.row_points
    if isinstance(points, Size):
        versions.append((f"{enough} && {points} <= {most}", first))
        writer = KernelWriter(shape, buffers, library, stashes=False)
        versions.append((enough, writer.write(f"{name}_second", threads, sizes)))
    elif wide:
        return KernelWriter(shape, buffers, library).write(name, threads, sizes), writer.buffer_order
    else:
        versions.append((enough, first))
    if not wide:
        narrow = KernelWriter(shape_kernel(loop, buffers, vector_bytes, scalar=True), buffers, library, stashes=False)
        if narrow.buffer_order != writer.buffer_order:
            raise ValueError("two versions of a kernel take different tensors")
        versions.append(("1", narrow.write(f"{name}_third", threads, sizes)))
    return _dispatcher(name, versions, sizes), writer.buffer_order


def _dispatcher(name: str, versions: Sequence[tuple[str, str]], sizes: Sequence[str]) -> str:
    """Return the versions and the function that chooses among them."""
    lines = [text for _, text in versions]
    lines.append(f"static int {name}(void **p, const long long *z) {{")
    lines += size_lines(sizes)
    for condition, text in versions:
        called = next(ending for ending in ("first", "second", "third") if f"static int {name}_{ending}(" in text)
        lines.append(f"  if ({condition}) return {name}_{called}(p, z);")
    return "\n".join([*lines, "  return 3;", "}"])
