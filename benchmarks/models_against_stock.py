"""Run time of compiled models beside stock torch.compile and eager, in one process, one thread.

    python benchmarks/models_against_stock.py [--training] [--only bert,unet] [--results FILE] [--seconds 3]

Counted: processor time of one call (with --training: of the forward, a loss and the backward), compiling left out.
The three take turns, and each sample is long enough for the clock.  Printed: medians, ratios of medians with an
interval of 90 % by resampling, and the geometric mean over all models.  --results: a JSON file; models that it holds
are not measured again, unless --only names them, so that a run may be made in pieces.  Stock compiles for 10 to 40
seconds a model.  The answers of both compilers are compared with eager's, and each one's error with what eager gives
in float64: `error` is the mean, over the answer and all gradients, of the greatest error in units of the greatest
value, ours divided by stock's and by eager's.
"""

import argparse
import copy
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from timed_models import INFERENCE, TRAINING, Builder

import plumbline

Call = Callable[[], object]
SAMPLE = 0.004  # seconds: the clock's steps are far shorter
RESAMPLED = 1000


def calls_of(
    build: Builder, *, training: bool, kinds: tuple[str, ...]
) -> tuple[dict[str, Call], float, dict[str, float]]:
    """Return one call for each of eager, ours and stock, the greatest distance of an answer, and the errors."""
    torch.manual_seed(0)
    model, inputs = build()
    model.train(training)
    exact = _exact_answers(model, inputs, training=training)
    torch.compiler.reset()
    compiled: dict[str, Callable[..., torch.Tensor]] = {
        "eager": model,
        "ours": plumbline.compile(model),
        "stock": torch.compile(model),
    }
    calls: dict[str, Call] = {}
    answers: dict[str, list[torch.Tensor]] = {}
    for kind in kinds:
        step = _step(compiled[kind], model, inputs, training=training)
        step()
        calls[kind], answers[kind] = step, [each.clone() for each in step()]
    errors = {kind: _error(found, exact) for kind, found in answers.items()}
    return calls, max(_distance(answers[kind], answers["eager"]) for kind in kinds), errors


def _step(
    run: Callable[..., torch.Tensor], model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], *, training: bool
) -> Callable[[], list[torch.Tensor]]:
    """Return one call, which gives the answer and the gradients of the parameters of the model."""

    def step() -> list[torch.Tensor]:
        if not training:
            with torch.no_grad():
                return [run(*inputs)]
        for parameter in model.parameters():
            parameter.grad = None
        result = run(*inputs)
        result.square().mean().backward()
        return [result.detach(), *(p.grad for p in model.parameters() if p.grad is not None)]

    return step


def _exact_answers(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], *, training: bool) -> list[torch.Tensor]:
    """Return what eager gives in float64."""
    double = copy.deepcopy(model).double()
    exact = tuple(each.double() if each.is_floating_point() else each for each in inputs)
    return [each.clone() for each in _step(double, double, exact, training=training)()]


def _error(found: list[torch.Tensor], exact: list[torch.Tensor]) -> float:
    """Return the mean over tensors of the greatest error in units of the greatest value."""
    pairs = zip(found, exact, strict=True)
    return statistics.mean(float((a.double() - b).abs().max() / b.abs().max().clamp(min=1e-30)) for a, b in pairs)


def _distance(found: list[torch.Tensor], expected: list[torch.Tensor]) -> float:
    """Return the greatest difference in units of the greatest value of each tensor."""
    pairs = zip(found, expected, strict=True)
    return max(float((a - b).abs().max() / b.abs().max().clamp(min=1e-6)) for a, b in pairs)


