"""Capture every Hugging Face family that can be made small, and print graphs, breaks and reasons beside stock's.

Usage: python benchmarks/hugging_face_survey.py [--seconds N] [--head NAME] [--train] [family ...]

Every family of the installed transformers (or those named) is made from its default configuration by
`hugging_face_tiny`, run in eager, under plumbline and under stock torch.compile (backend "eager" for both), each on a
fresh model with the same weights and the same generator. A family has a process of its own, so that one that dies or
hangs ends itself only. --head takes classes by the end of their name (ForCausalLM); --train compares gradients, with
dropout; --seconds starts no further family after that time, and --after NAME goes on where a slice ended.

Columns: plumbline's answer against eager's; graphs, breaks and functions left to eager; compilations at a second,
equal call; the same for stock; CPU seconds of the first calls. Below a family: where capture stopped, and why.
"""

import argparse
import json
import os
import re
import resource
import signal
import statistics
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch._dynamo as dynamo
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

from plumbline.compiler.base.events import Broke, Captured, CompilerFailed, RanEagerly, Recompiled, recording

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from hugging_face_tiny import NO_CLASS, NO_FORWARD, Case, cases

from support.programs import compiled

Row = dict[str, Any]
MEMORY = 10 << 30
PARENTS = ("bert", "clip", "llama", "swin", "whisper")
PATIENCE = 75  # seconds for one family


