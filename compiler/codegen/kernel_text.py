"""The text of one kernel in the making: lines at a depth, the names in scope, constants before all loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..loops.body import Scalar
from ..loops.ir import Buffer
from ..symbolic.expr import Symbol
from ..symbolic.symbolic_sizes import divides
from .c_functions.c_library import Library
from .c_functions.c_memory import MemoryFunctions
from .c_types import number_text
from .kernel_plan import KernelPlan

_OPEN = "  /* "
BLOCK = 64  # vector steps of a long sum added plainly before the total is carried over exactly


def commented(origin: str) -> str:
    """Return the comment behind a statement."""
    return f"{_OPEN}{origin.replace('*/', '* /')} */"


def without_comments(text: str) -> str:
    """Return the text of a kernel without the comments behind its statements: layers that repeat are equal then."""
    return "\n".join(line.partition(_OPEN)[0] for line in text.split("\n"))


class KernelText:
    """The C of one kernel while it is written: its lines, the names in scope, and what does not change meanwhile.

    names: (scalar, lanes) -> C name, in the scope being written.  head: numbers, before all loops.
    origin: the user's line and operator of the statements that are written; a comment behind each.
    """

    def __init__(self, plan: KernelPlan, buffers: Mapping[str, Buffer], library: Library) -> None:
        self.plan = plan
        self.shape = plan.shape
        self.buffers = buffers
        self.library = library
        self.memory = MemoryFunctions(library)
        self.head: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.origin = ""
        self.names: dict[tuple[int, int], str] = {}
        self.constants: dict[tuple[str, str, int], str] = {}

    @property
    def outer_lanes(self) -> int:
        """Lanes of values that belong to kept points."""
        return self.shape.lanes if self.shape.columns else 1

    @property
    def inner_lanes(self) -> int:
        """Lanes of values inside the passes."""
        return self.shape.lanes

    def line(self, text: str) -> None:
        """Append a line at the present depth."""
        self.lines.append("  " * self.depth + text + (commented(self.origin) if self.origin else ""))

    @contextmanager
    def statements_of(self, scalar: Scalar) -> Iterator[None]:
        """Let the lines written inside the block be those of a value."""
        before, self.origin = self.origin, scalar.origin
        try:
            yield
        finally:
            self.origin = before

    def pointer(self, buffer: str) -> str:
        """Return the C name of a buffer's pointer."""
        return f"p_{self.plan.buffer_order.index(buffer)}"

    def open_loop(self, symbol: Symbol) -> None:
        """Open the loop over a variable, by whole vectors where it is the vector variable."""
        lanes, name = self.step_of(symbol), symbol.name
        first, end = ("begin", "end") if symbol is self.plan.shared else ("0", str(symbol.size))
        if divides(lanes, symbol.size):
            self.line(f"for (long long {name} = {first}; {name} < {end}; {name} += {lanes}) {{")
            self.depth += 1
            return
        # the last step overlaps the one before, so that no partial vector is ever read or written
        last = symbol.size - lanes
        self.line(f"for (long long {name}_next = {first}; {name}_next < {end}; {name}_next += {lanes}) {{")
        self.depth += 1
        self.line(f"long long {name} = {name}_next > {last} ? {last} : {name}_next;")

    def open_innermost(self, symbol: Symbol, *, blocked: bool) -> None:
        """Open the innermost loop of a pass; blocked: over the points of one block of a long sum."""
        if blocked:
            self.open_part(symbol, BLOCK * self.step_of(symbol))
        else:
            self.open_loop(symbol)

    def open_blocks(self, symbol: Symbol, width: int) -> None:
        """Open the loop over blocks of so many points of a variable."""
        name = f"{symbol.name}_block"
        self.line(f"for (long long {name} = 0; {name} < {symbol.size}; {name} += {width}) {{")
        self.depth += 1

    def open_part(self, symbol: Symbol, width: int) -> None:
        """Open the loop over the points of one block."""
        name, lanes = symbol.name, self.step_of(symbol)
        end = f"{name}_block + {width} < {symbol.size} ? {name}_block + {width} : {symbol.size}"
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

    def close(self) -> None:
        """Close the innermost brace."""
        self.depth -= 1
        self.line("}")

    def step_of(self, symbol: Symbol) -> int:
        """Return by how many points a loop over a variable advances."""
        return self.shape.lanes if symbol is self.shape.vector else 1

    def constant(self, value: float | int | bool, register: str, lanes: int) -> str:
        """Return the C of a number, declared before all loops where it is a vector."""
        if lanes == 1:
            return number_text(value, register)
        key = (repr(value), register, lanes)
        if key not in self.constants:
            name = self.constants[key] = f"c{len(self.constants)}"
            self.head.append(
                f"  const {self.library.type(register, lanes)} {name}"
                f" = {self.library.constant(value, register, lanes)};"
            )
        return self.constants[key]
