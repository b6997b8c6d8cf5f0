"""Where the time of a case goes on a GPU, kernel by kernel, and what other tiles would take.

    python benchmarks/gpu_details.py profile --out rows.jsonl "GPT-2, training" "encoder layer, training" ResNet
    python benchmarks/gpu_details.py tilings --out rows.jsonl pooling "column sum"
    python benchmarks/gpu_details.py profile --dry pooling           a machine without a GPU: nothing is worth its time

Cases are those of `benchmarks/gpu.py`; a model trains where ", training" stands behind its name.  `profile`: one call
of ours and of stock, the longest kernels with their counts, and how long the host was busy.  `tilings`: ours again
under other entries of the table of tiles, each compiled anew; answers are held to those of the table as it is.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from gpu import Call, Run, compiled_by, distance, guarded, medians, step_of
from gpu_cases import KERNELS, MODELS, Case
from torch.profiler import ProfilerActivity, profile

import plumbline
from plumbline.compiler.codegen.triton import tiles

LONGEST = 15
TRAINING = ", training"
OTHER_TILES: tuple[Mapping[str, object], ...] = (
    {"POINTS": 512},
    {"POINTS": 2048},
    {"SCATTERED_POINTS": 128},
    {"SCATTERED_POINTS": 512},
    {"COLUMN_TILE": (64, 32)},
    {"COLUMN_TILE": (128, 16)},
    {"PART_OF_COLUMN": 128},
    {"PART_OF_COLUMN": 512},
    {"ROW_STEP": 4096},
    {"ROW_STEP": 8192},
    {"LONGEST_WHOLE_ROW": 32_768},
    {"LONGEST_UNSPLIT_ROW": 16_384},
    {"TILE": (32, 32)},
    {"TILE": (64, 64)},
)


def case_of(name: str, run: Run) -> tuple[Case, bool]:
    """Return a case by its name, and whether it trains."""
    torch.manual_seed(0)
    if name in KERNELS:
        case = KERNELS[name](run.device, run.dry)
        return case, case.trains
    return MODELS[name.removesuffix(TRAINING)](run.device, run.dry), name.endswith(TRAINING)


def profiled(run: Run, name: str) -> None:
    """Write a row for ours and one for stock."""
    for kind in ("ours", "stock"):
        torch.compiler.reset()
        case, training = case_of(name, run)
        call = step_of(compiled_by(kind, case.function, dry=run.dry), case, training=training)
        for _ in range(3):
            call()
        host, whole = _busy(call, run)
        activity = ProfilerActivity.CPU if run.dry else ProfilerActivity.CUDA
        with profile(activities=[activity]) as found:
            call()
            _wait(run)
        spent = "self_cpu_time_total" if run.dry else "device_time_total"
        rows = sorted(((getattr(each, spent), each) for each in found.key_averages()), key=lambda row: -row[0])
        rows = [row for row in rows if row[0] > 0]
        run.row(
            "profile",
            name,
            kind=kind,
            host_microseconds=host,
            microseconds=whole,
            kernels=sum(each.count for _, each in rows),
            device_microseconds=sum(row[0] for row in rows),
            longest=[f"{own:.0f} us, {each.count} times {each.key[:100]}" for own, each in rows[:LONGEST]],
        )


def _busy(call: Call, run: Run) -> tuple[float, float]:
    """Return the microseconds until the host is free again, and until the device is."""
    _wait(run)
    start = time.perf_counter()
    call()
    host = time.perf_counter() - start
    _wait(run)
    return 1e6 * host, 1e6 * (time.perf_counter() - start)


def _wait(run: Run) -> None:
    if not run.dry:
        torch.cuda.synchronize()


@contextmanager
def other_tiles(change: Mapping[str, object]) -> Iterator[None]:
    """Put other entries into the table of tiles, and forget what was compiled with the ones before."""
    before = {name: getattr(tiles, name) for name in change}
    plumbline.reset()
    try:
        for name, value in change.items():
            setattr(tiles, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(tiles, name, value)


def tilings(run: Run, name: str) -> None:
    """Write a row of the times under each table."""
    case, training = case_of(name, run)
    times: dict[str, float] = {}
    apart: dict[str, float] = {}
    wanted: list[torch.Tensor] = []
    with plumbline.config.patch(graph_cache=False):
        for change in ({}, *OTHER_TILES):
            shown = ", ".join(f"{name}={value}" for name, value in change.items()) or "as it is"
            with other_tiles(change), guarded(run, "tilings", f"{name}, {shown}"):
                call = step_of(compiled_by("ours", case.function, dry=run.dry), case, training=training)
                found = call()
                wanted = wanted or found
                times[shown] = 1e6 * medians({shown: call}, run)[shown]
                apart[shown] = distance(found, wanted)
    run.row("tilings", name, microseconds=dict(sorted(times.items(), key=lambda each: each[1])), distance=apart)


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=("profile", "tilings"))
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("gpu_details.jsonl"))
    chosen: Any = parser.parse_args()
    if not chosen.dry and not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use; --dry goes the same way in Triton's interpreter")
    run = Run(chosen.dry, chosen.out, float("inf"))
    for name in chosen.cases:
        with guarded(run, chosen.work, name):
            {"profile": profiled, "tilings": tilings}[chosen.work](run, name)


if __name__ == "__main__":
    main()