def leaves(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    """Return the tensors and plain values of an output, caches included."""
    seen = set() if seen is None else seen
    if isinstance(value, torch.Tensor | bool | int | float | str):
        yield value
    elif isinstance(value, tuple) or id(value) not in seen:
        seen.add(id(value))
        if isinstance(value, dict):
            value = list(value.values())
        elif hasattr(value, "__dict__") and not isinstance(value, type | torch.nn.Module) and not callable(value):
            value = list(vars(value).values())
        for inner in value if isinstance(value, list | tuple) else ():
            yield from leaves(inner, seen)


def alike(expected: list[Any], actual: list[Any]) -> str:
    """Return "equal", or where the first difference lies."""
    if len(expected) != len(actual):
        return f"NOT EQUAL: {len(actual)} values for {len(expected)}"
    for position, (one, other) in enumerate(zip(expected, actual, strict=True)):
        if type(one) is not type(other) or (not isinstance(one, torch.Tensor) and one != other and one == one):
            return f"NOT EQUAL at {position}: {str(one)[:40]}, {str(other)[:40]}"
        if not isinstance(one, torch.Tensor):
            continue
        if one.shape != other.shape or one.dtype != other.dtype or one.stride() != other.stride():
            return f"NOT EQUAL at {position}: {one.dtype}{tuple(one.shape)}, {other.dtype}{tuple(other.shape)}"
        if not torch.allclose(one, other, rtol=0, atol=0, equal_nan=True):
            return f"NOT EQUAL at {position}: by {(one - other).abs().max().item():.1e}"
    return "equal"


def call(case: Case, run: Callable[..., Any], model: torch.nn.Module, train: bool) -> tuple[list[Any], float]:
    """Return everything that a seeded call gives (with --train, gradients too) and its CPU seconds."""
    model.zero_grad()
    inputs = case.inputs()
    torch.manual_seed(0)
    start = time.process_time()
    output = run(**inputs)
    seconds = time.process_time() - start
    found = list(leaves(output))
    if train:
        losses = [leaf.float().mean() for leaf in found if isinstance(leaf, torch.Tensor) and leaf.requires_grad]
        torch.stack(losses).sum().backward()
        found += [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in found], seconds


def ours(case: Case, expected: list[list[Any]], train: bool) -> tuple[Row, list[Any]]:
    """Return what plumbline does with the case, and its answer."""
    model = case.make().train(train)
    run = compiled(model, strict=False, recompile_limit=64)
    row: Row = {}
    with recording() as events:
        try:
            actual, row["seconds"] = call(case, run, model, train)
            row["equal"] = alike(expected[0], actual)
        except Exception as error:
            row["equal"] = f"RAISED {type(error).__name__}: {str(error)[:200]}"
            row["traceback"] = traceback.format_exc()[-1500:]
            return row | {"graphs": 0, "breaks": 0, "eager": 0, "again": 0, "stops": [], "failed": []}, []
    for column, kind in (("graphs", Captured), ("breaks", Broke), ("eager", RanEagerly)):
        row[column] = sum(isinstance(event, kind) for event in events)
    stops = [event for event in events if isinstance(event, Broke | RanEagerly)]
    found = [e for e in stops if e.reason != "callee-breaks"] or stops
    row["stops"] = [f"{e.reason}: {e.what[:110]} ({_place(e)})" for e in found]
    with recording() as later:
        second, _ = call(case, run, model, train)
    if row["equal"] == "equal":
        row["equal"] = alike(expected[1], second).replace("NOT EQUAL", "NOT EQUAL second call")
    row["again"] = sum(isinstance(event, Captured | RanEagerly) for event in later)
    row["why again"] = [f"{e.guard}: {e.actual}"[:150] for e in later if isinstance(e, Recompiled)]
    failures = [event for event in [*events, *later] if isinstance(event, CompilerFailed)]
    row["failed"] = [f"{failure.stage} {failure.function}: {failure.error[:200]}" for failure in failures]
    row["traceback"] = failures[0].traceback[-1500:] if failures else ""
    return row, actual


def _place(event: Broke | RanEagerly) -> str:
    return "/".join(event.origin.place().split("/")[-2:]) if event.origin else ""


def stock(case: Case, answers: dict[str, list[Any]], train: bool) -> Row:
    """Return what stock torch.compile does with the case; answers: eager's and ours, to hold its own against."""
    dynamo.reset()
    dynamo.config.recompile_limit = 64
    counters = dynamo.utils.counters
    counters.clear()
    model = case.make().train(train)
    run = torch.compile(model, backend="eager")
    row: Row = {}
    try:
        actual, row["seconds"] = call(case, run, model, train)
        row |= {f"against {who}": alike(answer, actual) for who, answer in answers.items()}
        row["graphs"] = counters["stats"].get("unique_graphs", 0)
        row["breaks"] = sum(counters["graph_break"].values())
        row["reasons"] = [str(reason).split("\n")[0][:110] for reason in counters["graph_break"]][:3]
        call(case, run, model, train)
        row["again"] = counters["stats"].get("unique_graphs", 0) - row["graphs"]
    except Exception as error:
        row |= {"raised": f"{type(error).__name__}: {str(error).splitlines()[0][:100]}"}
    return row


def survey(name: str, head: str | None, train: bool) -> Row:
    """Return the row of one family: the first way of making it small that runs in eager."""
    reasons: list[str] = []
    make, model = None, torch.nn.Module()
    with torch.set_grad_enabled(train):
        for case in cases(name, head):
            if isinstance(case, str):
                reasons.append(case)
                continue
            try:
                if case.make is not make:  # the same model serves until a call has gone through
                    make, model = case.make, case.make().train(train)
                expected = [call(case, model, model, train)[0] for _ in range(2)]
            except Exception as error:
                reasons.append(f"{case.recipe} {','.join(case.inputs())}: {type(error).__name__}: {error}")
                continue
            row = {"model": case.name, "recipe": case.recipe, "inputs": list(case.inputs())}
            row["ours"], answer = ours(case, expected, train)
            row["stock"] = stock(case, {"eager": expected[0], "ours": answer}, train)
            return row
    return {"skipped": [reason.replace("\n", " ")[:150] for reason in reasons] or ["no such class"]}


def isolated(name: str, head: str | None, train: bool) -> Row:
    """Return the row of a family, from a child process that has PATIENCE seconds and MEMORY bytes."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(PATIENCE)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            row = survey(name, head, train)
        except BaseException as error:
            row = {"died": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()[-1500:]}
        with os.fdopen(write, "w") as pipe:
            json.dump(row, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else {"died": f"signal {os.WTERMSIG(status)}" if status else "no answer"}


def show(name: str, row: Row, verbose: bool) -> None:
    """Print one family."""
    if "ours" not in row:
        what = row.get("skipped") or [row.get("died")]
        print(f"{name:<24} {'skipped' if 'skipped' in row else 'DIED'}: {' | '.join(map(str, what))[:400]}", flush=True)
        return
    mine, theirs = row["ours"], row["stock"]
    peer = theirs.get("raised") or f"{theirs['graphs']}g {theirs['breaks']}b {theirs['again']}r"
    peer += "" if theirs.get("against eager", "equal") == "equal" else ", NOT EQUAL to eager"
    peer += ", equal to ours" if mine["equal"] != "equal" and theirs.get("against ours") == "equal" else ""
    times = f"{mine.get('seconds', 0):.2f}s/{theirs.get('seconds', 0):.2f}s"
    counts = f"{mine['graphs']}g {mine['breaks']}b {mine['eager']}e {mine['again']}r"
    print(f"{name:<24} {row['model']:<34} {mine['equal']}; {counts}; stock {peer}; {times}", flush=True)
    notes = [*mine["failed"], *mine.get("why again", [])[:2], *mine["stops"][: 30 if verbose else 4]]
    notes += [f"stock: {reason}" for reason in theirs.get("reasons", ())]
    if mine.get("traceback"):
        notes += mine["traceback"].splitlines()[-12:] if verbose or mine["failed"] else []
    for note in notes:
        print(f"    {note}", flush=True)


def reason(row: Row) -> str:
    """Return why a family has no row of its own, in few words."""
    if "died" in row:
        return "ended by its limits"
    reasons = row["skipped"]
    if all(NO_CLASS in reason for reason in reasons):
        return "no model: " + NO_CLASS
    if any(NO_FORWARD in reason for reason in reasons):
        return "no model: it " + NO_FORWARD
    if all(re.search("ImportError|ModuleNotFoundError", reason) for reason in reasons):
        return "needs a package that is not installed"
    return "too large" if all("M parameters" in reason for reason in reasons) else "no way to make or to call it found"


def worse(row: Row) -> bool:
    """Return whether plumbline makes more graphs, breaks or eager functions than stock."""
    mine, theirs = row["ours"], row["stock"]
    if "raised" in theirs:
        return False
    breaks = max(theirs["breaks"], theirs["graphs"] - 1)  # stock counts a break in a loop once
    return bool(mine["graphs"] > max(1, theirs["graphs"]) or mine["breaks"] + mine["eager"] > breaks)


def whole(row: Row, who: str) -> bool:
    """Return whether the family is one graph without a break."""
    return row[who].get("graphs") == 1 and not row[who]["breaks"] + row[who].get("eager", 0)


def summary(rows: dict[str, Row]) -> None:
    """Print what the run comes to."""
    ran = {name: row for name, row in rows.items() if "ours" in row}
    good = {n: r for n, r in ran.items() if r["ours"]["equal"] == "equal"}
    tally = Counter(
        {
            "families": len(rows),
            "ran": len(ran),
            "equal": len(good),
            "not equal, the same as stock": sum(
                row["stock"].get("against ours") == "equal" for name, row in ran.items() if name not in good
            ),
            "one graph, no break": sum(whole(row, "ours") for row in good.values()),
            "stock: one graph, no break": sum(whole(row, "stock") for row in ran.values()),
            "stock raises": sum("raised" in r["stock"] for r in ran.values()),
            "errors of ours": sum(bool(r["ours"]["failed"]) for r in ran.values()),
            "compiled again at an equal call": sum(r["ours"]["again"] > 0 for r in ran.values()),
            "stock does so": sum(r["stock"].get("again", 0) > 0 for r in ran.values()),
            "worse than stock": sum(map(worse, ran.values())),
            "died": sum("died" in row for row in rows.values()),
        }
    )
    print("\n" + "\n".join(f"{what:<34} {number}" for what, number in tally.items()))
    for why, number in Counter(reason(row) for row in rows.values() if "ours" not in row).most_common():
        print(f"not run, {why:<52} {number}")
    print("worse than stock:", " ".join(name for name, row in ran.items() if worse(row)))
    ratios = [r["ours"]["seconds"] / r["stock"]["seconds"] for r in good.values() if "raised" not in r["stock"]]
    if ratios:
        print(f"capture time over stock's, geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}")


def main() -> None:
    """Print a line for each family and a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--head")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--after")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--rows", help="keep the rows here, and take those that are there already")
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    for compiler in (compiled, lambda f: torch.compile(f, backend="eager")):
        compiler(lambda x: torch.relu(x) + 1)(torch.ones(2))
    for name in PARENTS:  # what nearly every family imports is imported once, not in each child
        next(cases(name))
    names = options.families or list(CONFIG_MAPPING_NAMES)
    names = names[names.index(options.after) + 1 :] if options.after else names
    kept = Path(options.rows) if options.rows else None
    rows: dict[str, Row] = json.loads(kept.read_text()) if kept and kept.exists() else {}
    end = time.monotonic() + options.seconds
    for name in names[:: options.every]:
        if time.monotonic() > end:
            break
        if name not in rows:
            rows[name] = isolated(name, options.head, options.train)
            show(name, rows[name], options.verbose)
            if kept:
                kept.write_text(json.dumps(rows))
    summary(rows)


if __name__ == "__main__":
    main()
