"""The second half of the section at the end of a run: why graphs broke, what was nearest to failing, what took long."""

import math
import os
from collections import Counter
from collections.abc import Sequence

from plumbline.reports.rows import CaseRow

Line = tuple[str, dict[str, bool]]

BREAKS_SHOWN = 10
WORST_SHOWN = 5
SLOW_SECONDS = 1.0


def compile_lines(cases: Sequence[CaseRow]) -> list[Line]:
    """Return the lines on breaks, margins and compile times; empty where there is nothing to say."""
    return [*_breaks(cases), *_margins(cases), *_slowest(cases)]


def _breaks(cases: Sequence[CaseRow]) -> list[Line]:
    tests: Counter[str] = Counter()
    places: dict[str, Counter[str]] = {}
    for case in cases:
        reasons: dict[str, str] = {}
        for event in case.events:
            if event["kind"] in ("graph_break", "ran_eagerly", "internal_error"):
                reason = str(event["reason"]).partition("\n")[0]
                reasons[reason] = str(event.get("where") or "")
        tests.update(list(reasons))
        for reason, place in reasons.items():
            places.setdefault(reason, Counter()).update([place] if place else [])
    if not tests:
        return []
    lines: list[Line] = [("", {}), ("most frequent graph breaks:", {})]
    for reason, count in tests.most_common(BREAKS_SHOWN):
        where = places[reason].most_common(1)
        at = f" ({_shown(where[0][0])})" if where else ""
        lines.append((f"  {count:>4} x {reason[:160]}{at}", {}))
    return lines


def _margins(cases: Sequence[CaseRow]) -> list[Line]:
    passed = [c for c in cases if c.outcome == "passed" and math.isfinite(c.margin) and c.margin > 0]
    worst = sorted(passed, key=lambda case: -case.margin)[:WORST_SHOWN]
    if not worst:
        return []
    lines: list[Line] = [("", {}), ("nearest to the limit of noise, which is 1:", {})]
    return lines + [(f"  {case.margin:.2f}  {case.test} [{case.column}] {case.where}", {}) for case in worst]


def _slowest(cases: Sequence[CaseRow]) -> list[Line]:
    slow = sorted((case for case in cases if case.compile_seconds >= SLOW_SECONDS), key=lambda c: -c.compile_seconds)
    if not slow:
        return []
    lines: list[Line] = [("", {}), ("slowest compiles:", {})]
    return lines + [(f"  {case.compile_seconds:.1f} s  {case.test} [{case.column}]", {}) for case in slow[:WORST_SHOWN]]


def _shown(place: str) -> str:
    path, _, line = place.rpartition(":")
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive on Windows
        return place
    return place if relative.startswith("..") else f"{relative}:{line}"
