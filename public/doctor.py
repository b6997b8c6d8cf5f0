"""The check of this machine: each check answers one question and says what to do."""

import importlib
import json
import os
import platform
import re
import shlex
import shutil
import sqlite3
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from plumbline.compiler.base.errors import UserError
from plumbline.compiler.base.torch_versions import TESTED_TORCH, is_tested
from plumbline.reports.places import database_place
from plumbline.reports.provenance import installed_version, usable_cores

from .probing import attempt

OK, WARNING, PROBLEM = "ok", "warning", "problem"
MINIMUM_TORCH = (2, 11)
PYTHON_RANGE = ((3, 11), (3, 13))
PROBE_SECONDS = 30.0
FREE_WARNING, FREE_PROBLEM = 2_000_000_000, 100_000_000  # bytes; a suite's kernels take some hundred MB


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found: its level (ok, warning, problem), the fact, and what to do (empty when ok)."""

    check: str
    level: str
    fact: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Machine:
    """What checks look at: environment variables, how long a probe may take, torch when it imports."""

    environment: Mapping[str, str]
    seconds: float
    torch: ModuleType | None
    torch_trouble: str = ""


Check = Callable[[Machine], CheckResult]
_CHECKS: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Register a check under the name that users see."""

    def register(function: Check) -> Check:
        _CHECKS[name] = function
        return function

    return register


def examine(environment: Mapping[str, str] | None = None, *, seconds: float = PROBE_SECONDS) -> list[CheckResult]:
    """Run every check; a check that breaks is a problem found, never an exception."""
    torch, trouble = _import_torch()
    machine = Machine(os.environ if environment is None else environment, seconds, torch, trouble)
    return [examine_one(name, machine) for name in _CHECKS]


def examine_one(name: str, machine: Machine) -> CheckResult:
    """Run one check by its name."""
    try:
        return _CHECKS[name](machine)
    except Exception as error:
        # The check did not foresee something on this machine: that is a result too.
        return CheckResult(name, PROBLEM, f"the check broke: {type(error).__name__}: {error}", "please report this")


def healthy(findings: Sequence[CheckResult]) -> bool:
    """Return whether no check found a problem; warnings are allowed."""
    return all(finding.level != PROBLEM for finding in findings)


def findings_text(findings: Sequence[CheckResult]) -> str:
    """Return one line a check, a second one with advice where there is some."""
    width = max(len(finding.check) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<8} {finding.check:<{width}}  {finding.fact}")
        if finding.advice:
            lines.append(f"{'':<8} {'':<{width}}  -> {finding.advice}")
    return "\n".join(lines)


def findings_json(findings: Sequence[CheckResult]) -> str:
    """Return the findings as JSON."""
    return json.dumps({"healthy": healthy(findings), "checks": [asdict(finding) for finding in findings]}, indent=1)


def _import_torch() -> tuple[ModuleType | None, str]:
    try:
        return importlib.import_module("torch"), ""
    except Exception as error:  # a broken install raises ImportError, OSError, or anything
        return None, f"{type(error).__name__}: {error}".splitlines()[0][:200]


@check("Python")
def _python(machine: Machine) -> CheckResult:
    del machine
    fact = f"{platform.python_version()} ({sys.executable})"
    low, high = PYTHON_RANGE
    if low <= sys.version_info[:2] <= high:
        return CheckResult("Python", OK, fact)
    return CheckResult("Python", PROBLEM, fact, f"use Python {low[0]}.{low[1]} to {high[0]}.{high[1]}")


@check("torch")
def _torch(machine: Machine) -> CheckResult:
    if machine.torch is None:
        return CheckResult(
            "torch", PROBLEM, f"cannot be imported ({machine.torch_trouble})", "pip install 'torch>=2.11'"
        )
    version = str(machine.torch.__version__)
    build = _torch_build(machine.torch)
    if _version(version) < MINIMUM_TORCH:
        least = ".".join(map(str, MINIMUM_TORCH))
        return CheckResult("torch", PROBLEM, f"{version} ({build})", f"pip install --upgrade 'torch>={least}'")
    tested = ", ".join(TESTED_TORCH)
    fact = f"{version} ({build}); plumbline was tested with {tested}"
    if is_tested(version):
        return CheckResult("torch", OK, fact)
    # Imported here: it needs a torch that works.
    from plumbline.compiler.base.torch_check import missing_names

    missing = missing_names()
    if any(name.at_import for name in missing):
        advice = f"install torch {TESTED_TORCH[-1]}, or a newer plumbline"
        return CheckResult("torch", PROBLEM, f"{fact}; this one does not have {'; '.join(map(str, missing))}", advice)
    if missing:
        fact = f"{fact}; this one does not have {'; '.join(map(str, missing))}"
        return CheckResult("torch", WARNING, fact, "see whether the check named compiler is ok")
    return CheckResult("torch", OK, fact)


