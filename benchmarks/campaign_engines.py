"""Whether a campaign on a cluster, with workers killed on the way, finds what a serial one finds, and how much faster.

    PYTHONPATH=tests python benchmarks/campaign_engines.py [--examples 2000] [--kill 2] [--seed 0] [--mode graphs]
    PYTHONPATH=tests python benchmarks/campaign_engines.py --mode programs --examples 60 --fault relu-as-abs

A Dask cluster of two nodes on this machine, each started by `dask worker` with one thread. Both campaigns test a
planted compiler, so that there is something to find: in `graphs` and `programs` our own with one operator lowered as
another (`--fault`, tanh as sin by default), in `guards` one that ignores a global. At random moments, `--kill` times,
the process of a node that does the work is killed with SIGKILL; `dask worker` starts another one.

The two campaigns are processes that advance in turns, a slice of programs each, so that what else the machine does
meets both: slice n of one beside slice n of the other, and who begins alternates. Only the one whose turn it is runs:
the nodes of the cluster are stopped (SIGSTOP) in the turns of the serial one. The nodes watch themselves less often
than Dask does by default, see QUIET: as docs/tutorial-fuzzing.md says to start them. Each campaign begins with an empty
cache of kernels.
Printed: the findings and rows of both, seconds and processor seconds of each slice, the ratio of the whole
campaigns (the imports of new workers included), and the median of the slices' ratios. Exits 1 where findings, verdicts
or rows differ, or where a planned kill was not made.
"""

import argparse
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import dask
import psutil
from distributed import Client, LocalCluster

from plumbline.fuzz import recorded_campaign
from plumbline.fuzz.campaign import ROUND, CampaignReport, CampaignSettings, run_campaign
from plumbline.fuzz.fuzzers import PROGRAMS_IN_A_BATCH
from plumbline.oracle.harness.operator_mutants import operator_faults
from plumbline.reports.store import open_store
from support.planted_faults import FreezingCompiler
from support.wrong_operator import WrongOperator

PLANTED = {
    "graphs": (WrongOperator, "inductor"),
    "programs": (WrongOperator, "inductor"),
    "guards": (lambda fault: FreezingCompiler("SCALE"), "eager"),
}
"""What is tested in each mode: a compiler, made from the name of a fault, and its backend."""
SLICES = 10
QUIET = {"worker.profile.enabled": False, "admin.tick.interval": "500ms", "worker.memory.monitor-interval": "2s"}
"""Settings of Dask, of what its nodes do beside their tasks: by default they look every 10, 20 and 100 ms."""
NODES = 2


