"""The compilers that can be judged here, by name: the one list of them."""

from collections.abc import Callable, Collection, Mapping

from plumbline.compiler.backends import list_backends
from plumbline.compiler.base.errors import UserError

from .compilers import DECOMPOSED, LADDER, TRITON, CompilerUnderTest
from .own_compiler import OwnCompiler


def _stock() -> CompilerUnderTest:
    from .stock_torch import StockTorch  # torch's own compiler takes seconds to import; only who asks for it pays

    return StockTorch()


def _of_stock() -> Collection[str]:
    from .stock_torch import registered_backends

    return registered_backends()


_KNOWN: Mapping[str, Callable[[], CompilerUnderTest]] = {"plumbline": OwnCompiler, "torch": _stock}
"""Ours first.  Every one has the three backends of the ladder."""
_BESIDE_THE_LADDER: Mapping[str, tuple[str, ...]] = {"plumbline": (DECOMPOSED, TRITON), "torch": (DECOMPOSED,)}
"""Backends that are tried where they are asked for by name."""
_REGISTERED: Mapping[str, Callable[[], Collection[str]]] = {"plumbline": list_backends, "torch": _of_stock}


def available_compilers() -> Mapping[str, tuple[str, ...]]:
    """Return the backends of each compiler that can be judged here; loads none of them."""
    return {name: (*LADDER, *_BESIDE_THE_LADDER.get(name, ())) for name in _KNOWN}


def find_compiler(name: str, backend: str) -> CompilerUnderTest:
    """Return the compiler of this name; raises UserError for an unknown compiler or backend.

    Backends that somebody has registered with the compiler are known too.
    """
    if name not in _KNOWN:
        raise UserError(f"unknown compiler {name!r}", hint=f"choose from {', '.join(sorted(_KNOWN))}")
    backends = available_compilers()[name]
    if backend not in backends and backend not in _REGISTERED[name]():
        raise UserError(f"compiler {name!r} has no backend {backend!r}", hint=f"choose from {', '.join(backends)}")
    return _KNOWN[name]()