def _torch_build(torch: ModuleType) -> str:
    for name in ("cuda", "hip", "xpu"):
        if getattr(torch.version, name, None):
            return f"{name} {getattr(torch.version, name)} build"
    return "CPU build"


def _version(text: str) -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


_COMPILER_PROBE = """
import torch
from plumbline.oracle import check

def program(x, w):
    y = torch.nn.functional.layer_norm(x @ w, (4,))
    return (y.sin() + 1).sum(dim=0), y.argmax(dim=1), x[:, 0].mul_(2)

for backend in ("eager", "aot_eager", "inductor"):
    torch.manual_seed(0)
    inputs = torch.rand(3, 5), torch.rand(5, 4, requires_grad=True)
    verdict = check(program, inputs, compiler="plumbline", backend=backend)
    if verdict.failed or verdict.kind.value == "VACUOUS" or not verdict.ops:
        raise SystemExit(f"error: {backend} is {verdict.kind.value}: {verdict.sentence}")
    print(backend, verdict.kind.value, flush=True)
"""


@check("compiler")
def _compiler(machine: Machine) -> CheckResult:
    """Compile one function with gradients and an in-place write, and judge it: a version number proves nothing."""
    if machine.torch is None:
        return CheckResult("compiler", WARNING, "unknown without torch", "install torch first")
    with tempfile.TemporaryDirectory(prefix="plumbline-doctor-") as place:
        probe = Path(place) / "probe.py"
        probe.write_text(_COMPILER_PROBE, encoding="utf-8")
        environment = {**machine.environment, "PLUMBLINE_STRICT": "1"}  # an error of ours is a problem, not a fallback
        ran = attempt([sys.executable, str(probe)], Path(place), environment, 4 * machine.seconds)
    if not ran.good:
        return CheckResult(
            "compiler", PROBLEM, f"a probe is not compiled correctly: {ran.trouble}", "please report this"
        )
    verdicts = ", ".join(line.replace(" ", ": ") for line in ran.output.splitlines() if line.count(" ") == 1)
    return CheckResult("compiler", OK, f"a probe judged against eager: {verdicts}")


_C_PROBE = """
typedef float four __attribute__((vector_size(16)));
int main(void) {
    volatile float seed = 2.0f;
    four a = {seed, seed, seed, seed};
    four b = a * a;
    return b[3] == 4.0f ? 0 : 1;
}
"""

_CPP_PROBE = """
#include <omp.h>
#include <vector>
int main() {
    std::vector<int> values(64, 1);
    int sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < 64; i++) sum += values[i];
    return sum == 64 && omp_get_max_threads() > 0 ? 0 : 1;
}
"""


@check("C compiler")
def _c_compiler(machine: Machine) -> CheckResult:
    chosen = machine.environment.get("PLUMBLINE_CC", "").strip()
    if chosen:
        trouble = _try_compiler(shlex.split(chosen), _C_PROBE, "probe.c", ["-O2"], machine)
        if trouble:
            return CheckResult("C compiler", PROBLEM, trouble, "set PLUMBLINE_CC to a working compiler, or unset it")
        return CheckResult("C compiler", OK, f"{chosen} ($PLUMBLINE_CC)")
    troubles: list[str] = []
    for command in _c_candidates(machine.environment):
        trouble = _try_compiler(command, _C_PROBE, "probe.c", ["-O2"], machine)
        if not trouble:
            fact = shlex.join(command)
            if troubles:
                advice = "repair the broken one, or set PLUMBLINE_CC to choose"
                return CheckResult("C compiler", WARNING, f"{fact} works, but {troubles[0]}", advice)
            return CheckResult("C compiler", OK, fact)
        troubles.append(trouble)
    if troubles:
        return CheckResult("C compiler", PROBLEM, troubles[0], "repair it, or set PLUMBLINE_CC to a working compiler")
    advice = "install gcc or clang, or pip install ziglang; until then graphs run operation by operation"
    return CheckResult("C compiler", WARNING, "none found", advice)


