"""The small functions that generated C may call: written out only where a file uses them.

`Library.need(...)` returns the C name of a function for a register class and a lane count and keeps its text, with
the types and functions that it needs itself, for the head of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from ..base.errors import InternalError
from ..loops.scalar_ops import SCALAR_OPS, Elementary, Helper
from .c_types import ELEMENT, REGISTER, STORED, TAG, WIDTH, number_text, typed

_INLINE = "static inline __attribute__((always_inline))"
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
# Highest power first: erf(x)/x - 1 in powers of x*x, and -log(erfc(t))/t in powers of t.
ERF_NEAR = (
    "-0x1.3825bcp-11", "0x1.46c232p-8", "-0x1.b676cap-6", "0x1.ce1904p-4", "-0x1.8126dcp-2", "0x1.06eba6p-3",
)  # fmt: skip
ERF_FAR = (
    "0x1.3fbfa8p-18", "-0x1.6c8df2p-15", "-0x1.fb17a4p-15", "0x1.8403bcp-9", "-0x1.744c10p-6", "0x1.af590ap-4",
    "0x1.456d7ep-1", "0x1.20e91cp+0",
)  # fmt: skip


def _elementary(op: str) -> Elementary:
    form = SCALAR_OPS[op].c
    if not isinstance(form, Elementary):
        raise InternalError(f"{op} is not a function of libm", hint="declare it in loops/scalar_ops.py")
    return form


class Library:
    """Collects the types, functions and outside addresses of one C file."""

    def __init__(self, symbols: frozenset[str], *, has_f16c: bool) -> None:
        """symbols: the vector functions that the process offers; has_f16c: hardware half conversion."""
        self._offered = symbols
        self._has_f16c = has_f16c
        self.has_threads = "GOMP_parallel" in symbols
        self._types: dict[str, str] = {}
        self._functions: dict[str, str] = {}
        self.addresses: dict[str, int] = {}

    def text(self) -> str:
        """Return the head of the file: types, the address table, functions in order of need."""
        table = f"void *plumbline_functions[{max(len(self.addresses), 1)}];" if self.addresses else ""
        return "\n".join([*self._types.values(), table, *self._functions.values()])

    def type(self, register: str, lanes: int) -> str:
        """Return a register type, declared."""
        name = typed(register, lanes)
        if name not in self._types:
            element, width = ELEMENT[register], WIDTH[register] * lanes
            vector = f" __attribute__((vector_size({width}), may_alias))" if lanes > 1 else ""
            self._types[name] = f"typedef {element} {name}{vector};"
        return name

    def memory_type(self, dtype: torch.dtype, lanes: int) -> str:
        """Return a vector type of elements as they stand in memory, declared."""
        name = f"m_{TAG[dtype]}_{lanes}"
        if name not in self._types:
            width = dtype.itemsize * lanes
            self._types[name] = (
                f"typedef {STORED[dtype]} {name}"
                f" __attribute__((vector_size({width}), aligned({dtype.itemsize}), may_alias));"
            )
        return name

    def _define(self, name: str, text: str) -> str:
        self._functions.setdefault(name, text)
        return name

    def address(self, symbol: str) -> int:
        """Return the slot of an outside function in the address table."""
        return self.addresses.setdefault(symbol, len(self.addresses))

    # -- memory ------------------------------------------------------------------------------------------------

    def load(self, dtype: torch.dtype, lanes: int) -> str:
        """Return the function that reads lanes neighbouring elements into a register."""
        name = f"load_{TAG[dtype]}_{lanes}"
        if name in self._functions:
            return name
        register = REGISTER[dtype]
        kind = self.type(register, lanes)
        if dtype == torch.float16:
            body = self._load_half(lanes)
        elif lanes == 1:
            body = {
                torch.bool: "return -(*p != 0);",
                torch.bfloat16: "unsigned t = (unsigned)*p << 16; float r; __builtin_memcpy(&r, &t, 4); return r;",
            }.get(dtype, "return *p;")
        elif dtype == torch.bfloat16:
            ints = self.type("i", lanes)
            memory = self.memory_type(dtype, lanes)
            body = f"return ({kind})(__builtin_convertvector(*(const {memory} *)p, {ints}) << 16);"
        else:
            memory = self.memory_type(dtype, lanes)
            body = f"return __builtin_convertvector(*(const {memory} *)p, {kind});"
            if dtype == torch.bool:
                body = f"return __builtin_convertvector(*(const {memory} *)p, {kind}) != 0;"
            elif dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
                body = f"return ({kind})*(const {memory} *)p;"
        return self._define(name, f"{_INLINE} {kind} {name}(const {STORED[dtype]} *p) {{ {body} }}")

    def store(self, dtype: torch.dtype, lanes: int) -> str:
        """Return the function that writes a register to neighbouring elements."""
        name = f"store_{TAG[dtype]}_{lanes}"
        if name in self._functions:
            return name
        kind = self.type(REGISTER[dtype], lanes)
        if dtype == torch.float16:
            body = self._store_half(lanes)
        elif lanes == 1:
            body = {
                torch.bool: "*p = (unsigned char)(x & 1);",
                torch.bfloat16: "unsigned t; __builtin_memcpy(&t, &x, 4); *p = (unsigned short)(t >> 16);",
            }.get(dtype, f"*p = ({STORED[dtype]})x;")
        else:
            memory = self.memory_type(dtype, lanes)
            ints = self.type("i", lanes)
            shown = {torch.bool: "x & 1", torch.bfloat16: f"({ints})x >> 16"}.get(dtype, "x")
            body = f"*({memory} *)p = __builtin_convertvector({shown}, {memory});"
            if dtype in (torch.float32, torch.float64, torch.int32, torch.int64):
                body = f"*({memory} *)p = ({memory})x;"
        return self._define(name, f"{_INLINE} void {name}({STORED[dtype]} *p, {kind} x) {{ {body} }}")

    def _half_builtins(self, lanes: int) -> tuple[str, str, str] | None:
        """Return (vector type of shorts, to-half call, from-half call) where the CPU converts in hardware."""
        if not self._has_f16c or lanes not in (8, 16):
            return None
        self._types.setdefault(
            f"s_{lanes}", f"typedef short s_{lanes} __attribute__((vector_size({2 * lanes}), may_alias));"
        )
        floats = self.type("f", lanes)
        if lanes == 16:
            return (
                "s_16", "__builtin_ia32_vcvtps2ph512_mask(x, 0, (s_16){0}, -1)",
                f"__builtin_ia32_vcvtph2ps512_mask(h, ({floats}){{0}}, -1, 4)",
            )  # fmt: skip
        return "s_8", "__builtin_ia32_vcvtps2ph256(x, 0)", "__builtin_ia32_vcvtph2ps256(h)"

    def _load_half(self, lanes: int) -> str:
        kind = self.type("f", lanes)
        if lanes == 1:
            return "_Float16 h; __builtin_memcpy(&h, p, 2); return (float)h;"
        found = self._half_builtins(lanes)
        if found is not None:
            shorts, _, widen = found
            return f"{shorts} h; __builtin_memcpy(&h, p, sizeof h); return {widen};"
        return (
            f"{kind} r; for (int k = 0; k < {lanes}; k++)"
            " { _Float16 h; __builtin_memcpy(&h, p + k, 2); r[k] = (float)h; }"
            " return r;"
        )

    def _store_half(self, lanes: int) -> str:
        if lanes == 1:
            return "_Float16 h = (_Float16)x; __builtin_memcpy(p, &h, 2);"
        found = self._half_builtins(lanes)
        if found is not None:
            shorts, narrow, _ = found
            return f"{shorts} h = {narrow}; __builtin_memcpy(p, &h, sizeof h);"
        return f"for (int k = 0; k < {lanes}; k++) {{ _Float16 h = (_Float16)x[k]; __builtin_memcpy(p + k, &h, 2); }}"

    # -- operations --------------------------------------------------------------------------------------------

    def helper(self, form: Helper, op: str, dtype: torch.dtype, lanes: int) -> str:
        """Return the function of a scalar operation that is declared as a helper, for arguments of a dtype."""
        register = REGISTER[dtype]
        texts: Mapping[str, Callable[[], str]] = {
            "absolute": lambda: self.absolute(register, lanes),
            "compare": lambda: self.compare(op, register, lanes),
            "copysign": lambda: self.copysign(register, lanes),
            "extreme": lambda: self.extreme(op, register, lanes),
            "select": lambda: self.select(register, lanes),
            "shift": lambda: self.shift(op, dtype, lanes),
            "square_root": lambda: self.square_root(register, lanes),
            "trunc_divide": lambda: self.trunc_divide(register, lanes),
        }
        return texts[form.name]()

    # -- registers ---------------------------------------------------------------------------------------------

    def splat(self, register: str, lanes: int) -> str:
        """Return the function that repeats a scalar in every lane."""
        kind = self.type(register, lanes)
        name = f"splat_{kind}"
        listed = ", ".join(["s"] * lanes)
        return self._define(name, f"{_INLINE} {kind} {name}({ELEMENT[register]} s) {{ return ({kind}){{{listed}}}; }}")

    def constant(self, value: float | int | bool, register: str, lanes: int) -> str:
        """Return a constant as an expression."""
        shown = number_text(value, register)
        return shown if lanes == 1 else f"{self.splat(register, lanes)}({shown})"

    def select(self, register: str, lanes: int) -> str:
        """Return the function `(mask, a, b)` that takes a where the mask is set."""
        kind, mask = self.type(register, lanes), self.type("b", lanes)
        name = f"select_{register}_{lanes}"
        if lanes == 1:
            body = "return m ? a : b;"
        elif WIDTH[register] == 4:
            body = f"return ({kind})((m & ({mask})a) | (~m & ({mask})b));"
        else:
            wide = self.type("l", lanes)
            body = (
                f"{wide} w = __builtin_convertvector(m, {wide}); return ({kind})((w & ({wide})a) | (~w & ({wide})b));"
            )
        return self._define(name, f"{_INLINE} {kind} {name}({mask} m, {kind} a, {kind} b) {{ {body} }}")

    def compare(self, op: str, register: str, lanes: int) -> str:
        """Return the function that compares and gives a mask."""
        kind, mask = self.type(register, lanes), self.type("b", lanes)
        sign = _COMPARE[op]
        if lanes == 1:
            body = f"return -(a {sign} b);"
        elif WIDTH[register] == 4:
            body = f"return ({mask})(a {sign} b);"
        else:
            body = f"return __builtin_convertvector(a {sign} b, {mask});"
        return self._define(
            f"{op}_{register}_{lanes}", f"{_INLINE} {mask} {op}_{register}_{lanes}({kind} a, {kind} b) {{ {body} }}"
        )

    def extreme(self, op: str, register: str, lanes: int) -> str:
        """Return maximum or minimum; NaN in either argument wins.

        The hardware's own instruction gives the second argument where one is NaN, so only the first needs a look;
        in a reduction the running value is the second, which keeps the look off its path.
        """
        kind = self.type(register, lanes)
        select = self.select(register, lanes)
        name = f"{op}_{register}_{lanes}"
        short = op[:3]
        bits = WIDTH[register] * lanes * 8
        if register in "fd" and self._has_f16c and bits in (256, 512):
            letter = "s" if register == "f" else "d"
            call = f"__builtin_ia32_{short}p{letter}{bits}"
            taken = f"{call}_mask(a, b, a, -1, 4)" if bits == 512 else f"{call}(a, b)"
        else:
            taken = f"{select}({self.compare('gt' if op == 'maximum' else 'lt', register, lanes)}(a, b), a, b)"
        if register in "fd":
            taken = f"{select}({self.compare('ne', register, lanes)}(a, a), a, {taken})"
        return self._define(name, f"{_INLINE} {kind} {name}({kind} a, {kind} b) {{ return {taken}; }}")

    def absolute(self, register: str, lanes: int) -> str:
        """Return |x|: the sign bit cleared, or two's complement."""
        kind = self.type(register, lanes)
        name = f"abs_{register}_{lanes}"
        if register in "fd":
            if lanes == 1:
                body = f"return __builtin_fabs{'f' if register == 'f' else ''}(x);"
            else:
                ints = self.type("i" if register == "f" else "l", lanes)
                body = f"return ({kind})(({ints})x & {'0x7fffffff' if register == 'f' else '0x7fffffffffffffffLL'});"
        else:
            body = f"{kind} s = x >> {31 if register == 'i' else 63}; return (x ^ s) - s;"
        return self._define(name, f"{_INLINE} {kind} {name}({kind} x) {{ {body} }}")

    def copysign(self, register: str, lanes: int) -> str:
        """Return the size of a with the sign bit of b."""
        kind = self.type(register, lanes)
        name = f"copysign_{register}_{lanes}"
        if lanes == 1:
            body = f"return __builtin_copysign{'f' if register == 'f' else ''}(a, b);"
        else:
            ints = self.type("i" if register == "f" else "l", lanes)
            mask = "0x7fffffff" if register == "f" else "0x7fffffffffffffffLL"
            body = f"return ({kind})((({ints})a & {mask}) | (({ints})b & ~{mask}));"
        return self._define(name, f"{_INLINE} {kind} {name}({kind} a, {kind} b) {{ {body} }}")

    def wrap(self, dtype: torch.dtype, lanes: int) -> str | None:
        """Return the function that brings a 32-bit result back into a small integer type; None for others."""
        bits = {torch.int8: 24, torch.int16: 16}.get(dtype)
        kind = self.type("i", lanes)
        if dtype == torch.uint8:
            return self._define(f"wrap_u8_{lanes}", f"{_INLINE} {kind} wrap_u8_{lanes}({kind} x) {{ return x & 255; }}")
        if bits is None:
            return None
        name = f"wrap_{TAG[dtype]}_{lanes}"
        return self._define(name, f"{_INLINE} {kind} {name}({kind} x) {{ return (x << {bits}) >> {bits}; }}")

    def convert(self, source: str, target: str, lanes: int) -> str:
        """Return the conversion between register classes f, d, i, l (a mask counts as ints 0 and 1)."""
        start, end = self.type(source, lanes), self.type(target, lanes)
        name = f"convert_{source}_{target}_{lanes}"
        given = "x & 1" if source == "b" else "x"
        if lanes == 1:
            body = f"return ({ELEMENT[target]})({given});"
        elif source == "b" and target == "i":
            body = "return x & 1;"
        else:
            body = f"return __builtin_convertvector({given}, {end});"
        return self._define(name, f"{_INLINE} {end} {name}({start} x) {{ {body} }}")

    def round_half(self, dtype: torch.dtype, lanes: int) -> str:
        """Return the function that rounds a float to a half type's values, to nearest even; NaN stays NaN."""
        kind, ints = self.type("f", lanes), self.type("i", lanes)
        name = f"round_{TAG[dtype]}_{lanes}"
        if dtype == torch.bfloat16:
            if lanes == 1:
                body = (
                    "unsigned u; __builtin_memcpy(&u, &x, 4); if (x != x) u = 0x7fc00000u;"
                    " else u = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u; __builtin_memcpy(&x, &u, 4); return x;"
                )
            else:
                body = (
                    f"{ints} u = ({ints})x; {ints} n = ({ints})(x != x);"
                    " u = (u + 0x7fff + ((u >> 16) & 1)) & (int)0xffff0000u;"  # a NaN may overflow here
                    f" return ({kind})(u | (n & 0x7fff0000));"
                )
        elif lanes == 1:
            body = "return (float)(_Float16)x;"
        elif (found := self._half_builtins(lanes)) is not None:
            body = f"{found[0]} h = {found[1]}; return {found[2]};"
        else:
            body = f"for (int k = 0; k < {lanes}; k++) x[k] = (float)(_Float16)x[k]; return x;"
        return self._define(name, f"{_INLINE} {kind} {name}({kind} x) {{ {body} }}")

    def trunc_divide(self, register: str, lanes: int) -> str:
        """Return integer division towards zero; a zero divisor sets *error instead of trapping."""
        kind, element = self.type(register, lanes), ELEMENT[register]
        name = f"trunc_div_{register}_{lanes}"
        one = f"({element})0 - {{a}}"
        if lanes == 1:
            body = f"if (b == 0) {{ *error = 2; return 0; }} return b == -1 ? {one.format(a='a')} : a / b;"
        else:
            body = (
                f"{kind} r; for (int k = 0; k < {lanes}; k++) {{ {element} x = a[k], y = b[k];"
                " if (y == 0) { *error = 2; r[k] = 0; }"
                f" else r[k] = y == -1 ? {one.format(a='x')} : x / y; }} return r;"
            )
        return self._define(name, f"static {kind} {name}({kind} a, {kind} b, int *error) {{ {body} }}")

    def square_root(self, register: str, lanes: int) -> str:
        """Return the correctly rounded square root: one instruction."""
        kind, letter = self.type(register, lanes), "s" if register == "f" else "d"
        bits = WIDTH[register] * lanes * 8
        name = f"sqrt_{register}_{lanes}"
        if lanes == 1:
            body = f"return __builtin_sqrt{'f' if register == 'f' else ''}(x);"
        elif bits == 512 and self._has_f16c:
            body = f"return __builtin_ia32_sqrtp{letter}512_mask(x, ({kind}){{0}}, -1, 4);"
        elif bits == 256 and self._has_f16c:
            body = f"return __builtin_ia32_sqrtp{letter}256(x);"
        else:
            root = f"__builtin_sqrt{'f' if register == 'f' else ''}"
            body = f"for (int k = 0; k < {lanes}; k++) x[k] = {root}(x[k]); return x;"
        return self._define(name, f"{_INLINE} {kind} {name}({kind} x) {{ {body} }}")

    def checked(self, register: str, lanes: int) -> str:
        """Return the function that passes places in range and sets *error to 1 for others."""
        kind = self.type(register, lanes)
        name = f"checked_{register}_{lanes}"
        if lanes == 1:
            body = (
                "if ((unsigned long long)(long long)x >= (unsigned long long)size) { *error = 1; return 0; } return x;"
            )
        else:
            body = (
                f"for (int k = 0; k < {lanes}; k++)"
                " if ((unsigned long long)(long long)x[k] >= (unsigned long long)size) { *error = 1; x[k] = 0; }"
                " return x;"
            )
        return self._define(name, f"static {kind} {name}({kind} x, long long size, int *error) {{ {body} }}")

    def shift(self, op: str, dtype: torch.dtype, lanes: int) -> str:
        """Return a shift that is defined for every amount: too far gives zero, or the sign."""
        register = REGISTER[dtype]
        kind = self.type(register, lanes)
        bits = torch.iinfo(dtype).bits
        name = f"{op}_{TAG[dtype]}_{lanes}"
        mask = "l" if register == "l" else "i"
        held = self.type(mask, lanes)
        limit = self.constant(bits, register, lanes)
        zero = self.constant(0, register, lanes)
        if lanes == 1:
            inside = f"({held})-((a_by >= 0) & (a_by < {bits}))"
        else:
            inside = f"({held})((a_by >= {zero}) & (a_by < {limit}))"
        if op == "shift_left":
            body = f"{held} in = {inside}; return (a << (a_by & in)) & in;"
        else:
            body = f"{held} in = {inside}; return a >> ((a_by & in) | (~in & {bits - 1}));"
        return self._define(name, f"{_INLINE} {kind} {name}({kind} a, {kind} a_by) {{ {body} }}")

    def transpose(self, register: str, lanes: int) -> str:
        """Return the function that transposes a square of vectors: pairs exchange blocks of 1, 2, 4, ... lanes."""
        kind = self.type(register, lanes)
        name = f"transpose_{register}_{lanes}"
        if name in self._functions:
            return name
        lines = [f"{kind} {', '.join(f'r{n} = q[{n}]' for n in range(lanes))}, t;"]
        width = 1
        while width < lanes:
            low = ", ".join(str(e if not e & width else lanes + e - width) for e in range(lanes))
            high = ", ".join(str(e + width if not e & width else lanes + e) for e in range(lanes))
            for n in range(lanes):
                if not n & width:
                    one, two = f"r{n}", f"r{n + width}"
                    lines.append(f"t = __builtin_shufflevector({one}, {two}, {low});")
                    lines.append(f"{two} = __builtin_shufflevector({one}, {two}, {high}); {one} = t;")
            width *= 2
        lines.append(" ".join(f"q[{n}] = r{n};" for n in range(lanes)))
        return self._define(name, f"static void {name}({kind} *q) {{\n  " + "\n  ".join(lines) + "\n}")

    # -- outside functions -------------------------------------------------------------------------------------

    def math(self, op: str, register: str, lanes: int) -> str:
        """Return an elementary function: Sleef's vector version where the process offers it, else libm per lane."""
        kind = self.type(register, lanes)
        name = f"{op}_{register}_{lanes}"
        if name in self._functions:
            return name
        if op == "erf" and register == "f" and self._has_f16c and lanes in (8, 16):
            return self._error_function(name, lanes)
        letters = ("a", "b")[: SCALAR_OPS[op].arity]
        parameters = ", ".join(f"{kind} {letter}" for letter in letters)
        symbol, wide = self._vector_symbol(op, register, max(lanes, 2))
        if symbol is None:
            body = self._per_lane(op, register, lanes, letters)
        else:
            full = self.type(register, wide)
            slot = self.address(symbol)
            signature = f"({full} (*)({', '.join([full] * len(letters))}))plumbline_functions[{slot}]"
            if wide == lanes:
                body = f"return ({signature})({', '.join(letters)});"
            elif lanes == 1:
                widened = ", ".join(f"{self.splat(register, wide)}({letter})" for letter in letters)
                body = f"return ({signature})({widened})[0];"
            else:
                filled = " ".join(
                    f"{full} w{letter} = {{{', '.join([f'{letter}[{k % lanes}]' for k in range(wide)])}}};"
                    for letter in letters
                )
                names = ", ".join(f"w{letter}" for letter in letters)
                taken = ", ".join(f"r[{k}]" for k in range(lanes))
                body = f"{filled} {full} r = ({signature})({names}); return ({kind}){{{taken}}};"
        return self._define(name, f"{_INLINE} {kind} {name}({parameters}) {{ {body} }}")

    def fused(self, lanes: int) -> str:
        """Return the function a * b + c of floats with one rounding (the CPU's instruction)."""
        kind = self.type("f", lanes)
        call = (
            "__builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)" if lanes == 16 else "__builtin_ia32_vfmaddps256(a, b, c)"
        )
        name = f"fused_f_{lanes}"
        return self._define(name, f"{_INLINE} {kind} {name}({kind} a, {kind} b, {kind} c) {{ return {call}; }}")

    def _error_function(self, name: str, lanes: int) -> str:
        """Return erf of floats: x + x P(x*x) near zero, 1 - exp(-t Q(t)) further out; within 2 units in the last place.

        P and Q were fitted to minimise the greatest relative error of erf on [0, 0.93] and [0.93, 3.95].
        """
        kind, splat, fused = self.type("f", lanes), self.splat("f", lanes), self.fused(lanes)
        select, less = self.select("f", lanes), self.compare("lt", "f", lanes)
        size, sign, exp = self.absolute("f", lanes), self.copysign("f", lanes), self.math("exp", "f", lanes)

        def horner(name: str, variable: str, coefficients: tuple[str, ...]) -> str:
            steps = " ".join(f"{name} = {fused}({name}, {variable}, {splat}({c}f));" for c in coefficients[1:])
            return f"{kind} {name} = {splat}({coefficients[0]}f); {steps}"

        body = (
            f"{kind} a = {size}(x), s = x * x; {horner('p', 's', ERF_NEAR)} p = {fused}(p, x, x);"
            f" {kind} t = {select}({less}({splat}(4.0f), a), {splat}(4.0f), a); {horner('q', 't', ERF_FAR)}"
            f" {kind} far = {sign}({splat}(1.0f) - {exp}(-(q * t)), x);"
            f" return {select}({less}(a, {splat}(0.93f)), p, far);"
        )
        return self._define(name, f"{_INLINE} {kind} {name}({kind} x) {{ {body} }}")

    def _vector_symbol(self, op: str, register: str, lanes: int) -> tuple[str | None, int]:
        """Return the narrowest offered vector function with at least these lanes."""
        function = _elementary(op)
        accuracy = function.single if register == "f" else function.double
        if accuracy is None:
            return None, 0
        for wide in (4, 8, 16):
            symbol = f"Sleef_{function.name}{register}{wide}{'_' + accuracy if accuracy else ''}"
            if wide >= lanes and symbol in self._offered:
                return symbol, wide
        return None, 0

    def _per_lane(self, op: str, register: str, lanes: int, letters: tuple[str, ...]) -> str:
        element, kind = ELEMENT[register], self.type(register, lanes)
        slot = self.address(f"{_elementary(op).name}{'f' if register == 'f' else ''}")
        call = f"(({element} (*)({', '.join([element] * len(letters))}))plumbline_functions[{slot}])"
        if lanes == 1:
            return f"return {call}({', '.join(letters)});"
        given = ", ".join(f"{letter}[k]" for letter in letters)
        return f"{kind} r; for (int k = 0; k < {lanes}; k++) r[k] = {call}({given}); return r;"

    # -- reductions --------------------------------------------------------------------------------------------

    def across(self, op: str, register: str, lanes: int) -> str:
        """Return the function that reduces the lanes of a vector as a balanced tree."""
        element = ELEMENT[register]
        kind = self.type(register, lanes)
        name = f"across_{op}_{register}_{lanes}"
        if name in self._functions:
            return name
        if lanes == 2:
            body = f"return {self.combine(op, register, 1, 'x[0]', 'x[1]')};"
        else:
            half = self.type(register, lanes // 2)
            joined = self.combine(op, register, lanes // 2, "h[0]", "h[1]")
            rest = self.across(op, register, lanes // 2)
            body = f"{half} h[2]; __builtin_memcpy(h, &x, sizeof x); return {rest}({joined});"
        return self._define(name, f"{_INLINE} {element} {name}({kind} x) {{ {body} }}")

    def combine(self, op: str, register: str, lanes: int, first: str, second: str) -> str:
        """Return the expression that joins two partial results of a reduction."""
        if op in ("max", "min"):
            return f"{self.extreme('maximum' if op == 'max' else 'minimum', register, lanes)}({second}, {first})"
        return f"({first} {({'sum': '+', 'prod': '*', 'any': '|', 'all': '&'})[op]} {second})"
