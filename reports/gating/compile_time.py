"""Compile time, gated as a ratio to the other compiler of the same night: a slow machine slows both.

A CUSUM over the logarithm of the ratio says that it rose, a split of the last nights says when.  The level it is held
against is kept from before the suspected change, so that a change cannot hide in its own reference.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from .thresholds import Thresholds

_MAD_TO_SIGMA = 1.4826


@dataclass(frozen=True, slots=True)
class RatioPoint:
    """One night of one column.

    run: its number.  ratio: compile CPU seconds over the other compiler's, same tests, cold caches.
    era: what the ratio depends on besides the column (torch's version, the machine): a new one starts anew.
    """

    run: int
    ratio: float
    era: str = ""


@dataclass(frozen=True, slots=True)
class CompileTimeAlarm:
    """Compile time is worse: by which factor over its level, and since which run."""

    factor: float
    since: int


def compile_time_alarm(points: Sequence[RatioPoint], limits: Thresholds) -> CompileTimeAlarm | None:
    """Return the alarm that holds at the last point, None when all is well or too little is known.

    points: all cold nights of a column, oldest first; only those of the last era count.
    """
    era = [point for point in points if point.era == points[-1].era] if points else []
    recent = era[-(limits.compile_time_reference + limits.compile_time_split_window) :]
    level: list[float] = []
    waiting: list[float] = []
    total, alarmed = 0.0, False
    logs = [math.log(point.ratio) for point in recent]
    centre = 0.0
    for place, value in enumerate(logs):
        if len(level) < limits.compile_time_least_nights:
            level.append(value)
            continue
        window = level[-limits.compile_time_reference :]
        centre = median(window)
        spread = _MAD_TO_SIGMA * median(abs(each - centre) for each in window)
        sigma = max(spread, limits.compile_time_least_sigma)
        total = max(0.0, total + (value - centre) / sigma - limits.compile_time_slack)
        total = min(total, 2 * limits.compile_time_alarm)  # so that it is over soon after a repair
        waiting.append(value)
        if total == 0.0:
            level += waiting
            waiting = []
        last = logs[max(0, place + 1 - limits.compile_time_confirmed_by) : place + 1]
        risen = median(last) - centre > math.log1p(limits.compile_time_worse)
        alarmed = total >= limits.compile_time_alarm and risen
    if not alarmed:
        return None
    since = split_of(logs[-limits.compile_time_split_window :], limits)
    window_start = max(0, len(recent) - limits.compile_time_split_window)
    first = window_start + since if since is not None else len(recent) - max(1, len(waiting))
    factor = math.exp(median(logs[first:]) - centre)
    return CompileTimeAlarm(factor, recent[first].run)


def split_of(values: Sequence[float], limits: Thresholds) -> int | None:
    """Return where a series splits best into a lower and a higher part, None when no split is beyond chance."""
    count = len(values)
    best, place = limits.compile_time_split_t, None
    total, squares = sum(values), sum(value * value for value in values)
    before = before_squares = 0.0
    for index in range(1, count):
        before += values[index - 1]
        before_squares += values[index - 1] ** 2
        if index < 3 or count - index < 2:
            continue
        low, high = before / index, (total - before) / (count - index)
        inside = before_squares - index * low**2 + (squares - before_squares) - (count - index) * high**2
        variance = max(inside / (count - 2), limits.compile_time_least_sigma**2 / 4)
        t = (high - low) / math.sqrt(variance * (1 / index + 1 / (count - index)))
        if t > best and high - low > math.log1p(limits.compile_time_worse):
            best, place = t, index
    return place
