"""Which net finds which fault: each fault of `net_faults.toml` is planted alone, and nets run until one finds it.

Run `python benchmarks/net_mutation.py [--minutes 2] [--fault WORDS] [--nets graphs,programs] [--jobs 2] [--json FILE]`.
A fault is a piece of source text that is replaced while plumbline is imported, in a process of its own; nothing on
disk changes.  Every net first runs without a fault: where it fails then, its word counts for nothing.  Found means
that the command exits with 1 within its minutes.  The bar is 95 % of the faults.
"""

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import ModuleType

FAULTS = Path(__file__).with_name("net_faults.toml")
ROOT = FAULTS.parent.parent
NETS = {
    "graphs": ("fuzz", "graphs"),
    "programs": ("fuzz", "programs"),
    "guards": ("fuzz", "guards"),
    "transforms": ("fuzz", "transforms"),
    "sweep": ("sweep", "operators"),
}
GRACE = 120.0  # seconds that a net may take beyond its minutes, to minimize what it has found


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


def run_planted(name: str, words: Sequence[str]) -> None:
    """Run the command line with a fault planted; the exit status is that of the command."""
    if name:
        sys.meta_path.insert(0, _Planter(next(fault for fault in read_faults() if fault.name == name)))
    from plumbline.command import main

    sys.argv = ["plumbline", *words]
    main()


def run_net(net: str, fault: str, operators: str, minutes: float, seed: int) -> tuple[int | None, float, str]:
    """Return (exit status or None if it did not end, seconds, last line) of one net with one fault, "" for none."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="plumbline-net-") as folder:
        words = [*NETS[net], "--minutes", str(minutes), "--seed", str(seed), "--db", f"{folder}/results.sqlite"]
        words += ["--save", f"{folder}/found", *(["--op", operators] if net == "sweep" else [])]
        command = [sys.executable, str(Path(__file__).resolve()), "--planted", fault, *words]
        try:
            ended = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=60 * minutes + GRACE, check=False
            )
        except subprocess.TimeoutExpired:
            return None, time.monotonic() - started, "did not end"
    lines = (ended.stdout + ended.stderr).strip().splitlines()
    return ended.returncode, time.monotonic() - started, lines[-1] if lines else ""


class Table:
    """The rows of the table, each asked for once; several threads may ask.

    nets: those to run.  minutes: of each net for each fault.
    """

    def __init__(self, nets: tuple[str, ...], minutes: float, seed: int) -> None:
        self.nets, self.minutes, self.seed = nets, minutes, seed
        self._quiet: dict[str, bool] = {}
        self._places: defaultdict[str, Lock] = defaultdict(Lock)

    def row(self, fault: Fault) -> dict[str, object]:
        """Run the nets of a fault until one finds it, and return what each did."""
        row: dict[str, object] = {"fault": fault.name, "stage": fault.stage, "origin": fault.origin, "found": ""}
        for net in (net for net in fault.nets if net in self.nets):
            if not self._is_quiet(net, fault.operators):
                continue
            status, seconds, last = run_net(net, fault.name, fault.operators, self.minutes, self.seed)
            row[net] = round(seconds, 1)
            if status == 1:
                row["found"] = net
                break
            if status != 0:
                row["note"] = last
        return row

    def _is_quiet(self, net: str, operators: str) -> bool:
        """Return whether a net ends without a finding where no fault is planted; runs it the first time."""
        place = f"{net} {operators}" if net == "sweep" else net
        with self._places[place]:
            if place not in self._quiet:
                status, seconds, last = run_net(net, "", operators, self.minutes, self.seed)
                self._quiet[place] = status == 0
                print(f"{place} without a fault: {'quiet' if status == 0 else last} ({seconds:.0f} s)", flush=True)
            return self._quiet[place]


def main() -> None:
    """Print a line per fault and the share that was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="of each net, for each fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fault", default="", help="only faults whose name or stage contains this")
    parser.add_argument("--nets", default=",".join(NETS), help="only these nets")
    parser.add_argument("--jobs", type=int, default=1, help="faults tried at a time")
    parser.add_argument("--json", type=Path, help="write the table here after every fault")
    chosen = parser.parse_args()
    faults = [fault for fault in read_faults() if chosen.fault in f"{fault.name} {fault.stage}"]
    table = Table(tuple(chosen.nets.split(",")), chosen.minutes, chosen.seed)
    rows: list[dict[str, object]] = []
    with ThreadPoolExecutor(chosen.jobs) as pool:
        for fault, row in zip(faults, pool.map(table.row, faults), strict=True):
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
        run_planted(sys.argv[2], sys.argv[3:])
    else:
        main()
