"""Roll-ups of one run: what each column did, in one row and one strip."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..gating.case_memory import CLEARED, NOT_JUDGED, Seen
from ..gating.gate_findings import Case
from ..rows import CaseRow
from ..strips import ABSENT, byte_of_value, packed
from ..verdict_marks import mark_of
from .schema import COLUMN_MEASURES

_FLAKY_LETTER = ord("Y")


def column_values(cases: Sequence[CaseRow], seen: Mapping[Case, Seen], near_limit: float) -> dict[str, dict[str, Any]]:
    """Return column -> the values of its row in column_nights."""
    by_column: dict[str, list[CaseRow]] = {}
    for case in cases:
        by_column.setdefault(case.column, []).append(case)
    good_cpu = {
        (case.test, case.column): case.compile_cpu for case in cases if not case.failing and case.compile_cpu > 0
    }
    values = {}
    for column, mine in by_column.items():
        rows = dict.fromkeys(COLUMN_MEASURES, 0.0) | _counts(mine, seen, near_limit) | _sums(mine)
        rows["paired_cpu"], rows["other_cpu"] = _paired(mine[0], list(by_column), good_cpu)
        values[column] = rows
    return values


def _counts(mine: Sequence[CaseRow], seen: Mapping[Case, Seen], near_limit: float) -> dict[str, Any]:
    skipped = sum(seen[case.test, case.column].fate == NOT_JUDGED for case in mine)
    vacuous = sum(case.outcome == "vacuous" for case in mine)
    failing = sum(case.failing and case.outcome != "vacuous" for case in mine)
    counted = {name: sum(getattr(case, name) for case in mine) for name in ("graphs", "ops", "breaks", "recompiles")}
    return counted | {
        "cases": len(mine),
        "good": len(mine) - skipped - vacuous - failing,
        "weak": sum(not case.failing and mark_of(case).tone == "weak" for case in mine),
        "failing": failing,
        "vacuous": vacuous,
        "skipped": skipped,
        "near_limit": sum(not case.failing and case.margin > near_limit for case in mine),
    }


def _sums(mine: Sequence[CaseRow]) -> dict[str, Any]:
    names = ("compile_seconds", "compile_cpu", "eager_seconds", "compiled_seconds", "peak_bytes")
    finite = [case.margin for case in mine if not case.failing and math.isfinite(case.margin)]
    return {name: sum(getattr(case, name) for case in mine) for name in names} | {
        "worst_margin": max(finite, default=0.0)
    }


def _paired(one: CaseRow, columns: Sequence[str], good_cpu: Mapping[Case, float]) -> tuple[float, float]:
    others = [name for name in columns if name.endswith(f":{one.backend}") and name != one.column]
    if not others:
        return 0.0, 0.0
    pairs = [
        (cpu, good_cpu[test, others[0]])
        for (test, column), cpu in good_cpu.items()
        if column == one.column and (test, others[0]) in good_cpu
    ]
    return sum(mine for mine, _ in pairs), sum(theirs for _, theirs in pairs)


def strip_values(
    cases: Sequence[CaseRow], seen: Mapping[Case, Seen], tests: Mapping[str, int]
) -> dict[str, dict[str, bytes]]:
    """Return column -> its strips; tests: numbers of tests, which are positions from 1."""
    by_column: dict[str, list[tuple[int, CaseRow]]] = {}
    for case in cases:
        by_column.setdefault(case.column, []).append((tests[case.test], case))
    return {
        column: {
            "marks": packed(((number, _letter(case, seen)) for number, case in mine), absent=ABSENT),
            "margins": packed(((number, byte_of_value(case.margin)) for number, case in mine), absent=0),
            "seconds": packed(((number, byte_of_value(case.compile_seconds)) for number, case in mine), absent=0),
        }
        for column, mine in by_column.items()
    }


def _letter(case: CaseRow, seen: Mapping[Case, Seen]) -> int:
    if seen[case.test, case.column].fate == CLEARED:
        return _FLAKY_LETTER
    return ord(mark_of(case).letter)
