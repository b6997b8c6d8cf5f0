"""The small functions that generated C may call: written out only where a file uses them.

`Library.need(...)` returns the C name of a function for a register class and a lane count and keeps its text, with
the types and functions that it needs itself, for the head of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from ...loops.scalar_ops import Helper, furthest_shift
from ..c_types import ELEMENT, REGISTER, STORED, TAG, WIDTH, number_text, typed

INLINE = "static inline __attribute__((always_inline))"
# What a float becomes as a whole number is hidden from the compiler, and so is the float. gcc 12 takes (double)(long)x
# for trunc(x), which differs for large and small negative x, and clips constants where instructions do not.
_HIDE = """#if defined(__x86_64__)
#define HIDE(x) __asm__("" : "+v"(x))
#elif defined(__aarch64__)
#define HIDE(x) __asm__("" : "+w"(x))
#else
#define HIDE(x) __asm__("" : "+m"(x))
#endif
#define HIDE_WHOLE(x) __asm__("" : "+r"(x))
#define HIDE_WIDE(x) __asm__("" : "+m"(x))"""
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def _hiding(register: str, lanes: int) -> str:
    """Return the macro for a value: a vector of 8-byte elements may take two machine registers, and goes by memory."""
    return "HIDE_WIDE" if lanes > 1 and WIDTH[register] == 8 else "HIDE"


