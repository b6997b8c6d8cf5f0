"""The one sentence of the first page: what is new, and who is suspected; certain only where it is certain."""

from collections import Counter
from collections.abc import Sequence

from ..history import Night
from .page_data import FaultShown

_SMALL = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")


def headline_of(night: Night, faults: Sequence[FaultShown]) -> str:
    """Return the headline of a night."""
    if night.run.void:
        return "A void night: so much broke at once that nothing can be said about single cases"
    new = [fault for fault in faults if fault.new]
    old = [fault for fault in faults if not fault.new]
    if new:
        return f"{_number(len(new))} new fault{_s(len(new))} last night: {_suspects(new)}"
    if night.verdict == "red" and old:
        return f"Nothing new last night, but {_number(len(old)).lower()} fault{_s(len(old))} still open"
    if night.verdict in ("red", "amber"):
        return night.sentence
    return "Everything that was judged holds"


def summary_of(night: Night) -> str:
    """Return the numbers of a night in one line."""
    run = night.run
    when = f"{run.utc[:10]}, {run.utc[11:16]} UTC" if len(run.utc) >= 16 else run.utc
    if run.void:
        return f"{when}: {run.void}. It teaches nothing about any case; the night before still stands."
    parts = [f"{night.good:,} hold"]
    parts += [
        f"{count} {word}" for count, word in ((night.vacuous, "compiled nothing"), (night.skipped, "skipped")) if count
    ]
    parts += [f"{night.missing} missing"] if night.missing else []
    return f"{when}, {night.cases:,} cases: {night.new} newly wrong, {night.still} still wrong, {', '.join(parts)}."


def _suspects(faults: Sequence[FaultShown]) -> str:
    tests: Counter[str] = Counter()
    for fault in faults:
        tests[fault.suspect] += len(fault.tests)
    known = [(name, count) for name, count in tests.items() if name not in ("unknown", "machine", "")]
    said = [f"{name} ({count} test{_s(count)})" for name, count in known]
    rest = sum(tests.values()) - sum(count for _, count in known)
    words = [f"suspect {' and '.join(said)}"] if said else []
    words += [f"no commit to suspect for {rest} test{_s(rest)}"] if rest else []
    return "; ".join(words)


def _number(count: int) -> str:
    return _SMALL[count] if count < len(_SMALL) else str(count)


def _s(count: int) -> str:
    return "" if count == 1 else "s"
