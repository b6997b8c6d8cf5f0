"""The memory of a training step beside stock torch.compile and eager: its peak, and what is kept for the backward.

    python benchmarks/training_memory.py [--only bert,lstm] [--kinds eager,stock,ours] [--results FILE]
    python benchmarks/training_memory.py --budgets 0,0.25,0.5,0.75,1 [--only bert]

Six small models with rows enough that activations are most of what they take. Every kind runs in a process of its own,
one thread, twice before anything is counted. Counted, in bytes above what is alive before the step: every allocation
of torch's CPU allocator, as its profiler tells of them; `peak` is the most that is alive during the step, `kept` what
is alive between the forward with its loss and the backward. `resident` is the growth of the process's peak resident
memory over a step (Linux only), which counts what others allocate too.  Gradients do not exist before the step.
--budgets: ours with each value of the option `save_budget`, and its CPU time.  --results: a JSON file; what it holds is
not measured again.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import timed_models
import torch
from torch.autograd.profiler import profile, record_function

import plumbline

MODELS = {"bert": 8, "convnext": 4, "gpt2": 8, "lstm": 16, "pointwise": 8, "resnet": 4}
"""How many times the rows of `timed_models`."""
FIGURES = ("peak", "kept", "resident")
Row = dict[str, float]


def step_of(name: str, kind: str, budget: float) -> Callable[[Callable[[], object]], None]:
    """Return one training step of a model; the step calls its argument between the forward and the backward."""
    torch.manual_seed(0)
    model, inputs = getattr(timed_models, name)()
    model.train()
    inputs = tuple(each.repeat(MODELS[name], *(1 for _ in each.shape[1:])) for each in inputs)
    leaves = list(model.parameters()) or list(inputs)
    for leaf in leaves:
        leaf.requires_grad_()
    run = model
    if kind == "ours":
        run = plumbline.compile(model, options={"save_budget": budget})
    elif kind == "stock":
        run = torch.compile(model)

    def step(between: Callable[[], object]) -> None:
        loss = run(*inputs).square().mean()
        between()
        loss.backward()
        for leaf in leaves:
            leaf.grad = None

    return step


def counted(step: Callable[[Callable[[], object]], None]) -> Row:
    """Return the figures of one step: bytes, and CPU seconds."""
    for _ in range(2):
        step(lambda: None)
    with profile(profile_memory=True, use_kineto=True) as record:
        step(lambda: record_function("between").__enter__())
    assert record.kineto_results is not None
    alive = peak = kept = 0
    for event in sorted(record.kineto_results.events(), key=lambda each: each.start_ns()):
        if event.name() == "[memory]":
            alive += event.nbytes()
            peak = max(peak, alive)
        elif event.name() == "between":
            kept = alive
    times = []
    for _ in range(7):
        start = time.process_time()
        step(lambda: None)
        times.append(time.process_time() - start)
    return {"peak": peak, "kept": kept, "resident": _resident(step), "seconds": statistics.median(times)}


def _resident(step: Callable[[Callable[[], object]], None]) -> int:
    """Return by how many bytes the peak of resident memory grows over a step."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    except OSError:
        return 0
    before = _peak_resident()
    step(lambda: None)
    return _peak_resident() - before


def _peak_resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def in_own_process(name: str, kind: str, budget: float) -> Row:
    """Return the figures of a model in a fresh process; large tensors are mapped, so that freed ones are given back."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    command = [sys.executable, __file__, "--child", name, kind, str(budget)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=900)
    row: Row = json.loads(done.stdout.splitlines()[-1])
    return row


def compared(names: list[str], kinds: list[str], kept: dict[str, Row], save: Callable[[], None]) -> None:
    """Print a line for every model, and the geometric means of the ratios."""
    ratios: dict[str, list[float]] = {}
    for name in names:
        for kind in kinds:
            if f"{name} {kind}" not in kept:
                kept[f"{name} {kind}"] = in_own_process(name, kind, 1.0)
                save()
        rows = {kind: kept[f"{name} {kind}"] for kind in kinds}
        words = [f"{name:10}"]
        for figure in FIGURES:
            words.append(figure + "".join(f" {kind} {row[figure] / 1e6:.2f}" for kind, row in rows.items()) + " MB")
            for other in kinds:
                if other != "ours" and "ours" in kinds and rows[other][figure]:
                    ratio = rows["ours"][figure] / rows[other][figure]
                    ratios.setdefault(f"{figure} ours/{other}", []).append(ratio)
                    words.append(f"ours/{other} {ratio:.2f}")
        print("  ".join(words), flush=True)
    for what, found in ratios.items():
        print(f"geometric mean of {what}, {len(found)} models: {statistics.geometric_mean(found):.2f}")


def main() -> None:
    """Measure what is asked for."""
    if sys.argv[1:2] == ["--child"]:
        torch.set_num_threads(1)
        name, kind, budget = sys.argv[2:]
        print(json.dumps(counted(step_of(name, kind, float(budget)))))
        return
    parser = argparse.ArgumentParser(description="memory of a training step beside stock and eager")
    parser.add_argument("--only", default=",".join(MODELS))
    parser.add_argument("--kinds", default="eager,stock,ours")
    parser.add_argument("--budgets", default="")
    parser.add_argument("--results", type=Path)
    asked = parser.parse_args()
    kept: dict[str, Row] = json.loads(asked.results.read_text()) if asked.results and asked.results.exists() else {}

    def save() -> None:
        if asked.results:
            asked.results.write_text(json.dumps(kept, indent=1))

    names = asked.only.split(",")
    if not asked.budgets:
        compared(names, asked.kinds.split(","), kept, save)
    for name in names if asked.budgets else ():
        for budget in map(float, asked.budgets.split(",")):
            row = in_own_process(name, "ours", budget)
            figures = "  ".join(f"{figure} {row[figure] / 1e6:7.2f} MB" for figure in FIGURES)
            print(f"{name:10} save_budget {budget:.2f}  {figures}  {row['seconds'] * 1e3:7.1f} ms", flush=True)


if __name__ == "__main__":
    main()
