"""Failing cases that began together and fail alike are one fault; which part that changed is its suspect."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .gate_findings import Case

PLUMBLINE, TORCH, YOUR_CODE, MACHINE, UNKNOWN = "plumbline", "torch", "your code", "machine", "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKey:
    """What the cases of one fault share.

    columns: where the test fails.  mark, aspect, stage: how.  file: test file, only where every column fails, which
    eager is among: then the fault is in the user's code, and two files are two faults.
    """

    columns: tuple[str, ...]
    mark: str
    aspect: str
    stage: str
    file: str = ""


def fault_groups(causes: Mapping[Case, str], columns: Iterable[str]) -> dict[FaultKey, tuple[Case, ...]]:
    """Return the faults among new failures: causes says how each fails (`Seen.cause`), columns what the run has."""
    failing: dict[str, list[str]] = {}
    for test, column in sorted(causes):
        failing.setdefault(test, []).append(column)
    everywhere = tuple(sorted(columns))
    groups: dict[FaultKey, list[Case]] = {}
    for test, where in failing.items():
        # One test that fails in several columns is one fault, although verdicts may differ: the lightest backend's.
        mark, aspect, stage = (*causes[test, where[0]].split("|"), "", "", "")[:3]
        all_fail = tuple(where) == everywhere and len(everywhere) > 2
        file = test.split("::")[0] if all_fail else ""
        key = FaultKey(columns=tuple(where), mark=mark, aspect=aspect, stage=stage, file=file)
        groups.setdefault(key, []).extend((test, column) for column in where)
    return {key: tuple(cases) for key, cases in groups.items()}


@dataclass(frozen=True, slots=True)
class Suspect:
    """Who is suspected, and why in one sentence."""

    name: str
    why: str


def suspect_of(key: FaultKey, columns: Iterable[str], changed: Iterable[str]) -> Suspect:
    """Return the suspect of a fault: the pattern of columns, held against what changed since the night before."""
    compilers = sorted({column.split(":")[0] for column in key.columns})
    every = tuple(sorted(columns))
    there = sorted({column.split(":")[0] for column in every})
    new = tuple(changed)
    if not new:
        return Suspect(MACHINE, "nothing changed since the night before: the machine, or chance")
    if key.columns == every and len(every) > 2:
        return Suspect(YOUR_CODE, "it fails under every compiler and backend, so without compiling too")
    if compilers == [PLUMBLINE]:
        if PLUMBLINE in new:
            return Suspect(PLUMBLINE, "only plumbline fails, and plumbline changed")
        return _yours(new, "only plumbline fails, and it did not change")
    if compilers == [TORCH]:
        if TORCH in new:
            return Suspect(TORCH, "only torch fails, and torch changed")
        return _yours(new, "only torch fails, and it did not change")
    if compilers == there and len(there) > 1:
        if TORCH in new:
            return Suspect(TORCH, "both compilers fail where eager does not, and torch changed")
        return _yours(new, "both compilers fail where eager does not, and torch did not change")
    return Suspect(UNKNOWN, f"changed since the night before: {', '.join(new)}")


def _yours(new: tuple[str, ...], why: str) -> Suspect:
    if YOUR_CODE in new:
        return Suspect(YOUR_CODE, f"{why}; your code did")
    return Suspect(new[0] if len(new) == 1 else UNKNOWN, f"{why}; changed: {', '.join(new)}")
