"""The numbers of thresholds.toml as one frozen object."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Threshold:
    """One number the gate decides by: its value, its unit, and why it is that number."""

    name: str
    value: float
    unit: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Every number the gate decides by; named as in thresholds.toml, where units and reasons are."""

    retry_times: int
    retry_together_above: int
    retry_most: int
    fault_red_at_once: int
    flaky_clean_to_leave: int
    flaky_nights_to_fail: int
    flaky_share_allowed: float
    flaky_least_allowed: int
    flaky_quarantine: int
    intermittent_failures: int
    intermittent_window: int
    intermittent_clean_to_leave: int
    void_crashing: float
    void_failing: float
    void_least: int
    margin_near_limit: float
    margin_rises: int
    margin_rises_within: int
    counts_operations_lost: float
    counts_shown_missing: int
    compile_time_least_nights: int
    compile_time_reference: int
    compile_time_least_sigma: float
    compile_time_slack: float
    compile_time_alarm: float
    compile_time_confirmed_by: int
    compile_time_worse: float
    compile_time_split_window: int
    compile_time_split_t: float
    memory_least_sigma: float
    memory_worse: float


@cache
def threshold_table() -> tuple[Threshold, ...]:
    """Return every threshold with its unit and reason, in the order of the file."""
    text = resources.files("plumbline.reports.gating").joinpath("thresholds.toml").read_text(encoding="utf-8")
    return tuple(
        Threshold(f"{section}_{name}", entry["value"], entry["unit"], entry["why"])
        for section, entries in tomllib.loads(text).items()
        for name, entry in entries.items()
    )


@cache
def default_thresholds() -> Thresholds:
    """Return the thresholds of the file."""
    values: dict[str, object] = {each.name: each.value for each in threshold_table()}
    return Thresholds(**values)  # type: ignore[arg-type]  # a test holds the file to the types of the fields
