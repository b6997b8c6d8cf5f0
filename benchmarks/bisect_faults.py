"""How often the bisector names the culprit: known faults, planted one at a time in random programs and real models.

Run `python benchmarks/bisect_faults.py [--sizes 20 60 180 700] [--only WORDS] [--models] [--seed 0]`.  Each fault of
`tests/support/bisect_plants.py` is planted in one program; the programs take the sizes in turn.  With `--models` some
faults are planted in Hugging Face models from tiny configurations instead.  A fault that does no harm to its program
is told and not counted.  The bar is 95 % named rightly: the kind of application, and the operator or pass in the
sentence.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import plumbline
from plumbline.minifier.bisect.bisected_cases import CallableCase
from plumbline.minifier.bisect.culprit import culprit_of
from support.bisect_plants import (
    answer,
    bypasses,
    graph_pass,
    is_wrong,
    merges,
    other_lowering,
    plants,
    surrounded,
    vector_constants,
)

aten = torch.ops.aten
BAR = 0.95


@dataclass(frozen=True, slots=True)
class Trial:
    """One fault in one program.  answer: of the compiled, or of the plain, program.  kind, word: what to name."""

    name: str
    size: str
    plant: Callable[[], AbstractContextManager[object]]
    answer: Callable[[bool], list[Any]]
    kind: str
    word: str


def program_trials(sizes: list[int], seed: int) -> Iterator[Trial]:
    """Yield a trial for each plant, in random programs of these sizes."""
    for number, plant in enumerate(plants()):
        size = sizes[number % len(sizes)]
        program = surrounded(plant.snippet, size, seed * 1000 + number)

        def run(compiled: bool, plant: Any = plant, program: Any = program) -> list[Any]:
            return answer(plant, plumbline.compile(program) if compiled else program)

        yield Trial(plant.name, str(size), plant.plant, run, plant.kind, plant.word)


MODEL_FAULTS: tuple[tuple[str, Callable[[], AbstractContextManager[object]], str, str], ...] = (
    ("bert", other_lowering(aten.gelu.default, aten.silu.default), "lowering", "aten.gelu.default"),
    ("gpt2", other_lowering(aten.tanh.default, aten.sin.default), "lowering", "aten.tanh.default"),
    ("llama", other_lowering(aten.silu.default, aten.gelu.default), "lowering", "aten.silu.default"),
    ("t5", other_lowering(aten.relu.default, aten.abs.default), "lowering", "aten.relu.default"),
    ("vit", graph_pass("drop_identities", bypasses(aten.gelu.default)), "pass", "drop_identities"),
    ("opt", graph_pass("drop_dead_nodes", bypasses(aten.relu.default)), "pass", "drop_dead_nodes"),
    ("mistral", graph_pass("share_common_nodes", merges(aten.mul.Tensor)), "pass", "share_common_nodes"),
    ("distilbert", vector_constants(lambda value: value * 1.5 if value == 0.5 else value), "vector", "lanes"),
)


def model_trials() -> Iterator[Trial]:
    """Yield a trial for each fault of a real model."""
    from support.hugging_face import FAMILIES  # transformers takes seconds to import

    for family, plant, kind, word in MODEL_FAULTS:
        model, inputs = FAMILIES[family].make(), FAMILIES[family].inputs()

        def run(compiled: bool, model: Any = model, inputs: Any = inputs) -> list[Any]:
            with torch.no_grad():
                return [(plumbline.compile(model) if compiled else model)(**inputs)[0]]

        yield Trial(f"{family}: {word}", "model", plant, run, kind, word)


def tried(trial: Trial) -> tuple[str, int, float, str]:
    """Return (ok, no, harmless or broken; queries; seconds; the sentence)."""
    expected = trial.answer(False)
    case = CallableCase(lambda: is_wrong(lambda: trial.answer(True), expected))
    if case.fails():
        return "broken", 0, 0.0, "it fails without the fault"
    start = time.process_time()
    with trial.plant():
        culprit = culprit_of(case)
    seconds = time.process_time() - start
    if culprit is None:
        return "harmless", 0, seconds, ""
    named = (
        culprit.application is not None and culprit.application.kind == trial.kind and trial.word in culprit.sentence
    )
    return ("ok" if named else "no"), culprit.queries, seconds, culprit.sentence


def main() -> int:
    """Try every fault and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[20, 60, 180, 700])
    arguments.add_argument("--only", default="", help="faults whose name holds these words")
    arguments.add_argument("--models", action="store_true", help="faults in real models")
    arguments.add_argument("--seed", type=int, default=0)
    chosen = arguments.parse_args()
    trials = model_trials() if chosen.models else program_trials(chosen.sizes, chosen.seed)
    results: list[tuple[str, int, float, str]] = []
    for trial in trials:
        if chosen.only in trial.name:
            results.append(tried(trial))
            mark, queries, seconds, sentence = results[-1]
            print(
                f"{mark:8} {trial.size:>5} {queries:4} queries {seconds:7.1f} s  {trial.name} | {sentence}", flush=True
            )
    counted = [result for result in results if result[0] in ("ok", "no")]
    right = sum(result[0] == "ok" for result in counted)
    if not counted:
        print("no fault was tried")
        return 2
    left = len(results) - len(counted)
    queries, seconds = [result[1] for result in counted], [result[2] for result in counted]
    print(
        f"{right} of {len(counted)} named rightly ({right / len(counted):.0%}), {left} not counted; "
        f"queries: median {statistics.median(queries):.0f}, most {max(queries)}; "
        f"CPU seconds: median {statistics.median(seconds):.1f}, most {max(seconds):.0f}"
    )
    return 0 if right / len(counted) >= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
