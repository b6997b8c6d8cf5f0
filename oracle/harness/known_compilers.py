"""The compilers that can be judged here, by name: the one list of them."""

from collections.abc import Mapping

from plumbline.compiler.base.errors import UserError

from .compilers import CompilerUnderTest
from .own_compiler import OwnCompiler
from .stock_torch import StockTorch


def compilers() -> dict[str, CompilerUnderTest]:
    """Return the compilers that can be judged here, by name; ours first."""
    both: tuple[CompilerUnderTest, ...] = (OwnCompiler(), StockTorch())
    return {compiler.name: compiler for compiler in both}


def available_compilers() -> Mapping[str, tuple[str, ...]]:
    """Return the backends of each compiler that can be judged here."""
    return {name: compiler.backends for name, compiler in compilers().items()}


def find_compiler(name: str, backend: str) -> CompilerUnderTest:
    """Return the compiler of this name; raises UserError for an unknown compiler or backend."""
    known = compilers()
    if name not in known:
        raise UserError(f"unknown compiler {name!r}", hint=f"choose from {', '.join(sorted(known))}")
    if backend not in known[name].backends:
        hint = f"choose from {', '.join(known[name].backends)}"
        raise UserError(f"compiler {name!r} has no backend {backend!r}", hint=hint)
    return known[name]
