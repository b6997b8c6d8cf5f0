"""Whether a campaign on a cluster, with workers killed on the way, finds what a serial one finds, and how much faster.

    PYTHONPATH=tests python benchmarks/campaign_engines.py [--examples 2000] [--kill 2] [--seed 0]

A Dask cluster of two nodes on this machine, one worker process with one thread each. A planted compiler is wrong about
some programs, so that there is something to find. `--kill` times, at random, a worker of the cluster is killed
with SIGKILL. Printed: the findings of both runs, the rows that each left in its database, programs a second, and the
ratio of the rates. Exits 1 where findings, verdicts or rows differ.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distributed import LocalCluster

from plumbline.fuzz import recorded_campaign
from plumbline.fuzz.campaign import CampaignReport, CampaignSettings
from plumbline.reports.store import open_store
from support.planted_faults import FreezingCompiler


def main() -> int:
    """Run both campaigns and compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--kill", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    recorded_campaign.find_compiler = lambda name, backend: FreezingCompiler("SCALE")  # type: ignore[assignment]  # planted
    with tempfile.TemporaryDirectory() as folder:
        serial = campaign(Path(folder) / "serial", asked.examples, asked.seed, "")
        expected = serial.seconds / 2
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            place = cluster.scheduler_address.replace("tcp", "dask")
            with killing(cluster, asked.kill, expected, random.Random(asked.seed)) as killed:
                together = campaign(Path(folder) / "cluster", asked.examples, asked.seed, place)
        rows = [rows_of(Path(folder) / name) for name in ("serial", "cluster")]
    for name, report, own_rows in zip(("serial", "cluster"), (serial, together), rows, strict=True):
        print(f"{name}: {report.summary()}\n  {len(own_rows)} rows")
    print(f"workers killed: {len(killed)}; throughput {serial.seconds / together.seconds:.2f}x of the serial run")
    same = facts(serial) == facts(together) and rows[0] == rows[1]
    print("findings, verdicts and rows are the same" if same else "they differ")
    return int(not same)


def campaign(folder: Path, examples: int, seed: int, engine: str) -> CampaignReport:
    """Run one campaign into a folder and a database of its own."""
    settings = CampaignSettings(examples, seed, folder / "found", shrink_tries=30)
    place = str(folder / "results.sqlite")
    folder.mkdir()
    return recorded_campaign.run_recorded("guards", "planted", "eager", settings, place, print, engine=engine)


def facts(report: CampaignReport) -> object:
    """Return what a campaign found, without times."""
    return [(one.signature, one.number) for one in report.failures], report.verdicts, report.duplicates, report.examples


def rows_of(folder: Path) -> list[tuple[str, str, int | None]]:
    """Return the rows of a campaign, without times and places."""
    with open_store(str(folder / "results.sqlite")) as store:
        cases = store.cases(store.run().run_id)
    return sorted((row.test, row.outcome, row.judged_calls) for row in cases)


@contextmanager
def killing(cluster: LocalCluster, times: int, seconds: float, draw: random.Random) -> Iterator[list[int]]:
    """Kill a worker of the cluster at random moments of the first `seconds`; yields the numbers of the processes."""
    over, killed = threading.Event(), list[int]()

    def kill() -> None:
        for wait in sorted(draw.uniform(0.1, 0.8) * seconds for _ in range(times)):
            if over.wait(max(0.0, started + wait - time.monotonic())):
                return
            nanny = draw.choice(list(cluster.workers.values()))
            killed.append(nanny.process.pid)
            os.kill(nanny.process.pid, signal.SIGKILL)

    started = time.monotonic()
    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


if __name__ == "__main__":
    sys.exit(main())
