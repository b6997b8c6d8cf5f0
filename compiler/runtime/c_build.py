"""C text to callable functions: cache, compiler, loader, and the table of addresses that the code calls through."""

from __future__ import annotations

import ctypes
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import torch

from ..base.errors import BuildError, InternalError
from ..base.events import FellBack, KernelBuilt, record
from ..base.options import Options, default_cache_directory
from .cpu_features import cpu_features
from .disk_cache import DiskCache, key_of
from .process_symbols import address_of
from .toolchain import Toolchain, compile_c, find_toolchain

ABI = "1"  # raise when the way generated code is called changes
_LOADED: dict[str, ctypes.CDLL] = {}
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
"""The user's files and lines: the code is the same when they move, or when another file has the same function."""


@lru_cache(maxsize=8)
def _toolchain(asked: str, cache: Path | None) -> Toolchain:
    return find_toolchain(asked, cpu_features(), cache)


def toolchain_for(options: Options) -> Toolchain:
    """Return the compiler in use; raises BuildError where none works (asked again at each call)."""
    return _toolchain(options.compiler, default_cache_directory(options) if options.disk_cache else None)


def build(
    text: str, addresses: Mapping[str, int], name: str, kernels: int, options: Options, flags: tuple[str, ...] = ()
) -> ctypes.CDLL:
    """Return the loaded library of a C file.

    addresses: outside functions and their slots in the file's `plumbline_functions` table.  kernels: how many the
    file holds, for the record.  flags: added to those of every file.  Raises BuildError where no compiler works or it
    refuses the text.
    """
    toolchain = toolchain_for(options)
    toolchain = replace(toolchain, flags=(*toolchain.flags, *flags))
    key = key_of(ABI, torch.__version__, toolchain.identity, " ".join(toolchain.flags), _COMMENT.sub("", text))
    loaded = _LOADED.get(key)
    if loaded is not None:
        return loaded
    start = time.perf_counter()
    cache = DiskCache(default_cache_directory(options)) if options.disk_cache else None
    path = cache.find(key) if cache is not None else None
    library = _load(path, addresses) if path is not None else None
    cached = library is not None
    if library is None:
        library = _build_new(text, key, addresses, toolchain, cache)
    _LOADED[key] = library
    if kernels:
        record(KernelBuilt(name, "c", kernels, cached, time.perf_counter() - start))
    return library


def _build_new(
    text: str, key: str, addresses: Mapping[str, int], toolchain: Toolchain, cache: DiskCache | None
) -> ctypes.CDLL:
    try:
        folder = Path(tempfile.mkdtemp(prefix="plumbline-"))
    except OSError as error:
        raise BuildError(
            "no folder for temporary files", why=str(error), hint="set TMPDIR to a writable folder"
        ) from error
    try:
        source, target = folder / "graph.c", folder / "graph.so"
        try:
            source.write_text(text)
        except OSError as error:
            raise BuildError(
                "cannot write C text", where=str(folder), why=str(error), hint="set TMPDIR elsewhere"
            ) from error
        compile_c(toolchain, source, target)
        if cache is not None:
            kept, reason = cache.keep(key, target)
            if kept is None:
                record(FellBack("disk cache", reason))
            loaded = _load(kept, addresses) if kept is not None else None
            if loaded is not None:
                return loaded
        library = _load(target, addresses)
        if library is None:
            raise BuildError("the built kernel cannot be loaded", where=str(target), hint="check the C compiler")
        return library
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _load(path: Path, addresses: Mapping[str, int]) -> ctypes.CDLL | None:
    """Load a library and fill its address table; None where the file is not a library."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    if addresses:
        table = (ctypes.c_void_p * len(addresses)).in_dll(library, "plumbline_functions")
        for symbol, slot in addresses.items():
            address = address_of(symbol)
            if address is None:
                raise InternalError(f"{symbol} is in no loaded library", hint="report the graph and the torch version")
            table[slot] = address
    return library
