"""A variant: the compiler and backend under which one copy of a test runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from plumbline.compiler.base.errors import UserError

# From the least to the most that can go wrong; the first wrong one names the stage of a failure.
LADDER = ("eager", "aot_eager", "inductor")


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
        if self.backend not in LADDER:
            return ()
        return tuple(Variant(self.compiler, name) for name in LADDER[: LADDER.index(self.backend)])


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
        known = ", ".join(available)
        raise UserError(
            f"unknown compiler {name!r}",
            where="--compile-compilers",
            why=f"available: {known}",
            hint=f"write --compile-compilers={next(iter(available))}",
        )


def _checked(compiler: str, backend: str, available: Mapping[str, tuple[str, ...]]) -> Variant:
    if backend not in available[compiler]:
        known = ", ".join(available[compiler])
        raise UserError(
            f"unknown backend {backend!r}",
            where="--compile-backends",
            why=f"available for {compiler}: {known}",
            hint="write --compile-backends=all or names from that list",
        )
    return Variant(compiler, backend)
