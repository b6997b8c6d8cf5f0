"""The values of one kernel as Triton: each written once in its scope, with eager's rounding.

Triton's plain operators are not precise enough: `/` and `tl.sqrt` of float32 are approximations, `tl.exp` is one
instruction, `tl.maximum` forgets NaN.  docs/triton.md lists what was measured of each.
"""

from __future__ import annotations

import torch

from ...loops.body import Scalar
from ...loops.ranges import surely_within
from ...loops.scalar_ops import SCALAR_OPS, Elementary, identity
from ...symbolic.symbolic_sizes import Extent, surely_at_least
from .triton_library import SO_FAR, extreme
from .triton_text import TritonText, axes_of_access, detail_extent
from .triton_types import HALF, SMALL, VALUE, cast_text, number_text

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "bit_and": "&", "bit_or": "|", "bit_xor": "^"}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


class TritonValues:
    """Writes values into the text of a kernel."""

    def __init__(self, text: TritonText) -> None:
        self.text = text

    def value(self, root: Scalar) -> str:
        """Return the name of a value, after writing what is missing."""
        stack = [root]
        while stack:
            scalar = stack[-1]
            missing = [] if self._is_known(scalar) else [arg for arg in scalar.args if not self._is_known(arg)]
            stack.extend(missing)
            if not missing:
                stack.pop()
                if not self._is_known(scalar):
                    self._write(scalar)
        return self.text.names[id(root)]

    def _is_known(self, scalar: Scalar) -> bool:
        return id(scalar) in self.text.names

    def _write(self, scalar: Scalar) -> None:
        name = f"t{self.text.number[id(scalar)]}"
        args = [self.text.names[id(arg)] for arg in scalar.args]
        rank = self.text.shape.rank
        if scalar.name == "reduce":
            raise ValueError("a reduction is read before it is done")
        if scalar.name == "constant":
            shown = number_text(_number(scalar), scalar.dtype, rank)
        elif scalar.name == "index":
            whole = f"({self.text.index(scalar.expression, {})})"
            shown = cast_text(torch.int64 if self.text.shape.is_wide else torch.int32, scalar.dtype, whole)
        elif scalar.name == "load":
            shown = self._load(scalar, args, name)
        elif scalar.name == "cast":
            shown = cast_text(scalar.args[0].dtype, scalar.dtype, args[0])
        elif scalar.name == "scan":
            shown = self._scan(scalar, args[0], name)
        elif scalar.name == "checked":
            size = self.text.extent(detail_extent(scalar))
            self.text.report(1, f"({args[0]} < 0) | ({args[0]} >= {size})", self.text.axes_of[id(scalar)])
            shown = args[0]
        else:
            shown = self._operation(scalar, args)
            if scalar.dtype in SMALL:
                shown = f"({shown}).to({VALUE[scalar.dtype]})"
        self.text.line(f"{name} = {shown}")
        self.text.names[id(scalar)] = name

    def _scan(self, scalar: Scalar, value: str, name: str) -> str:
        """Write the results so far of a block of points, behind those of the blocks before it if there are some."""
        combine, carry = SO_FAR[scalar.kind], f"far{self.text.number[id(scalar)]}"
        self.text.line(f"{name}_in = tl.broadcast_to({value}, {self.text.shape.tile})")
        if self.text.shape.tiling.whole:
            return f"tl.associative_scan({name}_in, 1, {combine})"
        if scalar.kind in ("max", "min"):
            return self._extreme_so_far(scalar, name, carry)
        self.text.line(f"{name}_before = {carry}")
        # in the last block it takes in what lies beyond the end, and nobody needs it any more
        self.text.line(f"{carry} = {combine}({carry}, tl.reduce({name}_in, 1, {combine}, keep_dims=True))")
        return f"{combine}({name}_before, tl.associative_scan({name}_in, 1, {combine}))"

    def _extreme_so_far(self, scalar: Scalar, name: str, carry: str) -> str:
        """Write the same for an extreme: of equal ones the last counts, and a reduction may take them in any order."""
        kind, combine = scalar.kind, SO_FAR[scalar.kind]
        start, greatest = self._start(scalar), extreme(kind, is_float=scalar.dtype.is_floating_point)
        self.text.line(f"{name}_far = {combine}({carry}, tl.associative_scan({name}_in, 1, {combine}))")
        last = f"tl.where(pr == start + {self.text.shape.tiling.r - 1}, {name}_far, {start})"
        self.text.line(f"{carry} = tl.reduce({last}, 1, {greatest}, keep_dims=True).to({VALUE[scalar.dtype]})")
        return f"{name}_far"

    def _start(self, scalar: Scalar) -> str:
        return number_text(identity(scalar.kind, scalar.dtype), scalar.dtype, self.text.shape.rank)

    def start_scan(self, scalar: Scalar) -> None:
        """Write what a scan has before its first block."""
        carry, start = f"far{self.text.number[id(scalar)]}", self._start(scalar)
        self.text.line(f"{carry} = tl.broadcast_to({start}, [{self.text.shape.tiling.x}, 1])")

    def _load(self, scalar: Scalar, args: list[str], name: str) -> str:
        access = scalar.access
        places: dict[str, str] = {}
        inside: list[str] = []
        for number, (symbol, arg) in enumerate(zip(access.looked_up, scalar.args, strict=True)):
            places[symbol.name] = f"{name}_{number}"
            if self._place(f"{name}_{number}", args[number], arg, symbol.size):
                inside.append(f"{name}_{number}_in")
        offset = self.text.index(access.index[0], places)
        mask = self.text.mask(self.text.axes_of[id(scalar)] if places else axes_of_access(access), *inside)
        guarded = f", mask={mask}, other=0" if mask else ""
        loaded = f"tl.load({self.text.pointer(access.buffer)} + ({offset}){guarded})"
        return f"{loaded}.to(tl.float32)" if scalar.dtype in HALF else loaded

    def _place(self, name: str, shown: str, value: Scalar, size: Extent) -> bool:
        """Write a looked-up place, checked where it can be anything; return whether there may be nothing to read."""
        whole = "tl.int64" if self.text.shape.is_wide else "tl.int32"
        if surely_within(self.text.ranges.get(id(value)), size):
            self.text.line(f"{name} = {shown}.to({whole})")
            return False
        self.text.line(f"{name} = {shown}.to(tl.int64)")
        self.text.line(f"{name}_in = ({name} >= 0) & ({name} < {self.text.extent(size)})")
        self.text.report(1, f"{name}_in == 0", self.text.axes_of[id(value)])
        self.text.line(f"{name} = tl.where({name}_in, {name}, 0).to({whole})")
        return not surely_at_least(size, 1)

    def _operation(self, scalar: Scalar, args: list[str]) -> str:
        name, dtype = scalar.name, scalar.args[-1].dtype
        is_float = dtype.is_floating_point
        if name in _SIGNS:
            return f"{args[0]} {_SIGNS[name]} {args[1]}"
        if name in _COMPARISONS:
            left, right = (f"{arg}.to(tl.int32)" for arg in args) if dtype == torch.bool else args
            return f"{left} {_COMPARISONS[name]} {right}"
        if isinstance(SCALAR_OPS[name].c, Elementary):
            return f"libdevice.{'rint' if name == 'round' else name}({', '.join(args)})"
        if name in ("minimum", "maximum"):
            return f"{extreme(name, is_float=is_float)}({args[0]}, {args[1]})"
        if name == "where":
            return f"tl.where({', '.join(args)})"
        if name == "neg":  # nothing minus zero would be plus zero
            return f"{args[0]} * {self._number(-1, dtype)}" if is_float else f"{self._number(0, dtype)} - {args[0]}"
        if name == "bit_not":
            return f"{args[0]} ^ {self._number(True if dtype == torch.bool else _all_bits(dtype), dtype)}"
        if name in ("shift_left", "shift_right"):
            return self._shift(name, args, dtype)
        return self._arithmetic(scalar, args, dtype)

    def _arithmetic(self, scalar: Scalar, args: list[str], dtype: torch.dtype) -> str:
        is_single = dtype == torch.float32
        if scalar.name == "div":
            return f"tl.div_rn({args[0]}, {args[1]})" if is_single else f"{args[0]} / {args[1]}"
        if scalar.name == "sqrt":
            return f"tl.sqrt_rn({args[0]})" if is_single else f"tl.sqrt({args[0]})"
        if scalar.name == "abs":
            return args[0] if dtype == torch.uint8 else f"tl.abs({args[0]})"
        if scalar.name == "fma":
            return f"tl.fma({', '.join(args)})"
        if scalar.name == "copysign":
            return f"libdevice.copysign({', '.join(args)})"
        if scalar.name == "trunc_div":
            return self._trunc_divide(scalar, args, dtype)
        raise ValueError(f"no Triton is known for {scalar.name}")

    def _trunc_divide(self, scalar: Scalar, args: list[str], dtype: torch.dtype) -> str:
        """Write integer division towards zero; a zero divisor may be reported, the most negative number wraps."""
        zero, one = self._number(0, dtype), self._number(1, dtype)
        if self.text.stops_at_zero:
            self.text.report(2, f"{args[1]} == {zero}", self.text.axes_of[id(scalar)])
        if not dtype.is_signed:
            return f"{args[0]} // tl.where({args[1]} == {zero}, {one}, {args[1]})"
        minus = f"({args[1]} == {self._number(-1, dtype)})"
        divisor = f"tl.where(({args[1]} == {zero}) | {minus}, {one}, {args[1]})"
        return f"tl.where({minus}, {zero} - {args[0]}, {args[0]} // {divisor})"

    def _shift(self, name: str, args: list[str], dtype: torch.dtype) -> str:
        """Write a shift by any number: beyond the width, or by less than nothing, only the sign is left."""
        bits, zero = torch.iinfo(dtype).bits, self._number(0, dtype)
        inside = f"({args[1]} >= {zero}) & ({args[1]} < {self._number(bits, dtype)})"
        near = f"tl.where({inside}, {args[1]}, {zero})"
        if name == "shift_left":
            return f"tl.where({inside}, {args[0]} << {near}, {zero})"
        if not dtype.is_signed:
            return f"tl.where({inside}, {args[0]} >> {near}, {zero})"
        return f"{args[0]} >> tl.where({inside}, {args[1]}, {self._number(bits - 1, dtype)})"

    def _number(self, value: float | int | bool, dtype: torch.dtype) -> str:
        return number_text(value, dtype, self.text.shape.rank)


def _all_bits(dtype: torch.dtype) -> int:
    return -1 if dtype.is_signed else torch.iinfo(dtype).max


def _number(scalar: Scalar) -> float | int | bool:
    if not isinstance(scalar.detail, float | int):
        raise TypeError(f"constant {scalar.detail!r} is not a number")
    return scalar.detail