def _c_candidates(environment: Mapping[str, str]) -> list[list[str]]:
    paths = [shutil.which(name, path=environment.get("PATH", "")) for name in ("gcc", "cc", "clang")]
    files: dict[str, list[str]] = {}
    for path in filter(None, paths):
        files.setdefault(os.path.realpath(path), [path])  # cc is gcc under another name on most machines
    zig = [[sys.executable, "-m", "ziglang", "cc"]] if find_spec("ziglang") else []
    return [*files.values(), *zig]


@check("C++ compiler")
def _cpp_compiler(machine: Machine) -> CheckResult:
    name = "C++ compiler"
    chosen = machine.environment.get("CXX", "").strip()
    names = [chosen] if chosen else ["g++", "clang++"]
    paths = [path for path in (shutil.which(n, path=machine.environment.get("PATH", "")) for n in names) if path]
    stock = "only stock torch.compile's inductor needs it"
    if not paths:
        return CheckResult(
            name, WARNING, f"{' or '.join(names)} not found; {stock}", "install g++ to test stock inductor"
        )
    trouble = _try_compiler([paths[0]], _CPP_PROBE, "probe.cpp", ["-std=c++20", "-fopenmp"], machine)
    if trouble:
        return CheckResult(name, WARNING, f"{trouble}; {stock}", "repair it, or set CXX to one with OpenMP")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        return CheckResult(
            name, WARNING, f"{paths[0]}, but no {header}; {stock}", "install Python's development headers"
        )
    return CheckResult(name, OK, f"{paths[0]} with OpenMP")


def _try_compiler(command: Sequence[str], text: str, name: str, options: Sequence[str], machine: Machine) -> str:
    """Compile a probe and run it; return what went wrong in words, empty when nothing did."""
    with tempfile.TemporaryDirectory(prefix="plumbline-doctor-") as place:
        folder = Path(place)
        source, program = folder / name, folder / "probe"
        source.write_text(text, encoding="utf-8")
        words = [*command, *options, str(source), "-o", str(program)]
        compiled = attempt(words, folder, machine.environment, machine.seconds)
        if not compiled.good:
            return compiled.trouble
        if not program.exists():
            return f"{command[0]} says 0 and makes no program"
        ran = attempt([str(program)], folder, machine.environment, machine.seconds)
        return "" if ran.good else f"a program of {command[0]} fails: {ran.trouble}"


_TRITON_PROBE = """
import torch, triton, triton.language as tl

@triton.jit
def double(source, target, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(target + at, 2 * tl.load(source + at))

source = torch.arange(16, dtype=torch.float32)
target = torch.zeros(16)
double[(1,)](source, target, 16)
assert torch.equal(target, 2 * source), target
"""


@check("Triton")
def _triton(machine: Machine) -> CheckResult:
    gpu = machine.torch is not None and machine.torch.cuda.is_available()
    if find_spec("triton") is None:
        advice = "pip install 'plumbline[cuda]'" if gpu else ""
        return CheckResult("Triton", WARNING if gpu else OK, "not installed; only GPU code needs it", advice)
    with tempfile.TemporaryDirectory(prefix="plumbline-doctor-") as place:
        probe = Path(place) / "probe.py"
        probe.write_text(_TRITON_PROBE, encoding="utf-8")
        environment = {**machine.environment, "TRITON_INTERPRET": "1"}
        ran = attempt([sys.executable, str(probe)], Path(place), environment, 4 * machine.seconds)
    version = installed_version("triton")
    if ran.good:
        use = "CUDA tensors get Triton kernels" if gpu else "no GPU here: backend='triton' runs kernels in it"
        return CheckResult("Triton", OK, f"{version}, its interpreter works; {use}")
    return CheckResult(
        "Triton", WARNING, f"{version}, its interpreter does not work: {ran.trouble}", "reinstall triton"
    )


