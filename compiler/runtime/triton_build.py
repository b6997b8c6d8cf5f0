"""Texts of Triton kernels to code for a GPU, on a machine that need not have one: workers, and a disk cache.

Equal kernels are built once.  What is built is looked for on disk first, under a key of everything that changes it: the
text, its types and alignment, the number of warps, the GPU's capability, and the files of Triton that take part.
Threads would not help, since Triton keeps Python's lock; so there are processes, at most one per core, and none of them
is forked from a process that may hold CUDA or OpenMP.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..base.errors import BuildError
from ..base.events import FellBack, KernelBuilt, record
from ..base.options import Options, default_cache_directory
from .disk_cache import DiskCache, key_of

WORKER = Path(__file__).with_name("triton_worker.py")
FORMAT = "2"  # raise when the files in the cache or the workers' options change


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A kernel to build.

    text: a module with the function `kernel`, which profilers know by `name`.  signature: its parameters' types.
    warps: of 32 threads.  aligned: the numbers of those parameters that are addresses divisible by 16.  capability: of
    the GPU, 90 for sm_90; of AMD's the name of the architecture, such as gfx942: they are built and never launched.
    """

    text: str
    signature: tuple[str, ...]
    warps: int
    aligned: tuple[int, ...]
    capability: int | str
    name: str = "kernel"

    @property
    def key(self) -> str:
        """The name of what is built of it; depends on the installed Triton."""
        parts = (self.text, self.name, *self.signature, str(self.warps), str(self.aligned), str(self.capability))
        return key_of(FORMAT, triton_identity(), *parts)


@dataclass(frozen=True, slots=True)
class BuiltKernel:
    """A kernel for one GPU.

    cubin: what the driver loads.  ptx: its text; for AMD, that of the machine code itself.  name: of the entry.
    shared: bytes of shared memory per program.  scratch: bytes of global memory per program.  registers: per thread.
    spills: bytes stored and loaded because registers ran out; for AMD, how many registers.
    """

    cubin: bytes
    ptx: str
    name: str
    shared: int
    scratch: int
    registers: int
    spills: int


def why_no_triton() -> str:
    """Return why kernels cannot be built here, in words; empty where they can."""
    return "" if importlib.util.find_spec("triton") is not None else "triton is not installed"


@cache
def triton_identity() -> str:
    """Return what names the installed Triton: its version, the assembler in use, and its library of functions."""
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.submodule_search_locations:
        return "none"
    folder = Path(spec.submodule_search_locations[0]) / "backends" / "nvidia"
    parts = [importlib.metadata.version("triton")]
    for assembler in [os.environ.get("TRITON_PTXAS_PATH", ""), *map(str, sorted(folder.glob("bin/ptxas*")))]:
        if assembler and Path(assembler).is_file():
            parts.append(f"{Path(assembler).name} {Path(assembler).stat().st_size}")
    parts += [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("lib/libdevice*.bc"))]
    return " ".join(parts)


def build_kernels(requests: Sequence[KernelRequest], options: Options, name: str = "graph") -> list[BuiltKernel]:
    """Return what each request becomes, in order; equal ones are built once.

    Raises BuildError where there is no Triton or it refuses a text.
    """
    if reason := why_no_triton():
        raise BuildError(reason, hint="install triton, or move the tensors to the CPU")
    start = time.perf_counter()
    cache = DiskCache(default_cache_directory(options), ".json") if options.disk_cache else None
    distinct = {request.key: request for request in requests}
    found = {key: built for key in distinct if (built := _from_disk(cache, key)) is not None}
    missing = {key: request for key, request in distinct.items() if key not in found}
    if missing:
        answers = _built_by_workers(list(missing.values()))
        for key, answer in zip(missing, answers, strict=True):
            found[key] = _built(answer)
            _keep(cache, key, answer)
    record(KernelBuilt(name, "triton", len(distinct), not missing, time.perf_counter() - start))
    return [found[request.key] for request in requests]


def _from_disk(cache: DiskCache | None, key: str) -> BuiltKernel | None:
    path = cache.find(key) if cache is not None else None
    try:
        return _built(json.loads(path.read_text())) if path is not None else None
    except (OSError, ValueError, KeyError):
        return None


def _keep(cache: DiskCache | None, key: str, answer: dict[str, Any]) -> None:
    if cache is not None:
        kept, reason = cache.keep_content(key, json.dumps(answer).encode())
        if kept is None:
            record(FellBack("disk cache", reason))


def _built(answer: dict[str, Any]) -> BuiltKernel:
    numbers = (answer["shared"], answer["scratch"], answer["registers"], answer["spills"])
    return BuiltKernel(base64.b64decode(answer["cubin"]), answer["ptx"], answer["name"], *numbers)


def _built_by_workers(requests: Sequence[KernelRequest]) -> list[dict[str, Any]]:
    """Share requests among processes, the longest texts first."""
    count = min(os.cpu_count() or 1, len(requests))
    order = sorted(range(len(requests)), key=lambda number: -len(requests[number].text))
    shares = [[(number, requests[number]) for number in order[first::count]] for first in range(count)]
    with ThreadPoolExecutor(count) as pool:
        answers = {answer["number"]: answer for share in pool.map(_one_worker, shares) for answer in share}
    for number, request in enumerate(requests):
        if "error" in answers[number]:
            raise BuildError(
                "Triton refuses a kernel",
                why=answers[number]["error"],
                where=request.text[-500:],
                hint="report the graph",
            )
    return [answers[number] for number in range(len(requests))]


def _one_worker(share: Sequence[tuple[int, KernelRequest]]) -> list[dict[str, Any]]:
    lines = [
        json.dumps(
            {
                "number": number,
                "text": request.text,
                "signature": request.signature,
                "warps": request.warps,
                "aligned": request.aligned,
                "capability": request.capability,
                "name": request.name,
            }
        )
        for number, request in share
    ]
    command = [sys.executable, "-P", str(WORKER)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(share):
        raise BuildError("a process that compiles Triton kernels died", why=done.stderr[-2000:], hint="run doctor")
    return answers
