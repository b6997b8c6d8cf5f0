"""Measure ours beside stock on a GPU in one command; without a GPU, `--dry` goes the same way in Triton's interpreter.

    python benchmarks/gpu.py --out rows.jsonl --minutes 25
    python benchmarks/gpu.py --dry                               a machine without a GPU: nothing is worth its time
    python benchmarks/gpu.py --parts kernels,models --minutes 9  some parts
    python benchmarks/gpu.py --parts training --only 'BERT|GPT'  some cases

Parts, in this order: `bandwidth` (a copy of 1 GB), `kernels` (run time of 14 programs, and the share of that
bandwidth which the bytes that each must move amount to), `models` (six, inference), `training` (five of them),
`graphs` (inference by CUDA graphs: stock's `reduce-overhead`, ours by its option `cuda_graphs`, and captured by hand;
dry, what speaks against recording on a CPU) and `cold` (the first call in a process of its own with empty caches).
Eager, ours and stock take turns; times are of CUDA events, medians of rounds. Each row is a line of JSON, written
when it is known: a run that is cut short keeps what it has, and what was not reached is a row that says so. A row of
ours names how many kernels were launched, what was left to ATen and for what reason, and how far the answer is from
eager's.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from gpu_cases import KERNELS, MODELS, Case, Maker

import plumbline
from plumbline.compiler.base.events import Event, FellBack, GraphRecorded, StepsAssigned, recording

Call = Callable[[], Any]
ROUNDS = 12
RECORDING = {"kernel_language": "triton", "cuda_graphs": True}
COLD = ("softmax", "layer norm, training", "encoder layer, training")
PARTS = ("bandwidth", "kernels", "models", "training", "graphs", "cold")


@dataclass
class Run:
    """One run of this command; until: when to stop, by the clock of `time.monotonic`.  only: which cases, a pattern."""

    dry: bool
    out: Path
    until: float
    only: str = ""
    bandwidth: float = 0.0
    ratios: dict[str, list[float]] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """Where tensors are."""
        return "cpu" if self.dry else "cuda"

    def row(self, part: str, case: str, **found: Any) -> None:
        """Write one row down, and print it."""
        line = json.dumps({"part": part, "case": case, **found})
        print(line, flush=True)
        with self.out.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def compiled_by(kind: str, function: Callable[..., Any], *, dry: bool, mode: str | None = None) -> Callable[..., Any]:
    """Return a function compiled by eager (as it is), ours or stock; dry, stock stops before its kernels."""
    if kind == "eager":
        return function
    if kind == "ours":
        chosen: Callable[..., Any] = plumbline.compile(function, backend="triton", dynamic=False)
        return chosen
    if dry:
        return torch.compile(function, backend="aot_eager", dynamic=False)
    return torch.compile(function, mode=mode, dynamic=False)


def step_of(run: Callable[..., Any], case: Case, *, training: bool) -> Call:
    """Return one call; training: with the gradients of a weighted mean of its first result."""

    def first(result: Any) -> torch.Tensor:
        tensor: torch.Tensor = result if isinstance(result, torch.Tensor) else result[0]
        return tensor

    def infer() -> list[torch.Tensor]:
        with torch.no_grad():
            return [first(run(*case.inputs))]

    def train() -> list[torch.Tensor]:
        leaves = [each for each in case.inputs if each.requires_grad]
        if isinstance(case.function, torch.nn.Module):
            leaves += case.function.parameters()
        result = first(run(*case.inputs))
        loss = (result.float() * result.detach().float().cos()).mean()  # a mean of squares of a norm has no gradient
        gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
        return [result.detach(), *(each for each in gradients if each is not None)]

    return train if training else infer


def seconds_of(call: Call, run: Run, repeats: int) -> float:
    """Return the seconds of one call, by events on a GPU."""
    if run.dry:
        start = time.perf_counter()
        for _ in range(repeats):
            call()
        return (time.perf_counter() - start) / repeats
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1000 / repeats


def medians(calls: dict[str, Call], run: Run) -> dict[str, float]:
    """Return the median seconds of each call; they take turns, and some calls follow each other without waiting."""
    repeats = dict.fromkeys(calls, 1)
    if not run.dry:
        repeats = {kind: max(4, min(200, math.ceil(2e-3 / seconds_of(call, run, 3)))) for kind, call in calls.items()}
    found: dict[str, list[float]] = {kind: [] for kind in calls}
    for _ in range(2 if run.dry else ROUNDS):
        for kind, call in calls.items():
            found[kind].append(seconds_of(call, run, repeats[kind]))
    return {kind: statistics.median(values) for kind, values in found.items()}


def distance(found: list[torch.Tensor], wanted: list[torch.Tensor]) -> float:
    """Return the greatest difference in units of the greatest value of each tensor.

    A tensor that is nothing but rounding (the gradient of a key's bias, which is zero) counts in units of one rounding
    of the greatest value of all.
    """
    least = 1.2e-7 * max(float(each.double().abs().max()) for each in wanted)
    pairs = zip(found, wanted, strict=True)
    return max(float((a.double() - b.double()).abs().max() / b.double().abs().max().clamp(min=least)) for a, b in pairs)


def account(events: list[Event]) -> dict[str, Any]:
    """Return what our compiler did: launches, what is left to ATen, and graphs that run op by op."""
    assigned = [event for event in events if isinstance(event, StepsAssigned)]
    left = sorted({f"{s.operation} ({s.reason})" for event in assigned for s in event.left if s.reason != "VIEW"})
    whole = [event.why for event in events if isinstance(event, FellBack) and event.operation == "graph"]
    return {"launches": sum(len(event.launched) for event in assigned), "left": left, "op by op": whole}


def compare(run: Run, part: str, name: str, case: Case, *, training: bool) -> None:
    """Measure one case under all three, and write its row."""
    calls: dict[str, Call] = {}
    answers: dict[str, list[torch.Tensor]] = {}
    first: dict[str, float] = {}
    told: dict[str, Any] = {}
    torch.compiler.reset()
    for kind in ("eager", "ours", "stock"):
        calls[kind] = step_of(compiled_by(kind, case.function, dry=run.dry), case, training=training)
        start = time.perf_counter()
        with recording() as events:
            answers[kind] = calls[kind]()
        first[kind] = time.perf_counter() - start
        if kind == "ours":
            told = account(events)
    found = medians(calls, run)
    ratio = found["ours"] / found["stock"]
    run.ratios.setdefault(part + (", training" if training else ""), []).append(ratio)
    share = {}
    if case.traffic and run.bandwidth:
        share = {f"{kind} share of bandwidth": case.traffic / found[kind] / run.bandwidth for kind in found}
    run.row(
        part,
        name,
        training=training,
        microseconds={kind: value * 1e6 for kind, value in found.items()},
        ratio=ratio,
        first_call_seconds=first,
        distance={kind: distance(answers[kind], answers["eager"]) for kind in ("ours", "stock")},
        **share,
        **told,
    )


def each_case(run: Run, part: str, makers: dict[str, Maker]) -> Iterator[tuple[str, Case]]:
    """Yield cases while there is time; one that cannot be made, or comes too late, is a row that says so."""
    for name, make in makers.items():
        if not re.search(run.only, name):
            continue
        if time.monotonic() > run.until:
            run.row(part, name, error="not reached: the time was over")
            continue
        torch.manual_seed(0)
        try:
            yield name, make(run.device, run.dry)
        except Exception as error:  # a missing package, or memory: the other cases are measured all the same
            run.row(part, name, error=f"{type(error).__name__}: {error}"[:300])


@contextmanager
def guarded(run: Run, part: str, name: str) -> Iterator[None]:
    """Make a row of an error."""
    try:
        yield
    except Exception as error:  # what fails is a result, too
        run.row(part, name, error=f"{type(error).__name__}: {error}"[:300])


def bandwidth(run: Run) -> None:
    """Measure what a copy moves, read and written."""
    source = torch.empty(1000 if run.dry else 2**28, device=run.device)
    target = torch.empty_like(source)
    found = medians({"copy": lambda: target.copy_(source)}, run)["copy"]
    run.bandwidth = 2 * source.numel() * 4 / found
    run.row("bandwidth", "copy", gigabytes_per_second=run.bandwidth / 1e9)


def kernels(run: Run) -> None:
    """Measure the kernel set."""
    for name, case in each_case(run, "kernels", KERNELS):
        with guarded(run, "kernels", name):
            compare(run, "kernels", name, case, training=case.trains)


def models(run: Run) -> None:
    """Measure the inference of models."""
    for name, case in each_case(run, "models", MODELS):
        with guarded(run, "models", name):
            compare(run, "models", name, case, training=False)


def training(run: Run) -> None:
    """Measure the training of models."""
    for name, case in each_case(run, "training", MODELS):
        if case.trains:
            with guarded(run, "training", name):
                compare(run, "training", name, case, training=True)


def graphs(run: Run) -> None:
    """Measure inference by CUDA graphs."""
    for name, case in each_case(run, "graphs", MODELS):
        with guarded(run, "graphs", name):
            optional = step_of(plumbline.compile(case.function, options=RECORDING, dynamic=False), case, training=False)
            with recording() as events:
                answers = [optional() for _ in range(4)]
            told = sorted(
                {each.why for each in events if isinstance(each, FellBack) and each.operation == "cuda graph"}
            )
            recorded = sum(isinstance(each, GraphRecorded) for each in events)
            apart = distance(answers[-1], answers[0])
            run.row("graphs", name, recorded=recorded, against=told, distance_of_fourth_call=apart)
            if not run.dry:
                _graphed(run, name, case, optional)


def _graphed(run: Run, name: str, case: Case, optional: Call) -> None:
    torch.compiler.reset()
    stock = step_of(compiled_by("stock", case.function, dry=False, mode="reduce-overhead"), case, training=False)
    found = medians({"ours, cuda_graphs": optional, "stock": stock}, run)
    ratio = found["ours, cuda_graphs"] / found["stock"]
    run.ratios.setdefault("graphs", []).append(ratio)
    run.row("graphs", name, microseconds={kind: value * 1e6 for kind, value in found.items()}, ratio=ratio)
    ours = step_of(compiled_by("ours", case.function, dry=False), case, training=False)
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            ours()
            stock()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ours()
    found = medians({"ours, captured by hand": graph.replay, "stock": stock}, run)
    ratio = found["ours, captured by hand"] / found["stock"]
    run.ratios.setdefault("graphs, by hand", []).append(ratio)
    run.row("graphs", name, microseconds={kind: value * 1e6 for kind, value in found.items()}, ratio=ratio)


def cold(run: Run) -> None:
    """Measure the first call in processes of their own."""
    for name in COLD:
        if not re.search(run.only, name):
            continue
        if time.monotonic() > run.until:
            run.row("cold", name, error="not reached: the time was over")
            continue
        with guarded(run, "cold", name):
            _cold(run, name)


def _cold(run: Run, name: str) -> None:
    found = {}
    for kind in ("ours", "stock"):
        with tempfile.TemporaryDirectory() as empty:
            caches = ("XDG_CACHE_HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
            environment = {**os.environ, **dict.fromkeys(caches, empty)}
            command = [sys.executable, __file__, "--first-call", kind, name, *(["--dry"] if run.dry else [])]
            answer = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        if answer.returncode:
            raise RuntimeError(answer.stderr[-300:])
        found[kind] = float(answer.stdout.split()[-1])
    ratio = found["ours"] / found["stock"]
    run.ratios.setdefault("cold", []).append(ratio)
    run.row("cold", name, seconds=found, ratio=ratio)


def first_call(kind: str, name: str, *, dry: bool) -> None:
    """Print the seconds of the first call of a case in this process; the device is awake before."""
    torch.manual_seed(0)
    case = KERNELS[name]("cpu" if dry else "cuda", dry)
    step_of(case.function, case, training=case.trains)()
    start = time.perf_counter()
    step_of(compiled_by(kind, case.function, dry=dry), case, training=case.trains)()
    if not dry:
        torch.cuda.synchronize()
    print(time.perf_counter() - start)


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("gpu.jsonl"))
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--only", default="", metavar="PATTERN")
    parser.add_argument("--first-call", nargs=2, metavar=("KIND", "CASE"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.first_call:
        first_call(*chosen.first_call, dry=chosen.dry)
        return
    if not chosen.dry and not torch.cuda.is_available():
        parser.error("there is no GPU that torch can use; --dry goes the same way in Triton's interpreter")
    run = Run(chosen.dry, chosen.out, time.monotonic() + 60 * chosen.minutes, chosen.only)
    device = "none, dry" if run.dry else torch.cuda.get_device_name()
    run.row("machine", "versions", device=device, torch=torch.__version__, python=sys.version.split()[0])
    work = {
        "bandwidth": bandwidth,
        "kernels": kernels,
        "models": models,
        "training": training,
        "graphs": graphs,
        "cold": cold,
    }
    for part in chosen.parts.split(","):
        with guarded(run, part, "whole part"):
            work[part](run)
    for part, ratios in run.ratios.items():
        if run.dry:
            break  # an interpreter's time says nothing
        run.row("geometric mean", part, cases=len(ratios), ours_to_stock=statistics.geometric_mean(ratios))


if __name__ == "__main__":
    main()
