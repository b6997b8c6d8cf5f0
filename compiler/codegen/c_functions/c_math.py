"""Elementary functions in generated C: Sleef's vectors where the process offers them, libm per lane elsewhere."""

from __future__ import annotations

from ...base.errors import InternalError
from ...loops.scalar_ops import SCALAR_OPS, Elementary
from ..c_types import ELEMENT
from .c_library import INLINE, Library

# Highest power first: erf(x)/x - 1 in powers of x*x, and -log(erfc(t))/t in powers of t.
ERF_NEAR = (
    "-0x1.3825bcp-11", "0x1.46c232p-8", "-0x1.b676cap-6", "0x1.ce1904p-4", "-0x1.8126dcp-2", "0x1.06eba6p-3",
)  # fmt: skip
ERF_FAR = (
    "0x1.3fbfa8p-18", "-0x1.6c8df2p-15", "-0x1.fb17a4p-15", "0x1.8403bcp-9", "-0x1.744c10p-6", "0x1.af590ap-4",
    "0x1.456d7ep-1", "0x1.20e91cp+0",
)  # fmt: skip
# (tanh(x) / x - 1) / s in powers of s = x*x.
TANH = ("-0x1.9b0d7cp-8", "0x1.59373ep-6", "-0x1.b927d2p-5", "0x1.110d22p-3", "-0x1.55554ap-2")
# (exp(r) - 1 - r) / r**2 in powers of r.
EXP = ("0x1.6a2434p-10", "0x1.1239e2p-7", "0x1.5558f2p-5", "0x1.555492p-3", "0x1.fffffcp-2")


def _elementary(op: str) -> Elementary:
    form = SCALAR_OPS[op].c
    if not isinstance(form, Elementary):
        raise InternalError(f"{op} is not a function of libm", hint="declare it in loops/scalar_ops.py")
    return form


