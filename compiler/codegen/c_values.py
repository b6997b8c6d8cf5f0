"""The values of one kernel as C: each emitted once where it can be known, in vector or scalar registers.

Numbers stand at the head, values of kept points before the inner passes, values of reduced points inside each pass.
A costly value that two passes need is kept in a row of its own.
"""

from __future__ import annotations

import torch

from ..loops.body import Scalar, is_uniform
from ..loops.scalar_ops import SCALAR_OPS, Elementary, Sign
from ..symbolic.expr import coefficient, is_zero, substitute
from ..symbolic.index_space import product
from ..symbolic.symbolic_sizes import Extent, Size, count_text, same
from .c_functions.c_math import ElementaryFunctions
from .c_index import lane_names, lane_variable, offset_text
from .c_places import PlaceWriter
from .c_types import ELEMENT, REGISTER, STORED
from .kernel_plan import values_of_pass
from .kernel_text import KernelText

PLAIN = {"f": torch.float32, "d": torch.float64, "i": torch.int32, "l": torch.int64, "b": torch.int32}


class ValueWriter:
    """Writes values into the text of a kernel, each once in a scope.

    stashed: the rows of values that several passes need.  squares: loads read as turned squares.
    """

    def __init__(self, text: KernelText) -> None:
        self.text = text
        self.shape = text.shape
        self.library = text.library
        self.functions = ElementaryFunctions(text.library)
        self.places = PlaceWriter(text, self.value)
        self.stashed: dict[int, str] = {}
        self.squares: dict[int, str] = {}

    def declare_stashes(self) -> None:
        """Declare the rows of values that several passes need."""
        scalars = {id(scalar): scalar for scalar in self.shape.loop.scalars()}
        for key, room in self.text.plan.stashes.rooms.items():
            name = self.stashed[key] = f"row{self.text.plan.number[key]}"
            element = ELEMENT[REGISTER[scalars[key].dtype]]
            self.text.head.append(f"  {element} {name}[{room}] __attribute__((aligned(64)));")

    def _stash_place(self, name: str) -> str:
        inner = self.shape.inner
        flat = " + ".join(f"{product(s.size for s in inner[n + 1 :])}*{s.name}" for n, s in enumerate(inner)) or "0"
        return f"{name} + ({flat}) * {self.shape.lanes}" if self.shape.columns else f"{name} + {flat}"

    def repeat(self, scalar: Scalar) -> str:
        """Return the name of a kept point's value repeated over the lanes."""
        register, lanes = REGISTER[scalar.dtype], self.text.inner_lanes
        name = f"t{self.text.plan.number[id(scalar)]}_v"
        vector_text = f"{self.library.splat(register, lanes)}({self.text.names[id(scalar), 1]})"
        self.text.line(f"{self.library.type(register, lanes)} {name} = {vector_text};")
        self.text.names[id(scalar), lanes] = name
        return name

    def uniform(self, scalar: Scalar, lanes: int) -> str:
        """Return the C of a value that stands before all loops; dynamic sizes are converted there."""
        register = REGISTER[scalar.dtype]
        if scalar.name == "constant":
            return self.text.constant(_number(scalar), register, lanes)
        key = (f"open {self.text.plan.number[id(scalar)]}", register, lanes)
        if key not in self.text.constants:
            if lanes > 1:
                text = f"{self.library.splat(register, lanes)}({self.uniform(scalar, 1)})"
            elif scalar.name == "cast":
                text = self._cast(scalar.args[0].dtype, scalar.dtype, self.uniform(scalar.args[0], 1), 1)
            else:
                text = f"({ELEMENT[register]})({offset_text(scalar.expression, {})})"
            name = f"c{len(self.text.constants)}"
            self.text.constants[key] = name
            self.text.head.append(f"  const {self.library.type(register, lanes)} {name} = {text};")
        return self.text.constants[key]

    def value(self, root: Scalar, lanes: int, number: int) -> str:
        """Return the C name of a value with that many lanes, emitting what is missing."""
        stack = [root]
        while stack:
            scalar = stack[-1]
            at = lanes if id(scalar) in self.text.plan.inner else self.text.outer_lanes
            if (id(scalar), lanes) in self.text.names or is_uniform(scalar):
                stack.pop()
                continue
            stash = self.stashed.get(id(scalar)) if id(scalar) in self.text.plan.inner else None
            if stash is not None and not self._is_first_pass(scalar, number):
                self._emit_unstash(scalar, lanes, stash)
                stack.pop()
                continue
            if self.places.kept(scalar):
                self.places.emit_kept(scalar, number)
            wanted = self.places.inner_arguments(scalar)
            missing = [arg for arg in wanted if not is_uniform(arg) and (id(arg), at) not in self.text.names]
            if at != lanes and (id(scalar), at) in self.text.names:
                self.repeat(scalar)
                stack.pop()
            elif missing and scalar.name != "reduce":
                for arg in missing:
                    if (
                        at == self.text.inner_lanes
                        and (id(arg), self.text.outer_lanes) in self.text.names
                        and id(arg) not in self.text.plan.inner
                    ):
                        self.repeat(arg)
                    else:
                        stack.append(arg)
            else:
                self._emit(scalar, at)
                if stash is not None:
                    register = REGISTER[scalar.dtype]
                    self.text.line(
                        f"{self.text.memory.store(PLAIN[register], lanes)}"
                        f"({self._stash_place(stash)}, {self.text.names[id(scalar), lanes]});"
                    )
        if is_uniform(root):
            return self.uniform(root, lanes)
        return self.text.names[id(root), lanes]

    def _is_first_pass(self, scalar: Scalar, number: int) -> bool:
        for earlier in range(number):
            phase = self.text.plan.passes.phases[earlier]
            if any(each is scalar for each in values_of_pass(phase)):
                return False
        return True

    def _emit_unstash(self, scalar: Scalar, lanes: int, stash: str) -> None:
        register = REGISTER[scalar.dtype]
        name = f"t{self.text.plan.number[id(scalar)]}"
        self.text.line(
            f"{self.library.type(register, lanes)} {name}"
            f" = {self.text.memory.load(PLAIN[register], lanes)}({self._stash_place(stash)});"
        )
        self.text.names[id(scalar), lanes] = name

    def _emit(self, scalar: Scalar, lanes: int) -> None:
        with self.text.statements_of(scalar):
            self._emit_statements(scalar, lanes)

    def _emit_statements(self, scalar: Scalar, lanes: int) -> None:
        name = f"t{self.text.plan.number[id(scalar)]}"
        register = REGISTER[scalar.dtype]
        if scalar.name == "load":
            text = self._load(scalar, lanes, name)
        elif scalar.name == "index":
            text = self._index(scalar, lanes, name)
        else:
            args = [
                self.uniform(arg, lanes) if is_uniform(arg) else self.text.names[id(arg), lanes] for arg in scalar.args
            ]
            text = self._operation(scalar, args, lanes)
        if text is not None:
            self.text.line(f"{self.library.type(register, lanes)} {name} = {text};")
        self.text.names[id(scalar), lanes] = name

    def _load(self, scalar: Scalar, lanes: int, name: str) -> str | None:
        """Return the text of a load, or emit it as statements where lanes are gathered one by one."""
        access, (offset, left) = scalar.access, self.places.offset(scalar)
        pointer, vector = self.text.pointer(access.buffer), self.shape.vector
        one = self.text.memory.load(scalar.dtype, 1)
        register = REGISTER[scalar.dtype]
        if id(scalar) in self.squares and self.shape.tile is not None:
            return f"{self.squares[id(scalar)]}[{self.shape.tile.name}]"
        if left:
            places = [
                self.uniform(arg, lanes) if is_uniform(arg) else self.text.names[id(arg), lanes] for _, arg in left
            ]
            near = self.places.near(scalar, lanes, offset, left, places)
            if near is None:
                self.places.gather(scalar, lanes, offset, left, places)
            return near
        if lanes == 1:
            return f"{one}({pointer} + {offset_text(offset, {})})"
        if vector is None:
            raise ValueError("vector load without a vector variable")
        factor = coefficient(offset, vector)
        if factor is not None and is_zero(factor):
            return f"{self.library.splat(register, lanes)}({one}({pointer} + {offset_text(offset, {})}))"
        if factor is not None and same(factor, 1):
            return f"{self.text.memory.load(scalar.dtype, lanes)}({pointer} + {offset_text(offset, {})})"
        if factor is not None and same(factor, 2):
            read = self.text.memory.load(scalar.dtype, lanes)
            self.text.line(f"const {STORED[scalar.dtype]} *q{name} = {pointer} + {offset_text(offset, {})};")
            # the second vector starts one element early, so that nothing behind the last element is read
            return f"{self.library.every_second(register, lanes)}({read}(q{name}), {read}(q{name} + {lanes - 1}))"
        if factor is not None:
            base = offset_text(offset, {})
            listed = ", ".join(f"{one}(q{name} + {count_text(factor * lane)})" for lane in range(lanes))
            self.text.line(f"const {STORED[scalar.dtype]} *q{name} = {pointer} + {base};")
            return f"({self.library.type(register, lanes)}){{{listed}}}"
        self.text.line(f"{self.library.type(register, lanes)} {name};")
        moved = substitute(offset, {vector: lane_variable(vector)})
        self.text.line(
            f"for (int lane = 0; lane < {lanes}; lane++)"
            f" {name}[lane] = {one}({pointer} + {offset_text(moved, lane_names(vector))});"
        )
        return None

    def _index(self, scalar: Scalar, lanes: int, name: str) -> str | None:
        value, register = scalar.expression, REGISTER[scalar.dtype]
        element, vector = ELEMENT[register], self.shape.vector
        if lanes == 1 or vector is None:
            return f"({element})({offset_text(value, {})})"
        factor = coefficient(value, vector)
        base = f"{self.library.splat(register, lanes)}(({element})({offset_text(value, {})}))"
        if factor is not None and is_zero(factor):
            return base
        kind = self.library.type(register, lanes)
        if factor is not None:
            steps = ", ".join(str(factor * lane) for lane in range(lanes))
            return f"{base} + ({kind}){{{steps}}}"
        self.text.line(f"{kind} {name};")
        moved = substitute(value, {vector: lane_variable(vector)})
        self.text.line(
            f"for (int lane = 0; lane < {lanes}; lane++)"
            f" {name}[lane] = ({element})({offset_text(moved, lane_names(vector))});"
        )
        return None

    def _operation(self, scalar: Scalar, args: list[str], lanes: int) -> str:
        op, library = scalar.name, self.library
        source = scalar.args[-1].dtype
        register = REGISTER[source]
        if op == "cast":
            return self._cast(scalar.args[0].dtype, scalar.dtype, args[0], lanes)
        if op == "checked":
            return f"{library.checked(register, lanes)}({args[0]}, {count_text(_extent(scalar))}, error)"
        form = SCALAR_OPS[op].c
        if isinstance(form, Elementary):
            return f"{self.functions.math(op, register, lanes)}({', '.join(args)})"
        if isinstance(form, Sign):
            text = f"({args[0]} {form.text} {args[1]})" if len(args) == 2 else f"({form.text}{args[0]})"
        else:
            if op in ("lt", "le", "gt", "ge") and source == torch.bool:
                args = args[::-1]  # a mask is minus one where a bool is one
            parameters = [*args, "error"] if form.fails else args
            text = f"{library.helper(form, op, source, lanes)}({', '.join(parameters)})"
            if not form.narrows:
                return text
        wrap = library.wrap(scalar.dtype, lanes) if register == "i" else None
        return f"{wrap}({text})" if wrap else text

    def _cast(self, source: torch.dtype, target: torch.dtype, value: str, lanes: int) -> str:
        start, end = REGISTER[source], REGISTER[target]
        library = self.library
        if end == "b":
            if start == "b":
                return value
            return f"{library.compare('ne', start, lanes)}({value}, {self.text.constant(0, start, lanes)})"
        if start in "fd" and target == torch.uint8:
            # through 64 bits, as eager does, so that negative and large values wrap
            wide = f"{library.convert(start, 'l', lanes)}({value})"
            return f"{library.wrap(target, lanes)}({library.convert('l', 'i', lanes)}({wide}))"
        text = value if start == end else f"{library.convert(start, end, lanes)}({value})"
        if target in (torch.float16, torch.bfloat16) and source != target:
            return f"{library.round_half(target, lanes)}({text})"
        wrap = library.wrap(target, lanes) if end == "i" else None
        return f"{wrap}({text})" if wrap and source != torch.bool else text


def _extent(scalar: Scalar) -> Extent:
    if not isinstance(scalar.detail, int | Size):
        raise TypeError(f"{scalar.detail!r} is not a size")
    return scalar.detail


def _number(scalar: Scalar) -> float | int | bool:
    if not isinstance(scalar.detail, float | int):
        raise TypeError(f"constant {scalar.detail!r} is not a number")
    return scalar.detail
