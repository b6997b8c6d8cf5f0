"""The section at the end of a run: one small table, the failures by stage, warnings."""

from collections import Counter
from collections.abc import Sequence

from tabulate import tabulate

from plumbline.oracle.verdict import VerdictKind
from plumbline.reports.rows import CaseRow

Line = tuple[str, dict[str, bool]]
SHOWN = 20  # cases listed per kind

_ADVICE = {
    VerdictKind.UNSTABLE.value: "rounding alone decides many positions; the verdict says little",
    VerdictKind.DESIGN.value: "the program asks whether it is compiled; right with that answer",
    VerdictKind.JUDGE_FAILED.value: "an error inside the judge; the calls ran compiled, unjudged",
    VerdictKind.NO_REFERENCE.value: "judged by what there is",
    VerdictKind.SENSITIVE.value: "the test's own tolerance is tighter than the program's rounding noise",
}


def summary_lines(cases: Sequence[CaseRow], *, require: float | None) -> list[Line]:
    """Return the section as (line, terminal markup) pairs; empty without a judged test."""
    if not cases:
        return []
    lines: list[Line] = [(line, {}) for line in _table(cases).splitlines()]
    failed = [case for case in cases if case.verdict and VerdictKind(case.verdict).fails and case.outcome == "failed"]
    lines += _listed("failed by the judge", failed, {"red": True})
    for kind, advice in _ADVICE.items():
        lines += _listed(f"{kind} ({advice})", [case for case in cases if case.verdict == kind], {"yellow": True})
    return lines + _vacuous(cases, require)


def _table(cases: Sequence[CaseRow]) -> str:
    columns = list(dict.fromkeys(case.column for case in cases))
    counts = Counter((case.column, _word(case)) for case in cases)
    words = [kind.value for kind in VerdictKind] + ["not judged", "skipped", "xfailed", "xpassed", "error"]
    present = [word for word in words if any(counts[column, word] for column in columns)]
    rows = [[column, *(counts[column, word] or "" for word in present)] for column in columns]
    return tabulate(rows, headers=["", *present], tablefmt="simple")


def _word(case: CaseRow) -> str:
    """Return the heading under which a case counts."""
    if case.outcome in ("skipped", "xfailed", "xpassed", "error"):
        return case.outcome
    return case.verdict or "not judged"


def _listed(title: str, cases: Sequence[CaseRow], markup: dict[str, bool]) -> list[Line]:
    if not cases:
        return []
    lines: list[Line] = [("", {}), (f"{title}:", markup)]
    for case in cases[:SHOWN]:
        stage = f" (first wrong at {case.stage})" if case.stage and case.stage != case.backend else ""
        said = f"{case.where}: {case.sentence}" if case.where else case.sentence
        said = " ".join(said.split())
        tail = f" {said}" if said else ""
        lines.append((f"  {case.test} [{case.column}]{stage}{tail}", {}))
    if len(cases) > SHOWN:
        lines.append((f"  ... and {len(cases) - SHOWN} more", {}))
    return lines


def _vacuous(cases: Sequence[CaseRow], require: float | None) -> list[Line]:
    vacuous = [case for case in cases if case.verdict == VerdictKind.VACUOUS.value]
    counted = [case for case in cases if case.outcome not in ("skipped", "error")]
    lines: list[Line] = []
    if vacuous:
        tests = len({case.test for case in vacuous})
        where = f"{tests} test{'s' if tests != 1 else ''}"
        text = f"nothing was compiled in {where}: see --compile-boundary, --compile-target"
        lines += [("", {}), (text, {"yellow": True})]
    if require is not None and counted:
        share = sum(case.ops > 0 for case in counted) / len(counted)
        good = share >= require
        text = f"{share:.0%} of the tests compiled something, {require:.0%} are required"
        lines.append((text, {"green" if good else "red": True}))
    return lines