class ElementaryFunctions:
    """Adds elementary functions to the functions of one C file."""

    def __init__(self, library: Library) -> None:
        self.library = library

    def math(self, op: str, register: str, lanes: int) -> str:
        """Return an elementary function: Sleef's vector version where the process offers it, else libm per lane."""
        kind = self.library.type(register, lanes)
        name = f"{op}_{register}_{lanes}"
        if name in self.library.functions:
            return name
        if op == "erf" and register == "f" and self.library.has_f16c and lanes in (8, 16):
            return self._error_function(name, lanes)
        if op in ("exp", "tanh") and register == "f" and self.library.has_f16c and lanes == 16:
            return self._exponential(name) if op == "exp" else self._tangent(name)
        letters = ("a", "b")[: SCALAR_OPS[op].arity]
        parameters = ", ".join(f"{kind} {letter}" for letter in letters)
        symbol, wide = self._vector_symbol(op, register, max(lanes, 2))
        if symbol is None:
            body = self._per_lane(op, register, lanes, letters)
        else:
            full = self.library.type(register, wide)
            slot = self.library.address(symbol)
            signature = f"({full} (*)({', '.join([full] * len(letters))}))plumbline_functions[{slot}]"
            if wide == lanes:
                body = f"return ({signature})({', '.join(letters)});"
            elif lanes == 1:
                widened = ", ".join(f"{self.library.splat(register, wide)}({letter})" for letter in letters)
                body = f"return ({signature})({widened})[0];"
            else:
                filled = " ".join(
                    f"{full} w{letter} = {{{', '.join([f'{letter}[{k % lanes}]' for k in range(wide)])}}};"
                    for letter in letters
                )
                names = ", ".join(f"w{letter}" for letter in letters)
                elements = ", ".join(f"r[{k}]" for k in range(lanes))
                body = f"{filled} {full} r = ({signature})({names}); return ({kind}){{{elements}}};"
        return self.library.define(name, f"{INLINE} {kind} {name}({parameters}) {{ {body} }}")

    def _polynomial(self, name: str, variable: str, coefficients: tuple[str, ...], lanes: int) -> str:
        """Return the statements that give a polynomial of floats a name."""
        kind, splat, fused = (
            self.library.type("f", lanes),
            self.library.splat("f", lanes),
            self.library.fused("f", lanes),
        )
        steps = " ".join(f"{name} = {fused}({name}, {variable}, {splat}({c}f));" for c in coefficients[1:])
        return f"{kind} {name} = {splat}({coefficients[0]}f); {steps}"

    def _exponential(self, name: str) -> str:
        """Return exp of 16 floats as 2**n exp(r), |r| <= log(2)/2; within 1 unit in the last place, NaN stays NaN.

        The polynomial was fitted to minimise the greatest relative error of exp(r).  The last instruction scales by
        2**n with one rounding, so that results which are subnormal or infinite come out right.
        """
        kind, splat, fused = self.library.type("f", 16), self.library.splat("f", 16), self.library.fused("f", 16)
        body = (
            # the second argument wins where one is NaN; what is beyond the limits over- or underflows all the same
            f"x = __builtin_ia32_minps512_mask({splat}(104.0f), x, x, -1, 4);"
            f" x = __builtin_ia32_maxps512_mask({splat}(-104.0f), x, x, -1, 4);"
            f" {kind} n = {fused}(x, {splat}(0x1.715476p+0f), {splat}(0x1.8p+23f)) - {splat}(0x1.8p+23f);"
            f" {kind} r = {fused}(n, {splat}(-0x1.62e400p-1f), x); r = {fused}(n, {splat}(-0x1.7f7d1cp-20f), r);"
            f" {self._polynomial('p', 'r', EXP, 16)}"
            f" {kind} s = {fused}(r * r, p, r) + {splat}(1.0f);"
            " return __builtin_ia32_scalefps512_mask(s, n, s, -1, 4);"
        )
        return self.library.define(name, f"{INLINE} {kind} {name}({kind} x) {{ {body} }}")

    def _tangent(self, name: str) -> str:
        """Return tanh of 16 floats: x + x s P(s) with s = x*x near zero, 1 - 2 / (exp(2x) + 1) further out.

        P was fitted to minimise the greatest relative error of tanh on [0, 0.55].  Within 2 units in the last place.
        """
        kind, splat, fused = self.library.type("f", 16), self.library.splat("f", 16), self.library.fused("f", 16)
        size, sign, exp = self.library.absolute("f", 16), self.library.copysign("f", 16), self.math("exp", "f", 16)
        select, less = self.library.select("f", 16), self.library.compare("lt", "f", 16)
        body = (
            f"{kind} a = {size}(x), s = a * a; {self._polynomial('p', 's', TANH, 16)} p = {fused}(p * s, a, a);"
            f" {kind} far = {splat}(1.0f) - {splat}(2.0f) / ({exp}(a + a) + {splat}(1.0f));"
            f" return {sign}({select}({less}(a, {splat}(0.55f)), p, far), x);"
        )
        return self.library.define(name, f"{INLINE} {kind} {name}({kind} x) {{ {body} }}")

    def _error_function(self, name: str, lanes: int) -> str:
        """Return erf of floats: x + x P(x*x) near zero, 1 - exp(-t Q(t)) further out; within 2 units in the last place.

        P and Q were fitted to minimise the greatest relative error of erf on [0, 0.93] and [0.93, 3.95].
        """
        kind, splat, fused = (
            self.library.type("f", lanes),
            self.library.splat("f", lanes),
            self.library.fused("f", lanes),
        )
        select, less = self.library.select("f", lanes), self.library.compare("lt", "f", lanes)
        size, sign, exp = (
            self.library.absolute("f", lanes),
            self.library.copysign("f", lanes),
            self.math("exp", "f", lanes),
        )

        near, far = self._polynomial("p", "s", ERF_NEAR, lanes), self._polynomial("q", "t", ERF_FAR, lanes)
        body = (
            f"{kind} a = {size}(x), s = x * x; {near} p = {fused}(p, x, x);"
            f" {kind} t = {select}({less}({splat}(4.0f), a), {splat}(4.0f), a); {far}"
            f" {kind} far = {sign}({splat}(1.0f) - {exp}(-(q * t)), x);"
            f" return {select}({less}(a, {splat}(0.93f)), p, far);"
        )
        return self.library.define(name, f"{INLINE} {kind} {name}({kind} x) {{ {body} }}")

    def _vector_symbol(self, op: str, register: str, lanes: int) -> tuple[str | None, int]:
        """Return the narrowest offered vector function with at least these lanes."""
        function = _elementary(op)
        accuracy = function.single if register == "f" else function.double
        if accuracy is None:
            return None, 0
        for wide in (4, 8, 16):
            symbol = f"Sleef_{function.name}{register}{wide}{'_' + accuracy if accuracy else ''}"
            if wide >= lanes and symbol in self.library.offered:
                return symbol, wide
        return None, 0

    def _per_lane(self, op: str, register: str, lanes: int, letters: tuple[str, ...]) -> str:
        element, kind = ELEMENT[register], self.library.type(register, lanes)
        slot = self.library.address(f"{_elementary(op).name}{'f' if register == 'f' else ''}")
        call = f"(({element} (*)({', '.join([element] * len(letters))}))plumbline_functions[{slot}])"
        if lanes == 1:
            return f"return {call}({', '.join(letters)});"
        elements = ", ".join(f"{letter}[k]" for letter in letters)
        return f"{kind} r; for (int k = 0; k < {lanes}; k++) r[k] = {call}({elements}); return r;"
