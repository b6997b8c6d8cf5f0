"""Which C compiler to use: found once, tried once by compiling and running, remembered on disk.

Order: the option or `$PLUMBLINE_CC`, gcc, cc, clang, the `ziglang` wheel.  A compiler that is there but does not work
(no headers are needed, so: no assembler, wrong CPU, broken install) is passed over with its reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..base.errors import BuildError
from .cpu_features import CpuFeatures

SECONDS = 120
FLAGS = (
    "-O1",
    "-fexpensive-optimizations",  # with it gcc ends functions with vzeroupper: MKL is twice as slow after wide vectors
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-w",
)
_PROBE = """
typedef float v __attribute__((vector_size(32)));
typedef int w __attribute__((vector_size(32)));
int main(int count, char **unused) {
  v a = {1, 2, 3, 4, 5, 6, 7, 8}; w b = (w)(a > (float)count + 3.0f), c = __builtin_convertvector(a * a, w) & b;
  return c[7] == 64 && c[0] == 0 ? 0 : 1;
}
"""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A C compiler that was seen to work; command: the words before its arguments; identity: for cache keys."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    identity: str


def find_toolchain(asked: str, features: CpuFeatures, cache: Path | None) -> Toolchain:
    """Return the first compiler that works; raises BuildError with every candidate's reason where none does.

    asked: the user's choice, tried alone.  cache: a folder where the answer is remembered, or None.
    """
    reasons = []
    for command in _candidates(asked):
        identity = _identity(command, features)
        known = _remembered(cache, identity)
        reason = known if known is not None else _try(command, features)
        if known is None:
            _remember(cache, identity, reason)
        if not reason:
            return Toolchain(command, (*FLAGS, *features.flags), identity)
        reasons.append(f"{' '.join(command)}: {reason}")
    why = "; ".join(reasons) or "no gcc, cc, clang or ziglang was found"
    raise BuildError("no working C compiler", why=why, hint="install gcc or clang, or set PLUMBLINE_CC")


def _candidates(asked: str) -> Iterator[tuple[str, ...]]:
    if asked:
        words = shlex.split(asked)
        command = shutil.which(words[0])
        yield (command or words[0], *words[1:])
        return
    seen = set()
    for name in ("gcc", "cc", "clang"):
        path = shutil.which(name)
        if path and os.path.realpath(path) not in seen:
            seen.add(os.path.realpath(path))
            yield (path,)
    if importlib.util.find_spec("ziglang") is not None:
        yield (sys.executable, "-m", "ziglang", "cc")


def _identity(command: tuple[str, ...], features: CpuFeatures) -> str:
    """Return a hash that changes when the compiler or the CPU does."""
    parts = [*command, *features.flags, features.name]
    try:
        status = os.stat(command[0])
        parts += [os.path.realpath(command[0]), str(status.st_mtime_ns), str(status.st_size)]
    except OSError:
        parts.append("missing")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _remembered(cache: Path | None, identity: str) -> str | None:
    """Return "" where the compiler is known to work, else None; failures are always tried again."""
    if cache is None:
        return None
    try:
        record = json.loads((cache / f"toolchain-{identity}.json").read_text())
    except (OSError, ValueError):
        return None
    return "" if isinstance(record, dict) and record.get("works") is True else None


def _remember(cache: Path | None, identity: str, reason: str) -> None:
    if cache is None or reason:
        return
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=cache, delete=False) as handle:
            json.dump({"works": True}, handle)
        os.replace(handle.name, cache / f"toolchain-{identity}.json")
    except OSError:
        return  # asked again next time; nothing depends on it


def _try(command: tuple[str, ...], features: CpuFeatures) -> str:
    """Return "" where a small vector program compiles and runs, else the reason in one line."""
    try:
        with tempfile.TemporaryDirectory(prefix="plumbline-") as folder:
            source, program = Path(folder, "probe.c"), Path(folder, "probe")
            source.write_text(_PROBE)
            words = [*command, "-O1", "-w", *features.flags, str(source), "-o", str(program)]
            status, output = _run(words)
            if status:
                return f"does not compile: {_first_line(output)}"
            status, _ = _run([str(program)])
            return "" if status == 0 else f"compiles programs that end with {status}"
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)


def _run(words: list[str]) -> tuple[int, str]:
    """Run a command and return its exit status and what it said, in whatever encoding.

    Raises OSError if it cannot be started, TimeoutExpired if it takes too long; then what it has started (gcc runs
    cc1, as and ld) ends with it.
    """
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            _, output = process.communicate(timeout=SECONDS)
        except BaseException:  # also Ctrl-C
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, output.decode(errors="replace")


def _first_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    shown = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
    return shown.strip()[:300]


def compile_c(toolchain: Toolchain, source: Path, target: Path) -> None:
    """Compile one C file to a shared object; raises BuildError with the compiler's first error."""
    words = [*toolchain.command, *toolchain.flags, str(source), "-o", str(target), "-lgcc"]
    if toolchain.identity in _HUNG:
        raise _hung()
    try:
        status, output = _run(words)
    except subprocess.TimeoutExpired:
        _HUNG.add(toolchain.identity)
        raise _hung() from None
    except OSError as error:
        raise BuildError("the C compiler could not run", why=str(error), hint="check PLUMBLINE_CC") from error
    if status:
        raise BuildError(
            "the C compiler refused generated code",
            why=_first_line(output),
            hint="please report it with the graph; PLUMBLINE_LOGS=output_code shows the C",
        )


_HUNG: set[str] = set()  # compilers that ran out of time in this process: not every graph waits for them again


def _hung() -> BuildError:
    return BuildError(
        "the C compiler did not finish",
        why=f"it ran for more than {SECONDS} seconds; graphs run op by op in this process",
        hint="check that the compiler in PLUMBLINE_CC works and that the disk is not full",
    )
