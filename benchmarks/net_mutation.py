"""Which net finds which fault: each fault of `net_faults.toml` is planted alone, and nets run until one finds it.

Run `python benchmarks/net_mutation.py [--minutes 10] [--fault WORDS] [--nets graphs,programs] [--jobs 2] [--json TO]`.
A fault is a piece of source text that is replaced while plumbline is imported, in a process of its own; nothing on
disk changes.  A net runs its default ten minutes (of processor time, so that other work on the machine does not tell),
or goes through the operators that the row names, and ends at the first finding that is the fault's: it fails with the
fault, and passes when it is tried again without.  A finding that fails without the fault too is an open fault; the net
goes on past three of those.  The bar is 95 % of the faults.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

FAULTS = Path(__file__).with_name("net_faults.toml")
ROOT = FAULTS.parent.parent
NETS = ("sweep", "guards", "programs", "transforms", "graphs")  # the quickest first
BACKEND = "inductor"
FOUND = "found"
OPEN_FAULTS = 3  # findings without the fault, past which a net goes on
GRACE = 120.0  # seconds in which one program must be tried again
LOADED = 8  # how many times slower than its processor time a net may be on a loaded machine


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault: where it is planted (a file below the root), the text that stands there once, and what replaces it.

    operators: a pattern of those that a sweep tries, which would otherwise take hours.
    """

    name: str
    stage: str
    origin: str
    nets: tuple[str, ...]
    module: str
    old: str
    new: str
    operators: str = ""


def read_faults() -> list[Fault]:
    """Return the faults in the order of the file."""
    with FAULTS.open("rb") as file:
        return [Fault(**{**row, "nets": tuple(row["nets"])}) for row in tomllib.load(file)["fault"]]


@dataclass(frozen=True, slots=True)
class Search:
    """How a net is run.

    minutes: of processor time, at most.  seed: of what it draws.  kept: where scripts of open faults are left.
    """

    minutes: float
    seed: int
    kept: Path | None = None

    def end_if_spent(self, seconds: float) -> None:
        """Raise KeyboardInterrupt, which ends a net, when it has had its minutes."""
        if seconds > 60 * self.minutes:
            raise KeyboardInterrupt

    def words(self) -> list[str]:
        """Return it as arguments of a command."""
        return [str(self.minutes), str(self.seed), str(self.kept.resolve()) if self.kept else ""]

    @staticmethod
    def read(minutes: str, seed: str, kept: str) -> "Search":
        """Read what `words` wrote."""
        return Search(float(minutes), int(seed), Path(kept) if kept else None)


class _PlantedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module with one text replaced, and neither reads nor writes its bytecode file."""

    fault: Fault

    def get_data(self, path: str) -> bytes:
        """Return the source with the fault in it."""
        text = super().get_data(path).decode()
        if text.count(self.fault.old) != 1:
            raise ImportError(f"{self.fault.name}: the text to replace is not in {path} exactly once")
        return text.replace(self.fault.old, self.fault.new).encode()

    def path_stats(self, path: str) -> dict[str, int]:  # type: ignore[override]  # no statistics: no bytecode file
        """Say that the source has no date, so that its text is compiled."""
        raise OSError(path)


class _Planter(importlib.abc.MetaPathFinder):
    """Finds the module of a fault and gives it the loader above."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.name = "plumbline." + fault.module.removesuffix(".py").replace("/", ".")

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the faulty module, None for others."""
        if name != self.name:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None and spec.origin is not None:
                loader = _PlantedLoader(name, spec.origin)
                loader.fault = self.fault
                return importlib.util.spec_from_file_location(name, spec.origin, loader=loader)
        return None


def run_planted(name: str, net: str, operators: str, search: Search, folder: Path) -> None:
    """Run a net with a fault planted until a finding is the fault's, and print FOUND then, else how far it came."""
    sys.meta_path.insert(0, _Planter(next(fault for fault in read_faults() if fault.name == name)))
    findings = _Findings(net, folder, search.kept)
    print(_sweep(findings, operators, search) if net == "sweep" else _campaign(findings, net, search))


class _Findings:
    """The findings of a net with a fault planted: each is tried again, in a process without the fault."""

    def __init__(self, net: str, folder: Path, kept: Path | None) -> None:
        self.net, self.folder, self.kept = net, folder, kept
        self.found = False
        self.without: list[str] = []

    def take(self, file: Path) -> None:
        """Try a saved finding again; raise KeyboardInterrupt, which ends a net, when it has done its work."""
        again = [str(file.with_suffix(".py"))]
        if self.net != "sweep":
            again = ["-m", "plumbline.command", "fuzz", "--replay", str(file)]
        replayed = _run(again, self.folder, GRACE)
        if replayed is not None and replayed.returncode == 0:
            self.found = True
        else:
            self.without.append(file.stem)
            if self.kept is not None:
                self.kept.mkdir(parents=True, exist_ok=True)
                shutil.copy(file.with_suffix(".py"), self.kept)
        if self.found or len(self.without) > OPEN_FAULTS:
            raise KeyboardInterrupt

    def answer(self, progress: str) -> str:
        """Return FOUND, or what the net says of itself at its end."""
        return FOUND if self.found else f"{progress}; without the fault too: {', '.join(self.without) or 'none'}"


