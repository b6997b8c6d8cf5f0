"""A variant: the compiler and backend under which one copy of a test runs."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.compiler.base.errors import UserError

# From the least to the most that can go wrong; the first wrong one names the stage of a failure.
LADDER = ("eager", "aot_eager", "inductor")
_BELOW = {  # of rungs beside the ladder, which `all` leaves out: those that do less
    "aot_eager_decomp_partition": LADDER[:-1],
    "triton": LADDER,
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One compiler and one backend; printed `torch:inductor`, as in test ids."""

    compiler: str
    backend: str

    @property
    def label(self) -> str:
        """Return `compiler:backend`."""
        return f"{self.compiler}:{self.backend}"

    def lower(self) -> tuple["Variant", ...]:
        """Return the variants of the same compiler that come before this one on the ladder."""
        rank = LADDER.index(self.backend) if self.backend in LADDER else 0
        below = _BELOW.get(self.backend, LADDER[:rank])
        return tuple(Variant(self.compiler, name) for name in below)


def select_variants(
    backends: str, compilers: str | None, available: Mapping[str, tuple[str, ...]]
) -> tuple[Variant, ...]:
    """Return the variants that the options name, in ladder order for each compiler.

    backends: `all`, or names and `compiler:name` pairs joined by commas.
    compilers: names joined by commas; None means `plumbline` where it exists, else `torch`.
    available: compiler name to its backends.  Raises UserError for an unknown name.
    """
    chosen_compilers = _select_compilers(compilers, available)
    chosen: list[Variant] = []
    for name in _split(backends, "--compile-backends", "all"):
        if name == "all":
            chosen += [Variant(c, b) for c in chosen_compilers for b in LADDER if b in available[c]]
        elif ":" in name:
            compiler, backend = name.split(":", 1)
            _check_compiler(compiler, available)
            chosen.append(_checked(compiler, backend, available))
        else:
            chosen += [_checked(compiler, name, available) for compiler in chosen_compilers]
    order = {name: rank for rank, name in enumerate(LADDER)}
    places = list(dict.fromkeys([*chosen_compilers, *(v.compiler for v in chosen)]))
    unique = list(dict.fromkeys(chosen))
    return tuple(sorted(unique, key=lambda v: (places.index(v.compiler), order.get(v.backend, len(order)))))


def _select_compilers(compilers: str | None, available: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    if compilers is None:
        return ("plumbline",) if "plumbline" in available else ("torch",)
    names = _split(compilers, "--compile-compilers", "torch")
    for name in names:
        _check_compiler(name, available)
    return names


def _split(text: str, option: str, example: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not names:
        raise UserError("no name given", where=option, hint=f"write for example {option}={example}")
    return names


def _check_compiler(name: str, available: Mapping[str, tuple[str, ...]]) -> None:
    if name not in available:
        hint = "write --compile-compilers={}"
        raise unknown_name("compiler", name, tuple(available), where="--compile-compilers", hint=hint)


def _checked(compiler: str, backend: str, available: Mapping[str, tuple[str, ...]]) -> Variant:
    if backend not in available[compiler]:
        hint = "write --compile-backends=all or names from that list"
        raise unknown_name("backend", backend, available[compiler], where="--compile-backends", hint=hint)
    return Variant(compiler, backend)


def unknown_name(kind: str, name: object, known: tuple[str, ...], *, where: str, hint: str) -> UserError:
    """Return the error for a name that does not exist, with the nearest that does; `{}` in the hint stands for it."""
    near = difflib.get_close_matches(str(name), known, 1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    why = f"available: {', '.join(known) or 'none'}{meant}"
    return UserError(
        f"unknown {kind} {name!r}", where=where, why=why, hint=hint.replace("{}", (near or known or ("none",))[0])
    )
