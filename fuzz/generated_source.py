"""Generated Python text as functions, with lines that tracebacks and compilers can read."""

import itertools
import linecache
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_FILE_PREFIX = "<fuzz program "
_numbers = itertools.count(1)


def functions_of(source: str, given: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """Execute generated text that needs `torch` and return its globals; given: globals that are there before."""
    name = f"{_FILE_PREFIX}{next(_numbers)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"__name__": "fuzz_program", **given}
    exec(compile(f"import torch\n{source}", name, "exec"), namespace)
    return namespace


def forget_sources() -> None:
    """Drop the texts that are there for tracebacks; a long campaign makes many."""
    for name in [name for name in linecache.cache if name.startswith(_FILE_PREFIX)]:
        del linecache.cache[name]
