"""The geometry of the page's charts: where dots, ticks and lines go; the template draws them as SVG.

All coordinates are SVG user units, y downwards.  Margins are on a logarithmic axis; 1 is the limit.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .rows import CaseRow
from .verdict_marks import columns_of, margin_text, mark_of, seriousness

LOWEST = 1e-3  # smaller margins are drawn at the left end of the axis
SPARK_WIDTH, SPARK_HEIGHT = 56, 16
_SPARK_DECADES = 3.0  # a sparkline shows 1e-3 to 1e3


@dataclass(frozen=True, slots=True)
class Spark:
    """The margins of the last runs as one small line; `points` is an SVG points list, `limit` the y of 1."""

    points: str
    last: tuple[float, float]
    limit: float
    label: str


@dataclass(frozen=True, slots=True)
class Dot:
    """One case in the margin chart."""

    x: float
    y: float
    tone: str
    title: str
    case_id: str


@dataclass(frozen=True, slots=True)
class Lane:
    """The cases of one backend: its name, base line and dots; the bitwise equal ones are a number."""

    name: str
    base: float
    dots: tuple[Dot, ...]
    equal: int


@dataclass(frozen=True, slots=True)
class MarginChart:
    """All lanes with the ticks of the shared axis (x, text); `limit`, `warn` and `equal` are the x of 1, 1/2 and 0."""

    width: float
    height: float
    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str], ...]
    limit: float
    warn: float
    equal: float


def spark_of(history: Sequence[tuple[str, str, float]]) -> Spark | None:
    """Return the sparkline of (run, outcome, margin), oldest first; None for fewer than two runs.

    None too when every run was bitwise equal: a flat line at the bottom tells nothing.
    """
    if len(history) < 2 or all(margin == 0.0 for _, _, margin in history):
        return None
    step = (SPARK_WIDTH - 6) / (len(history) - 1)
    spots = [(3 + step * index, _spark_y(margin)) for index, (_, _, margin) in enumerate(history)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in spots)
    margins = ", ".join(margin_text(margin) or "0" for _, _, margin in history)
    return Spark(points, spots[-1], _spark_y(1.0), f"margins of the last {len(history)} runs: {margins}")


def margin_chart(cases: Iterable[CaseRow], *, width: float = 960.0) -> MarginChart | None:
    """Return the margins of all judged cases, one lane a backend; None when nothing was judged."""
    judged = [case for case in cases if case.judged_calls or case.margin != 0.0]
    if not judged:
        return None
    axis = _Axis.over([case.margin for case in judged], width)
    lanes: list[Lane] = []
    top = 8.0
    for column in columns_of(judged):
        lane = _lane(column, [case for case in judged if case.column == column], axis, top)
        lanes.append(lane)
        top = lane.base + 14
    return MarginChart(width, top + 28, tuple(lanes), axis.ticks(), axis.x(1.0), axis.x(0.5), axis.x(0.0))


@dataclass(frozen=True, slots=True)
class _Axis:
    """A log axis with a place for 0 at its left and for inf and nan at its right."""

    left: float
    right: float
    high: float

    @classmethod
    def over(cls, margins: Sequence[float], width: float) -> "_Axis":
        finite = [m for m in margins if math.isfinite(m)]
        decades = math.ceil(math.log10(max([10.0, *finite])))
        return cls(left=230.0, right=width - 84, high=10.0 ** min(decades, 12))

    def x(self, margin: float) -> float:
        if not math.isfinite(margin):
            return self.right + 54
        if margin <= 0:
            return self.left - 54
        clamped = min(max(margin, LOWEST), self.high)
        share = math.log10(clamped / LOWEST) / math.log10(self.high / LOWEST)
        return self.left + share * (self.right - self.left)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        decades = range(round(math.log10(LOWEST)), round(math.log10(self.high)) + 1)
        step = max(1, len(decades) // 8)
        marked = [decade for decade in decades if decade % step == 0]
        inner = tuple((self.x(10.0**decade), f"{10.0**decade:g}") for decade in marked)
        return ((self.x(0.0), "equal"), *inner, (self.x(math.inf), "inf, nan"))


_DOT = 7.0  # one dot with the space around it
_MOST_HIGH = 140.0


def _lane(name: str, cases: Sequence[CaseRow], axis: _Axis, top: float) -> Lane:
    stacks: dict[int, list[CaseRow]] = {}
    shown = [case for case in cases if case.margin != 0.0 or mark_of(case).tone != "good"]
    for case in sorted(shown, key=lambda case: (seriousness(case), case.test)):
        stacks.setdefault(round(axis.x(case.margin) / _DOT), []).append(case)
    tallest = max(map(len, stacks.values()), default=0)
    step = min(_DOT, _MOST_HIGH / max(tallest, 1))
    base = top + max(22.0, tallest * step + 4)
    dots = [
        Dot(place * _DOT, base - 4 - step * level, mark_of(case).tone, _title(case), case.case_id)
        for place, stack in sorted(stacks.items())
        for level, case in enumerate(stack)
    ]
    return Lane(name, base, tuple(dots), len(cases) - len(shown))


def _title(case: CaseRow) -> str:
    return f"{mark_of(case).word} {case.test} [{case.column}], margin {margin_text(case.margin) or '0'}"


def _spark_y(margin: float) -> float:
    if math.isnan(margin):
        margin = math.inf
    decades = math.log10(margin) if 0 < margin < math.inf else math.copysign(_SPARK_DECADES, margin - 1)
    clamped = min(max(decades, -_SPARK_DECADES), _SPARK_DECADES)
    middle = SPARK_HEIGHT / 2
    return middle - clamped / _SPARK_DECADES * (middle - 2)
