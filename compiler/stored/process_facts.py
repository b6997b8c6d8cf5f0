"""What a compiled graph depends on besides the graph: versions, this source, the machine and torch's switches.

A switch that is not read here and changes what torch traces would let a wrong entry be found, so they are read
generously; where something cannot be written down, nothing is stored (`obstacle`).
"""

from __future__ import annotations

import hashlib
import os
import platform
import secrets
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType, ModuleType

import torch

from ..base.seam import Seam
from ..runtime.cpu_features import cpu_features
from .plain_data import Plain, is_library_code
from .torch_switches import registered_aten_kernels, sees_calls, torch_build, torch_switches

_SOURCE = Path(__file__).resolve().parent.parent
_BY_TORCH = ("/Meta", "/CUDA", "/MPS")  # what torch itself registers in Python for operators of ATen


def process_facts() -> Plain:
    """Return what holds in this process now, as plain data."""
    return (*_fixed(), *torch_switches(), _digest("\n".join(registered_aten_kernels()).encode()))


def obstacle() -> str:
    """Return in words why nothing that is compiled now may be stored or found; "" where it may."""
    if Seam.planted:
        return "a fault is planted"
    if sees_calls():
        return "a mode sees the calls of operators"
    replaced = next((key for key in registered_aten_kernels() if not key.endswith(_BY_TORCH)), None)
    if replaced is not None:
        return f"a kernel of torch's is replaced: {replaced}"
    foreign = next(_foreign(torch.nn.functional), None)
    return f"a function of torch's is replaced: {foreign}" if foreign is not None else ""


def _foreign(module: ModuleType) -> Iterator[str]:
    """Yield the functions of a module of torch's that are neither torch's nor ours: a trace may call them."""
    for name, value in vars(module).items():
        if type(value) is FunctionType and not is_library_code(value):
            yield f"{module.__name__}.{name}"


@cache
def source_digest() -> str:
    """Return a digest of the text of every file of the compiler: another text may compile to something else.

    Where the files are not there, as in a package of bytecode alone, no two processes have the same.
    """
    return digest_of(_SOURCE) if Path(__file__).is_file() else secrets.token_hex()


def digest_of(folder: Path) -> str:
    """Return a digest of the names and texts of the Python files under a folder."""
    digest = hashlib.sha256()
    _add(folder, digest)
    return digest.hexdigest()


def _add(folder: Path | str, digest: hashlib._Hash) -> None:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):  # pathlib takes twice as long
        if entry.is_dir():
            digest.update(f"{entry.name}/\0".encode())
            _add(entry.path, digest)
        elif entry.name.endswith(".py"):
            with open(entry.path, "rb", buffering=0) as file:
                content = file.read()
            digest.update(f"{entry.name} {len(content)}\0".encode())
            digest.update(content)


@cache
def _fixed() -> tuple[Plain, ...]:
    features = cpu_features()
    return (
        source_digest(),
        *torch_build(),
        sys.version,
        sys.implementation.name,
        platform.machine(),
        (features.name, features.vector_bytes, features.has_f16c, features.flags),
        _installed("numpy"),
        _installed("opt_einsum"),
    )


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
