"""Import sympy with caches that hold a graph of open sizes.

sympy keeps the last 1000 answers of each of its functions, and a graph whose sizes are open asks for more: what fell
out is worked out again, with all that follows from it.  Traces of open sizes take 1.2 to 1.7 times as long with 1000
as with 20000 (`plumbline sweep operators --sizes dynamic`: conv2d, std, qr).  sympy reads the number once, at its
import; whoever set it or imported sympy before keeps theirs.
"""

import os
import sys

ENTRIES = 20_000
_VARIABLE = "SYMPY_CACHE_SIZE"


def import_sympy() -> None:
    """Import sympy, unless it is there; the environment is left as it was."""
    if "sympy" in sys.modules or _VARIABLE in os.environ:
        return
    os.environ[_VARIABLE] = str(ENTRIES)
    try:
        import sympy  # type: ignore[import-untyped]  # noqa: F401  # it ships no types; only its import matters
    finally:
        del os.environ[_VARIABLE]


import_sympy()
