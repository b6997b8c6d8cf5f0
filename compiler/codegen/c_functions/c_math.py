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

        def horner(name: str, variable: str, coefficients: tuple[str, ...]) -> str:
            steps = " ".join(f"{name} = {fused}({name}, {variable}, {splat}({c}f));" for c in coefficients[1:])
            return f"{kind} {name} = {splat}({coefficients[0]}f); {steps}"

        body = (
            f"{kind} a = {size}(x), s = x * x; {horner('p', 's', ERF_NEAR)} p = {fused}(p, x, x);"
            f" {kind} t = {select}({less}({splat}(4.0f), a), {splat}(4.0f), a); {horner('q', 't', ERF_FAR)}"
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