class Library:
    """Collects the types, functions and outside addresses of one C file."""

    def __init__(self, symbols: frozenset[str], *, has_f16c: bool) -> None:
        """symbols: the vector functions that the process offers; has_f16c: hardware half conversion."""
        self.offered = symbols
        self.has_f16c = has_f16c
        self.has_threads = "GOMP_parallel" in symbols
        self.types: dict[str, str] = {}
        self.functions: dict[str, str] = {}
        self.addresses: dict[str, int] = {}

    def text(self) -> str:
        """Return the head of the file: types, the address table, functions in order of need."""
        table = f"void *plumbline_functions[{max(len(self.addresses), 1)}];" if self.addresses else ""
        return "\n".join([*self.types.values(), table, *self.functions.values()])

    def type(self, register: str, lanes: int) -> str:
        """Return a register type, declared."""
        name = typed(register, lanes)
        if name not in self.types:
            element, width = ELEMENT[register], WIDTH[register] * lanes
            vector = f" __attribute__((vector_size({width}), may_alias))" if lanes > 1 else ""
            self.types[name] = f"typedef {element} {name}{vector};"
        return name

    def memory_type(self, dtype: torch.dtype, lanes: int) -> str:
        """Return a vector type of elements as they stand in memory, declared."""
        name = f"m_{TAG[dtype]}_{lanes}"
        if name not in self.types:
            width = dtype.itemsize * lanes
            self.types[name] = (
                f"typedef {STORED[dtype]} {name}"
                f" __attribute__((vector_size({width}), aligned({dtype.itemsize}), may_alias));"
            )
        return name

    def define(self, name: str, text: str) -> str:
        """Keep the text of a function under its name; returns the name."""
        self.functions.setdefault(name, text)
        return name

    def address(self, symbol: str) -> int:
        """Return the slot of an outside function in the address table."""
        return self.addresses.setdefault(symbol, len(self.addresses))

    def half_builtins(self, lanes: int) -> tuple[str, str, str] | None:
        """Return (vector type of shorts, to-half call, from-half call) where the CPU converts in hardware."""
        if not self.has_f16c or lanes not in (8, 16):
            return None
        self.types.setdefault(
            f"s_{lanes}", f"typedef short s_{lanes} __attribute__((vector_size({2 * lanes}), may_alias));"
        )
        floats = self.type("f", lanes)
        if lanes == 16:
            return (
                "s_16", "__builtin_ia32_vcvtps2ph512_mask(x, 0, (s_16){0}, -1)",
                f"__builtin_ia32_vcvtph2ps512_mask(h, ({floats}){{0}}, -1, 4)",
            )  # fmt: skip
        return "s_8", "__builtin_ia32_vcvtps2ph256(x, 0)", "__builtin_ia32_vcvtph2ps256(h)"

    # -- operations --------------------------------------------------------------------------------------------

    def helper(self, form: Helper, op: str, dtype: torch.dtype, lanes: int) -> str:
        """Return the function of a scalar operation that is declared as a helper, for arguments of a dtype."""
        register = REGISTER[dtype]
        texts: Mapping[str, Callable[[], str]] = {
            "absolute": lambda: self.absolute(register, lanes),
            "compare": lambda: self.compare(op, register, lanes),
            "copysign": lambda: self.copysign(register, lanes),
            "extreme": lambda: self.extreme(op, register, lanes),
            "fused": lambda: self.fused(register, lanes),
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
        return self.define(name, f"{INLINE} {kind} {name}({ELEMENT[register]} s) {{ return ({kind}){{{listed}}}; }}")

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
        return self.define(name, f"{INLINE} {kind} {name}({mask} m, {kind} a, {kind} b) {{ {body} }}")

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
        return self.define(
            f"{op}_{register}_{lanes}", f"{INLINE} {mask} {op}_{register}_{lanes}({kind} a, {kind} b) {{ {body} }}"
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
        if register in "fd" and self.has_f16c and bits in (256, 512):
            letter = "s" if register == "f" else "d"
            call = f"__builtin_ia32_{short}p{letter}{bits}"
            chosen = f"{call}_mask(a, b, a, -1, 4)" if bits == 512 else f"{call}(a, b)"
        else:
            chosen = f"{select}({self.compare('gt' if op == 'maximum' else 'lt', register, lanes)}(a, b), a, b)"
        if register in "fd":
            chosen = f"{select}({self.compare('ne', register, lanes)}(a, a), a, {chosen})"
        return self.define(name, f"{INLINE} {kind} {name}({kind} a, {kind} b) {{ return {chosen}; }}")

    def fused(self, register: str, lanes: int) -> str:
        """Return the function a * b + c of floats with one rounding.

        CPUs with wide vectors have an instruction for it. On others floats go by way of doubles; doubles round twice.
        """
        kind, name, bits = self.type(register, lanes), f"fused_{register}_{lanes}", WIDTH[register] * lanes * 8
        letter = "s" if register == "f" else "d"
        if self.has_f16c and bits in (256, 512):
            body = (
                f"return __builtin_ia32_vfmaddp{letter}{'512_mask(a, b, c, -1, 4)' if bits == 512 else '256(a, b, c)'};"
            )
        elif self.has_f16c and lanes == 1:
            body = f"return __builtin_fma{'f' if register == 'f' else ''}(a, b, c);"
        elif register == "d":
            body = "return a * b + c;"
        elif lanes == 1:
            body = "return (float)((double)a * b + c);"
        else:
            one, names = self.fused(register, 1), [f"a[{k}], b[{k}], c[{k}]" for k in range(lanes)]
            body = f"return ({kind}){{{', '.join(f'{one}({each})' for each in names)}}};"
        return self.define(name, f"{INLINE} {kind} {name}({kind} a, {kind} b, {kind} c) {{ {body} }}")

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
        return self.define(name, f"{INLINE} {kind} {name}({kind} x) {{ {body} }}")

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
        return self.define(name, f"{INLINE} {kind} {name}({kind} a, {kind} b) {{ {body} }}")

    def wrap(self, dtype: torch.dtype, lanes: int) -> str | None:
        """Return the function that brings a 32-bit result back into a small integer type; None for others."""
        bits = {torch.int8: 24, torch.int16: 16}.get(dtype)
        kind = self.type("i", lanes)
        if dtype == torch.uint8:
            return self.define(f"wrap_u8_{lanes}", f"{INLINE} {kind} wrap_u8_{lanes}({kind} x) {{ return x & 255; }}")
        if bits is None:
            return None
        name = f"wrap_{TAG[dtype]}_{lanes}"
        return self.define(name, f"{INLINE} {kind} {name}({kind} x) {{ return (x << {bits}) >> {bits}; }}")

    def convert(self, source: str, target: str, lanes: int) -> str:
        """Return the conversion between register classes f, d, i, l (a mask counts as ints 0 and 1)."""
        start, end = self.type(source, lanes), self.type(target, lanes)
        name = f"convert_{source}_{target}_{lanes}"
        operand = "x & 1" if source == "b" else "x"
        if lanes == 1:
            body = f"return ({ELEMENT[target]})({operand});"
        elif source == "b" and target == "i":
            body = "return x & 1;"
        else:
            body = f"return __builtin_convertvector({operand}, {end});"
        if source in "fd" and target in "il":
            self.define("HIDE", _HIDE)
            hidden = [_hiding(source, lanes), "HIDE_WHOLE" if lanes == 1 else _hiding(target, lanes)]
            body = f"{hidden[0]}(x); {end} n = {body.removeprefix('return ')} {hidden[1]}(n); return n;"
        return self.define(name, f"{INLINE} {end} {name}({start} x) {{ {body} }}")

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
        elif (builtins := self.half_builtins(lanes)) is not None:
            body = f"{builtins[0]} h = {builtins[1]}; return {builtins[2]};"
        else:
            body = f"for (int k = 0; k < {lanes}; k++) x[k] = (float)(_Float16)x[k]; return x;"
        return self.define(name, f"{INLINE} {kind} {name}({kind} x) {{ {body} }}")

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
        return self.define(name, f"static {kind} {name}({kind} a, {kind} b, int *error) {{ {body} }}")

    def square_root(self, register: str, lanes: int) -> str:
        """Return the correctly rounded square root: one instruction."""
        kind, letter = self.type(register, lanes), "s" if register == "f" else "d"
        bits = WIDTH[register] * lanes * 8
        name = f"sqrt_{register}_{lanes}"
        if lanes == 1:
            body = f"return __builtin_sqrt{'f' if register == 'f' else ''}(x);"
        elif bits == 512 and self.has_f16c:
            body = f"return __builtin_ia32_sqrtp{letter}512_mask(x, ({kind}){{0}}, -1, 4);"
        elif bits == 256 and self.has_f16c:
            body = f"return __builtin_ia32_sqrtp{letter}256(x);"
        else:
            root = f"__builtin_sqrt{'f' if register == 'f' else ''}"
            body = f"for (int k = 0; k < {lanes}; k++) x[k] = {root}(x[k]); return x;"
        return self.define(name, f"{INLINE} {kind} {name}({kind} x) {{ {body} }}")

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
        return self.define(name, f"static {kind} {name}({kind} x, long long size, int *error) {{ {body} }}")

    def shift(self, op: str, dtype: torch.dtype, lanes: int) -> str:
        """Return a shift that is defined for every amount: too far gives zero, or the sign."""
        register = REGISTER[dtype]
        kind = self.type(register, lanes)
        bits = torch.iinfo(dtype).bits
        name = f"{op}_{TAG[dtype]}_{lanes}"
        mask = "l" if register == "l" else "i"
        mask_type = self.type(mask, lanes)
        limit = self.constant(bits, register, lanes)
        zero = self.constant(0, register, lanes)
        if lanes == 1:
            inside = f"({mask_type})-((a_by >= 0) & (a_by < {bits}))"
        else:
            inside = f"({mask_type})((a_by >= {zero}) & (a_by < {limit}))"
        if op == "shift_left":
            body = f"{mask_type} in = {inside}; return (a << (a_by & in)) & in;"
        else:
            body = f"{mask_type} in = {inside}; return a >> ((a_by & in) | (~in & {furthest_shift(dtype)}));"
        return self.define(name, f"{INLINE} {kind} {name}({kind} a, {kind} a_by) {{ {body} }}")

    def every_second(self, register: str, lanes: int) -> str:
        """Return the function of vectors at p and p + lanes - 1 that gives the elements at p, p + 2, p + 4, ..."""
        kind = self.type(register, lanes)
        name = f"every_second_{register}_{lanes}"
        taken = [2 * lane if 2 * lane < lanes else 2 * lane + 1 for lane in range(lanes)]
        body = f"return __builtin_shufflevector(a, b, {', '.join(map(str, taken))});"
        return self.define(name, f"{INLINE} {kind} {name}({kind} a, {kind} b) {{ {body} }}")

    def permute(self, register: str, lanes: int, vectors: int) -> str:
        """Return the function `(v0, [v1,] n)` whose lane k is element n[k] of the vectors one after another."""
        kind, numbers = self.type(register, lanes), self.type("l" if WIDTH[register] == 8 else "i", lanes)
        name = f"permute{vectors}_{register}_{lanes}"
        names = [f"v{number}" for number in range(vectors)]
        one = "v0[n[k]]" if vectors == 1 else f"n[k] < {lanes} ? v0[n[k]] : v1[n[k] - {lanes}]"
        body = (
            f"\n#ifdef __clang__\n{kind} r; for (int k = 0; k < {lanes}; k++) r[k] = {one}; return r;\n"
            f"#else\nreturn __builtin_shuffle({', '.join(names)}, n);\n#endif\n"
        )
        parameters = ", ".join(f"{kind} {each}" for each in names)
        return self.define(name, f"{INLINE} {kind} {name}({parameters}, {numbers} n) {{ {body} }}")

    def transpose(self, register: str, lanes: int) -> str:
        """Return the function that transposes a square of vectors: pairs exchange blocks of 1, 2, 4, ... lanes."""
        kind = self.type(register, lanes)
        name = f"transpose_{register}_{lanes}"
        if name in self.functions:
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
        return self.define(name, f"static void {name}({kind} *q) {{\n  " + "\n  ".join(lines) + "\n}")

    # -- reductions --------------------------------------------------------------------------------------------

    def across(self, op: str, register: str, lanes: int) -> str:
        """Return the function that reduces the lanes of a vector as a balanced tree."""
        element = ELEMENT[register]
        kind = self.type(register, lanes)
        name = f"across_{op}_{register}_{lanes}"
        if name in self.functions:
            return name
        if lanes == 2:
            body = f"return {self.combine(op, register, 1, 'x[0]', 'x[1]')};"
        else:
            half = self.type(register, lanes // 2)
            joined = self.combine(op, register, lanes // 2, "h[0]", "h[1]")
            rest = self.across(op, register, lanes // 2)
            body = f"{half} h[2]; __builtin_memcpy(h, &x, sizeof x); return {rest}({joined});"
        return self.define(name, f"{INLINE} {element} {name}({kind} x) {{ {body} }}")

    def combine(self, op: str, register: str, lanes: int, first: str, second: str) -> str:
        """Return the expression that joins two partial results of a reduction."""
        if op in ("max", "min"):
            return f"{self.extreme('maximum' if op == 'max' else 'minimum', register, lanes)}({second}, {first})"
        return f"({first} {({'sum': '+', 'prod': '*', 'any': '|', 'all': '&'})[op]} {second})"