def _campaign(findings: _Findings, net: str, search: Search) -> str:
    from plumbline.fuzz.campaign import CampaignSettings, DistinctFailure, run_campaign
    from plumbline.fuzz.fuzzers import find_fuzzer
    from plumbline.oracle.harness.known_compilers import find_compiler

    def take(failure: DistinctFailure) -> None:
        assert failure.file is not None
        findings.take(failure.file)

    settings = CampaignSettings(sys.maxsize, search.seed, findings.folder, shrink_tries=0)
    report = run_campaign(
        find_fuzzer(net),
        find_compiler("plumbline", BACKEND),
        BACKEND,
        settings,
        on_failure=take,
        on_progress=lambda report: search.end_if_spent(report.cpu_seconds),
    )
    return findings.answer(report.progress())


def _sweep(findings: _Findings, operators: str, search: Search) -> str:
    from plumbline.fuzz.operator_sweep.case_trial import CaseFault
    from plumbline.fuzz.operator_sweep.known_deviations import known_deviations
    from plumbline.fuzz.operator_sweep.recorded_sweep import SweepCommand, save_finding, tasks_of
    from plumbline.fuzz.operator_sweep.row_store import RowStore
    from plumbline.fuzz.operator_sweep.sweep import Sweep, SweepSettings

    def take(fault: CaseFault) -> None:
        findings.take(save_finding(findings.folder, fault))

    tasks = tasks_of(SweepCommand(operators))
    findings.folder.mkdir(parents=True, exist_ok=True)
    with RowStore(findings.folder / "rows.jsonl", {}, resume=False) as rows:
        settings = SweepSettings(tasks, seed=search.seed)
        sweep = Sweep(
            settings,
            rows,
            known_deviations(),
            on_finding=take,
            progress=lambda report, now: search.end_if_spent(report.cpu_seconds),
        )
        summary = sweep.run().summary()
    return findings.answer(summary.splitlines()[0])


def run_net(fault: Fault, net: str, search: Search) -> tuple[str, float]:
    """Return what a net says of a fault, FOUND where a finding is the fault's, and the seconds it took."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="plumbline-net-") as name:
        folder = Path(name)
        words = ["--planted", fault.name, net, fault.operators, str(folder / "found"), *search.words()]
        patience = LOADED * 60 * search.minutes + (OPEN_FAULTS + 2) * GRACE
        ended = _run([str(Path(__file__).resolve()), *words], folder, patience)
    seconds = time.monotonic() - started
    if ended is None:
        return f"{net} did not end", seconds
    lines = (ended.stdout if ended.returncode == 0 else ended.stderr + ended.stdout).strip().splitlines()
    return lines[-1] if lines else f"{net} says nothing", seconds


def _run(words: list[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[str] | None:
    """Run Python in the folder and return the ended process, None if it had to be ended."""
    try:
        return subprocess.run(
            [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return None


def row_of(fault: Fault, nets: Sequence[str], search: Search) -> dict[str, object]:
    """Run the nets of a fault until one finds it, and return what each did."""
    row: dict[str, object] = {"fault": fault.name, "stage": fault.stage, "origin": fault.origin, "found": ""}
    for net in (net for net in NETS if net in fault.nets and net in nets):
        answer, seconds = run_net(fault, net, search)
        row[net] = round(seconds, 1)
        if answer == FOUND:
            row["found"] = net
            break
        row["note"] = answer
    return row


def main() -> None:
    """Print a line per fault and the share that was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="of processor time, of each net, for each fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fault", default="", help="only faults whose name or stage contains this")
    parser.add_argument("--nets", default=",".join(NETS), help="only these nets")
    parser.add_argument("--jobs", type=int, default=1, help="faults tried at a time")
    parser.add_argument("--keep", type=Path, help="leave scripts of what nets find without the fault too here")
    parser.add_argument("--json", type=Path, help="write the table here after every fault")
    chosen = parser.parse_args()
    faults = [fault for fault in read_faults() if chosen.fault in f"{fault.name} {fault.stage}"]
    nets, search = chosen.nets.split(","), Search(chosen.minutes, chosen.seed, chosen.keep)
    rows: list[dict[str, object]] = []
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for fault, row in zip(faults, pool.map(lambda fault: row_of(fault, nets, search), faults), strict=True):
            rows.append(row)
            words = (
                f"{row['found']} in {row[str(row['found'])]} s" if row["found"] else f"NOT FOUND {row.get('note', '')}"
            )
            print(f"  {fault.stage:<9} {fault.name:<75} {words}", flush=True)
            if chosen.json is not None:
                chosen.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    count = sum(bool(row["found"]) for row in rows)
    print(f"{count} of {len(rows)} faults found, {100 * count / max(len(rows), 1):.0f} %")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--planted"]:
        fault_name, net_name, pattern, place, *how = sys.argv[2:]
        run_planted(fault_name, net_name, pattern, Search.read(*how), Path(place))
    else:
        main()