@check("GPU")
def _gpu(machine: Machine) -> CheckResult:
    torch = machine.torch
    if torch is None:
        return CheckResult("GPU", WARNING, "unknown without torch", "install torch first")
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
        return CheckResult("GPU", OK, ", ".join(names))
    if torch.backends.mps.is_available():
        return CheckResult("GPU", OK, "Apple GPU (mps)")
    if shutil.which("nvidia-smi", path=machine.environment.get("PATH", "")):
        advice = "install a CUDA build of torch and check the driver with nvidia-smi"
        return CheckResult("GPU", WARNING, "nvidia-smi is there, but torch sees no GPU", advice)
    return CheckResult("GPU", OK, "none; tests run on the CPU")


@check("threads")
def _threads(machine: Machine) -> CheckResult:
    cores = usable_cores()
    setting = machine.environment.get("OMP_NUM_THREADS")
    used = machine.torch.get_num_threads() if machine.torch is not None else None
    fact = f"{cores} cores, OMP_NUM_THREADS {setting or 'not set'}"
    if used is None:
        return CheckResult("threads", WARNING, fact, "install torch first")
    fact += f", torch uses {used}"
    if used > cores:
        return CheckResult("threads", WARNING, fact, f"set OMP_NUM_THREADS={cores}: more threads than cores is slower")
    return CheckResult("threads", OK, fact)


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Return where generated code is kept: $PLUMBLINE_CACHE_DIRECTORY, else the platform's place for caches."""
    if environment.get("PLUMBLINE_CACHE_DIRECTORY"):
        return Path(environment["PLUMBLINE_CACHE_DIRECTORY"])
    if environment.get("XDG_CACHE_HOME"):
        return Path(environment["XDG_CACHE_HOME"]) / "plumbline"
    home = Path(environment.get("HOME") or Path.home())
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "plumbline"


@check("cache")
def _cache(machine: Machine) -> CheckResult:
    folder = cache_directory(machine.environment)
    present = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    advice = "set PLUMBLINE_CACHE_DIRECTORY to a directory that can be written"
    try:  # writing is the only test that counts: permissions do not tell of quotas and read-only mounts
        with tempfile.TemporaryFile(dir=present) as probe:
            probe.write(b"plumbline")
            probe.flush()
    except OSError as error:
        return CheckResult("cache", PROBLEM, f"{folder} cannot be written ({present}: {error.strerror})", advice)
    free = shutil.disk_usage(present).free
    fact = f"{folder}{'' if present == folder else ' (not there yet)'}, {free / 1e9:.1f} GB free"
    if free < FREE_WARNING:
        return CheckResult("cache", PROBLEM if free < FREE_PROBLEM else WARNING, fact, f"free some space, or {advice}")
    return CheckResult("cache", OK, fact)


@check("database")
def _database(machine: Machine) -> CheckResult:
    # Imported here: SQLAlchemy may be what is broken, and the other checks must still run.
    from plumbline.reports.store import open_store

    place = machine.environment.get("PLUMBLINE_DB") or database_place()
    drivers = f"SQLite {sqlite3.sqlite_version}{', PostgreSQL (psycopg)' if find_spec('psycopg') else ''}"
    if "://" not in place and not Path(place).exists():
        return CheckResult("database", OK, f"{drivers}; {place} is made by the first run")
    try:
        with open_store(place) as store:
            count = len(store.runs())
            return CheckResult("database", OK, f"{drivers}; {store.place} holds {count} runs")
    except UserError as error:
        where = f"{error.where}: " if error.where else ""
        return CheckResult(
            "database", PROBLEM, f"{where}{error.what}{f' ({error.why})' if error.why else ''}", error.hint
        )


@check("pytest plugin")
def _plugin(machine: Machine) -> CheckResult:
    del machine
    name = "pytest plugin"
    entries = list(metadata.entry_points(group="pytest11", name="plumbline"))
    if not entries:
        return CheckResult(
            name, PROBLEM, "not registered with pytest", "install plumbline itself: pip install plumbline"
        )
    try:
        entries[0].load()
    except Exception as error:  # whatever importing it raises is what the user has to know
        fact = f"{entries[0].value} cannot be imported ({type(error).__name__}: {error})"
        return CheckResult(name, PROBLEM, fact[:300], "reinstall plumbline")
    return CheckResult(name, OK, f"{entries[0].value}, pytest {installed_version('pytest')}")