def samples_of(calls: dict[str, Call], seconds: float) -> dict[str, list[float]]:
    """Return microseconds a call, measured in turns until every one had about this long."""
    repeats = {}
    for kind, call in calls.items():
        start, count = time.process_time(), 0
        while time.process_time() - start < 0.1 or count < 3:
            call()
            count += 1
        repeats[kind] = max(1, math.ceil(SAMPLE * count / (time.process_time() - start)))
    found: dict[str, list[float]] = {kind: [] for kind in calls}
    spent = dict.fromkeys(calls, 0.0)
    kinds = list(calls)
    while min(spent.values()) < seconds:
        random.shuffle(kinds)
        for kind in kinds:
            start = time.process_time()
            for _ in range(repeats[kind]):
                calls[kind]()
            taken = time.process_time() - start
            spent[kind] += taken
            found[kind].append(taken / repeats[kind] * 1e6)
    return found


def ratio(ours: list[float], other: list[float]) -> tuple[float, float, float]:
    """Return the ratio of medians with the ends of its interval."""
    draw = random.Random(0)
    spread = sorted(
        statistics.median(draw.choices(ours, k=len(ours))) / statistics.median(draw.choices(other, k=len(other)))
        for _ in range(RESAMPLED)
    )
    middle = statistics.median(ours) / statistics.median(other)
    return middle, spread[RESAMPLED // 20], spread[-RESAMPLED // 20]


def measured(build: Builder, *, training: bool, seconds: float, kinds: tuple[str, ...]) -> dict[str, object]:
    """Return what the results file holds of one model."""
    calls, distance, errors = calls_of(build, training=training, kinds=kinds)
    found = samples_of(calls, seconds)
    row: dict[str, object] = {kind: statistics.median(values) for kind, values in found.items()}
    row["distance"] = distance
    for other in kinds:
        if other != "ours":
            row[f"ours/{other}"] = ratio(found["ours"], found[other])
            row[f"error ours/{other}"] = (errors["ours"] or 1e-30) / (errors[other] or 1e-30)
    return row


def shown(name: str, row: dict[str, object]) -> str:
    """Return the line of one model."""
    words = [f"{name:12}"]
    words += [f"{kind} {row[kind]:8.0f} us" for kind in ("eager", "stock", "ours") if kind in row]
    for other in ("stock", "eager"):
        value = row.get(f"ours/{other}")
        if isinstance(value, list | tuple):
            words.append(f"ours/{other} {value[0]:.2f} [{value[1]:.2f}, {value[2]:.2f}]")
        if f"error ours/{other}" in row:
            words.append(f"error {row[f'error ours/{other}']:.2f}")
    return "  ".join([*words, f"distance {row['distance']:.0e}"])


def main() -> None:
    """Measure what is asked for, and print one line a model and the geometric means."""
    parser = argparse.ArgumentParser(description="run time of compiled models beside stock")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--without-stock", action="store_true", help="eager and ours only, which compiles quickly")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    builders = TRAINING if arguments.training else INFERENCE
    only = [name for name in arguments.only.split(",") if name]
    kinds = ("eager", "ours") if arguments.without_stock else ("eager", "ours", "stock")
    part = "training" if arguments.training else "inference"
    kept = json.loads(arguments.results.read_text()) if arguments.results and arguments.results.exists() else {}
    rows: dict[str, dict[str, object]] = kept.setdefault(part, {})
    for name, build in builders.items():
        if (only and name not in only) or (not only and name in rows):
            continue
        rows[name] = measured(build, training=arguments.training, seconds=arguments.seconds, kinds=kinds)
        if arguments.results:
            arguments.results.write_text(json.dumps(kept, indent=1))
        print(shown(name, rows[name]), flush=True)
    if not only:
        print(f"\n{part}, all models measured so far")
        for name, row in sorted(rows.items()):
            print(shown(name, row))
    for other in ("stock", "eager"):
        errors = [value for row in rows.values() if isinstance(value := row.get(f"error ours/{other}"), float)]
        if errors:
            mean, most = statistics.geometric_mean(errors), max(errors)
            print(f"error ours/{other}, {len(errors)} models: geometric mean {mean:.2f}, most {most:.2f}")
        found = [value[0] for row in rows.values() if isinstance(value := row.get(f"ours/{other}"), list | tuple)]
        if found:
            print(f"geometric mean of ours/{other}, {len(found)} models: {statistics.geometric_mean(found):.2f}")


if __name__ == "__main__":
    sys.exit(main())
