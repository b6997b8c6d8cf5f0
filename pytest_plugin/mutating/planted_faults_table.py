"""What tests made of planted faults, as a table, with the faults and the tests that stand out."""

from collections.abc import Sequence
from dataclasses import dataclass

from tabulate import tabulate

Line = tuple[str, dict[str, bool]]
SHOWN = 3  # tests that are named in one place


@dataclass(frozen=True, slots=True)
class PlantedTrial:
    """One test run with one fault in place.

    test, column: the test's own id, and compiler:backend.  fault, sentence: of the fault.  effect: it changed
    something in this test.  noticed: the test failed.
    """

    test: str
    column: str
    fault: str
    sentence: str
    effect: bool
    noticed: bool


def score(trials: Sequence[PlantedTrial]) -> tuple[int, int]:
    """Return how many faults some test noticed, of how many that changed anything."""
    with_effect = {trial.fault for trial in trials if trial.effect}
    return len(with_effect & {trial.fault for trial in trials if trial.effect and trial.noticed}), len(with_effect)


def table_lines(trials: Sequence[PlantedTrial]) -> list[Line]:
    """Return the section as (line, terminal markup) pairs: each fault, the score, what nobody noticed, idle tests."""
    if not trials:
        return [("no fault was planted: no test that passes runs compiled code", {"yellow": True})]
    counted = [trial for trial in trials if trial.effect]
    with_effect = dict.fromkeys(trial.fault for trial in counted)
    without = [fault for fault in dict.fromkeys(trial.fault for trial in trials) if fault not in with_effect]
    rows = []
    for fault in with_effect:
        of_fault = [trial for trial in counted if trial.fault == fault]
        rows.append([fault, len(of_fault), sum(trial.noticed for trial in of_fault)])
    table = tabulate(rows, headers=["planted fault", "tests with it", "that noticed"], tablefmt="simple")
    lines: list[Line] = [(line, {}) for line in table.splitlines()]
    noticed, planted = score(trials)
    pairs = sum(trial.noticed for trial in counted)
    good = {"green" if noticed == planted else "yellow": True}
    lines += [("", {}), (f"mutation score: {noticed} of {planted} faults were noticed by some test", good)]
    lines.append((f"{pairs} of {len(counted)} runs with a fault failed; the judge is off in these runs", {}))
    if without:
        lines.append((f"{len(without)} faults changed nothing in these tests: {', '.join(without)}", {}))
    return [*lines, *_unnoticed(counted), *_idle(counted)]


def _unnoticed(trials: Sequence[PlantedTrial]) -> list[Line]:
    lines: list[Line] = []
    for fault in dict.fromkeys(trial.fault for trial in trials):
        of_fault = [trial for trial in trials if trial.fault == fault]
        if any(trial.noticed for trial in of_fault):
            continue
        lines.append((f"  {fault}: the compiled code {of_fault[0].sentence}", {}))
        lines.append((f"    in {_names(of_fault)}", {}))
    return [("", {}), ("noticed by no test:", {"yellow": True}), *lines] if lines else []


def _idle(trials: Sequence[PlantedTrial]) -> list[Line]:
    tests = dict.fromkeys(trial.test for trial in trials)
    idle = [test for test in tests if not any(trial.noticed for trial in trials if trial.test == test)]
    if not idle:
        return []
    more = [f"  and {len(idle) - SHOWN} more"] if len(idle) > SHOWN else []
    named = [f"  {test}" for test in idle[:SHOWN]] + more
    return [("", {}), ("tests that noticed no fault:", {"yellow": True}), *((line, {}) for line in named)]


def _names(trials: Sequence[PlantedTrial]) -> str:
    tests = list(dict.fromkeys(trial.test for trial in trials))
    more = f" and {len(tests) - SHOWN} more" if len(tests) > SHOWN else ""
    return ", ".join(tests[:SHOWN]) + more