def main() -> int:
    """Run both campaigns in turns and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--kill", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mode", choices=PLANTED, default="graphs")
    parser.add_argument("--fault", choices=operator_faults(), default="tanh-as-sin", help="of graphs and programs")
    parser.add_argument("--play", type=Path, help=argparse.SUPPRESS)  # a campaign in this process, for the parent
    parser.add_argument("--engine", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.play is not None:
        return play(asked)
    if asked.kill >= slices_of(asked.mode, asked.examples):
        parser.error("a worker is killed in a slice, and never in the first: ask for more examples, or fewer kills")
    dask.config.set({f"distributed.comm.timeouts.{name}": "300s" for name in ("connect", "tcp")})  # a busy machine
    dask.config.set({f"distributed.{name}": value for name, value in QUIET.items()})
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        nodes_of(cluster, Path(folder)) as nodes,
    ):
        place = cluster.scheduler_address.replace("tcp", "dask")
        serial, together = Turns(Path(folder) / "serial", ""), Turns(Path(folder) / "cluster", place, nodes)
        killed = in_turns(serial, together, Killer(nodes, asked.kill, random.Random(asked.seed)), asked)
        same = compared(serial, together)
    print(f"workers killed: {killed} of {asked.kill}")
    return int(not same or killed != asked.kill)


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster: `dask worker`, which starts the process that does the work."""

    starter: psutil.Process

    def worker(self) -> psutil.Process:
        """Return the process that does the work, as soon as there is one."""
        while True:
            for child in self.starter.children():
                with suppress(psutil.NoSuchProcess):
                    if any("spawn_main" in word for word in child.cmdline()):
                        return child
            time.sleep(0.05)

    def let(self, what: signal.Signals) -> None:
        """Stop it and all that it has started, or let it go on."""
        for one in (self.starter, *self.starter.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                one.send_signal(what)


@contextmanager
def nodes_of(cluster: LocalCluster, folder: Path) -> Iterator[tuple[Node, ...]]:
    """Start the nodes of a cluster; they end with the context."""
    settings = {f"DASK_DISTRIBUTED__{name.upper().replace('.', '__')}": str(value) for name, value in QUIET.items()}
    command = [sys.executable, "-m", "dask", "worker", cluster.scheduler_address, "--nthreads=1", "--no-dashboard"]
    environment = {**os.environ, **settings, **empty_cache(folder / "cluster")}
    started = []
    with ExitStack() as ends, (folder / "nodes.txt").open("w") as log:
        for number in range(NODES):
            place = f"--local-directory={folder / str(number)}"
            process = subprocess.Popen([*command, place], env=environment, stdout=log, stderr=log)
            node = Node(psutil.Process(process.pid))
            ends.callback(process.wait)
            ends.callback(node.let, signal.SIGTERM)
            ends.callback(node.let, signal.SIGCONT)
            started.append(node)
        with Client(cluster.scheduler_address, set_as_default=False) as client:
            client.wait_for_workers(NODES)
        yield tuple(started)


@dataclass(slots=True)
class Turns:
    """A campaign in a process of its own, which advances by a slice at a time.

    nodes: of the cluster, which run in its turns only.  slices: programs so far, wall seconds and processor seconds of
    each slice.
    """

    folder: Path
    engine: str
    nodes: tuple[Node, ...] = ()
    slices: list[tuple[int, float, float]] = field(default_factory=list)
    process: Any = None

    def start(self) -> None:
        """Start the process; it waits for its first turn."""
        command = [sys.executable, __file__, *sys.argv[1:], "--play", str(self.folder), "--engine", self.engine]
        environment = {**os.environ, **empty_cache(self.folder)}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._line() == "ready"

    def advance(self) -> bool:
        """Let it run a slice; return whether the campaign goes on after it."""
        for node in self.nodes:
            node.let(signal.SIGCONT)
        started, before = time.monotonic(), processor_seconds()
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        word, _, count = self._line().partition(" ")
        self.slices.append((int(count), time.monotonic() - started, processor_seconds() - before))
        for node in self.nodes:
            node.let(signal.SIGSTOP)
        print(f"{self.folder.name}: {count} programs, {self.slices[-1][1]:.0f} s", file=sys.stderr, flush=True)
        if word == "end":
            assert self.process.wait() == 0
        return word != "end"

    def _line(self) -> str:
        line = self.process.stdout.readline().strip()
        while line and line.split()[0] not in ("ready", "at", "end"):
            line = self.process.stdout.readline().strip()
        if not line:
            raise SystemExit(f"the campaign of {self.folder.name} ended with status {self.process.wait()}")
        return str(line)

    @property
    def report(self) -> CampaignReport:
        """Return what the campaign found, once it has ended."""
        report = pickle.loads((self.folder / "report").read_bytes())
        assert isinstance(report, CampaignReport)
        return report

    @property
    def seconds(self) -> float:
        """Return the wall seconds of all its turns."""
        return sum(seconds for _, seconds, _ in self.slices)


@dataclass(slots=True)
class Killer:
    """Kills nodes of the cluster: in `times` of the slices, drawn, and at a moment in each that is drawn as well."""

    nodes: tuple[Node, ...]
    times: int
    draw: random.Random
    killed: int = 0

    def plan(self, slices: int) -> set[int]:
        """Return the slices in which a node is killed; not the first, when they start, nor the last if others do."""
        return set(self.draw.sample(range(1, max(slices - 1, self.times + 1)), self.times))

    @contextmanager
    def at_work(self, seconds: float) -> Iterator[None]:
        """Kill a node within a slice that is expected to take some seconds."""
        over = threading.Event()

        def kill() -> None:
            if not over.wait(self.draw.uniform(0.05, 0.6) * seconds):
                self.draw.choice(self.nodes).worker().kill()
                self.killed += 1

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def in_turns(serial: Turns, together: Turns, killer: Killer, asked: argparse.Namespace) -> int:
    """Run both campaigns to their ends; return how many workers were killed."""
    planned = killer.plan(slices_of(asked.mode, asked.examples))
    for one in (serial, together):
        one.folder.mkdir()
        one.start()
    going = {serial.folder: True, together.folder: True}
    number = 0
    while any(going.values()):
        for one in (serial, together) if number % 2 == 0 else (together, serial):
            if not going[one.folder]:
                continue
            if one is together and number in planned:
                with killer.at_work(together.slices[-1][1]):
                    going[one.folder] = one.advance()
            else:
                going[one.folder] = one.advance()
        number += 1
    return killer.killed


def compared(serial: Turns, together: Turns) -> bool:
    """Print both campaigns; return whether they found and stored the same."""
    for one in (serial, together):
        print(f"{one.folder.name}: {one.report.summary()}\n  {len(rows_of(one.folder))} rows")
        for failure in one.report.failures:
            print(f"  {failure.signature}, example {failure.number}")
    print("programs  serial s (cpu)  cluster s (cpu)  ratio")
    ratios = []
    for (count, alone, alone_cpu), (_, pair, pair_cpu) in zip(serial.slices, together.slices, strict=True):
        ratios.append(alone / pair)
        print(f"{count:8d}  {alone:8.1f} ({alone_cpu:.0f})  {pair:8.1f} ({pair_cpu:.0f})  {ratios[-1]:.2f}")
    whole = serial.seconds / together.seconds
    print(f"throughput {whole:.2f}x of the serial campaign; median of the slices {median(ratios):.2f}x")
    same = facts(serial.report) == facts(together.report) and rows_of(serial.folder) == rows_of(together.folder)
    print("findings, verdicts and rows are the same" if same else "they differ")
    return same


def empty_cache(folder: Path) -> dict[str, str]:
    """Return the setting with which a campaign finds no kernel that an earlier one has built."""
    return {"PLUMBLINE_CACHE_DIRECTORY": f"{folder}-cache"}


def processor_seconds() -> float:
    """Return the seconds that all processors of this machine were busy since it started, whatever with."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle = ticks[3] + ticks[4]
    return (sum(ticks[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def play(asked: argparse.Namespace) -> int:
    """Run one campaign into a folder and a database of its own; a slice for each line on standard input."""
    compiler, backend = PLANTED[asked.mode]
    recorded_campaign.find_compiler = lambda name, level: compiler(asked.fault)  # type: ignore[assignment]  # planted
    recorded_campaign.run_campaign = in_slices(asked.examples)  # type: ignore[assignment]  # it waits at each border
    print("ready", flush=True)
    sys.stdin.readline()
    settings = CampaignSettings(asked.examples, asked.seed, asked.play / "found", shrink_tries=30, shrink_seconds=600.0)
    place = str(asked.play / "results.sqlite")
    report = recorded_campaign.run_recorded(
        asked.mode, "planted", backend, settings, place, lambda text: None, engine=asked.engine
    )
    (asked.play / "report").write_bytes(pickle.dumps(report))
    print(f"end {report.examples}", flush=True)
    return 0


def slices_of(mode: str, examples: int) -> int:
    """Return how many slices a campaign has: it stops between rounds only."""
    programs = ROUND * (PROGRAMS_IN_A_BATCH if mode == "graphs" else 1)
    return min(SLICES, -(-examples // programs))


def in_slices(examples: int) -> Any:
    """Return run_campaign() that stops at the end of each slice until a line comes."""

    def run(*words: Any, on_progress: Any, **named: Any) -> CampaignReport:
        border = examples // SLICES

        def progress(report: CampaignReport) -> None:
            nonlocal border
            on_progress(report)
            if border <= report.examples < examples and report.next_number % ROUND == 0:
                border += examples // SLICES
                print(f"at {report.examples}", flush=True)
                if not sys.stdin.readline():
                    raise SystemExit("nobody waits for this campaign")

        return run_campaign(*words, on_progress=progress, **named)

    return run


def facts(report: CampaignReport) -> object:
    """Return what a campaign found, without times.

    What is equal, and what is vacuous, are counted together: a program that takes an address apart differs from itself
    in some processes.
    """
    failures = [(one.signature, one.number, one.example, one.repeats) for one in report.failures]
    verdicts = dict(report.verdicts)
    passed = sum(verdicts.pop(kind, 0) for kind in ("EQUAL", "VACUOUS"))
    return failures, verdicts, passed, report.duplicates, report.examples, report.shrink_tries


def rows_of(folder: Path) -> list[tuple[str, str, int | None]]:
    """Return the rows of a campaign, without times and places."""
    with open_store(str(folder / "results.sqlite")) as store:
        (run,) = store.runs()
        cases = store.cases(run.run_id)
    return sorted((row.test, row.outcome, row.judged_calls) for row in cases)


if __name__ == "__main__":
    sys.exit(main())
