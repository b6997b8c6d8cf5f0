"""Faults, flaky cases, drifts and changed names of a window, as the page shows them; the gate has decided all of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from sqlalchemy import select

from ..gating.gate_findings import WARNING, GateFinding
from ..gating.thresholds import Thresholds
from ..history import CaseState, Night, NightlyFault, Rename, faults, states
from ..storage.database import Database
from ..storage.schema import COLUMNS, FAULT_CASES, RUNS
from .case_commands import repeating_command
from .commits import commits_between
from .packing import name_shown
from .page_data import CaseDetail, DriftShown, FaultShown, FlakyShown, NameChange
from .window import Window, marks_shown

MOST_FAULTS = 300
MOST_DRIFTS = 8
_IN_ONE_QUERY = 300


def shown_faults(
    store: Database, window: Window, details: Mapping[tuple[str, int], CaseDetail], root: Path | None
) -> tuple[FaultShown, ...]:
    """Return the faults that were open on the last night of the window, the new ones and the largest first."""
    last = window.nights[-1].number
    known = faults(store, window.stream, only_open=False, limit=MOST_FAULTS)
    chosen = [fault for fault in known if fault.first <= last and (not fault.fixed or fault.fixed > last)]
    cases = _cases_of(store, [fault.fault for fault in chosen])
    days = _days(store, [fault.first for fault in chosen])
    places = {number: place for place, number in enumerate(window.numbers)}
    shown = [
        _shown(fault, _failing_cases(cases.get(fault.fault, []), window, places), days, window, details, root)
        for fault in chosen
    ]
    found = [fault for fault in shown if fault.tests]
    return tuple(sorted(found, key=lambda fault: (not fault.new, -fault.since, -len(fault.tests), fault.key)))


def _cases_of(store: Database, numbers: Sequence[int]) -> dict[int, list[tuple[int, str]]]:
    """Return fault -> (test, column) of its cases."""
    found: dict[int, list[tuple[int, str]]] = {}
    with store.transaction() as connection:
        for start in range(0, len(numbers), _IN_ONE_QUERY):
            query = select(FAULT_CASES.c.fault, FAULT_CASES.c.test, COLUMNS.c.compiler, COLUMNS.c.backend).join(
                COLUMNS, COLUMNS.c.id == FAULT_CASES.c.col
            )
            wanted = query.where(FAULT_CASES.c.fault.in_(numbers[start : start + _IN_ONE_QUERY]))
            for row in connection.execute(wanted):
                found.setdefault(row.fault, []).append((row.test, f"{row.compiler}:{row.backend}"))
    return found


def _days(store: Database, runs: Sequence[int]) -> dict[int, str]:
    with store.transaction() as connection:
        rows = connection.execute(select(RUNS.c.id, RUNS.c.utc).where(RUNS.c.id.in_(sorted(set(runs))[:500])))
        return {row.id: row.utc[:10] for row in rows}


def _failing_cases(
    cases: Sequence[tuple[int, str]], window: Window, places: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Return the cases of a fault that fail on the last night, as positions of the page."""
    columns = {column: place for place, column in enumerate(window.columns)}
    known = [(places[test], columns[column]) for test, column in cases if test in places and column in columns]
    return [(test, column) for test, column in known if _fails(window, test, column)]


def _shown(
    fault: NightlyFault,
    failing: Sequence[tuple[int, int]],
    days: Mapping[int, str],
    window: Window,
    details: Mapping[tuple[str, int], CaseDetail],
    root: Path | None,
) -> FaultShown:
    columns = sorted({column for _, column in failing})
    tests = tuple(sorted({test for test, _ in failing}))
    since = window.position(fault.first)
    before = window.nights[since - 1] if since > 0 else None
    worst_test, worst_column = max(
        failing,
        key=lambda case: (int(window.margins[window.last, case[0], case[1]]), case[1], -case[0]),
        default=(0, 0),
    )
    whole = len(columns) == len(window.columns) > 2  # then eager, too: no compiler is needed to see it
    name = window.names[worst_test] if window.names else ""
    night = window.nights[since] if since >= 0 else window.nights[0]
    failing_columns = [window.columns[column] for column in columns]
    return FaultShown(
        key=str(fault.fault),
        new=since == window.last,
        since=since,
        since_date=days.get(fault.first, ""),
        nights=window.last - since + 1 if since >= 0 else len(window.nights),
        columns=tuple(columns),
        mark=next((place for place, mark in enumerate(marks_shown()) if mark.letter == fault.mark), 0),
        title=_title(fault.mark, fault.aspect, [window.names[test] for test in tests], failing_columns, whole=whole),
        tests=tests,
        suspect=fault.suspect,
        why=_sentence(fault.why),
        commits=commits_between(before, night, fault.suspect, root) if since > 0 else (),
        worst=details.get((name, worst_column)),
        command=repeating_command(name, failing_columns, whole=whole or fault.mark in _OF_THE_TEST),
        history=window.letters(worst_test, worst_column),
    )


_OF_THE_TEST = ("E", "F")  # marks: the test fails by itself
_VERBS = {
    "W": ("gives wrong", "give wrong"),
    "C": ("crashes", "crash"),
    "N": ("is not deterministic", "are not deterministic"),
    "S": ("has a tolerance tighter than rounding noise", "have tolerances tighter than rounding noise"),
    "V": ("compiles nothing", "compile nothing"),
}


def _title(mark: str, aspect: str, names: Sequence[str], columns: Sequence[str], *, whole: bool) -> str:
    """Return what is wrong, in how many tests and where."""
    files = sorted({name.split("::")[0].rsplit("/", 1)[-1] for name in names})
    place = f" in {files[0]}" if len(files) == 1 else f" in {len(files)} files" if files else ""
    one, more = _VERBS.get(mark, ("fails", "fail"))
    verb = one if len(names) == 1 else more
    what = f" {aspect or 'values'}" if mark == "W" else f" ({aspect})" if aspect and aspect != "exception" else ""
    where = "every compiler and backend" if whole else " and ".join(columns)
    return f"{len(names)} test{'' if len(names) == 1 else 's'}{place} {verb}{what} under {where}"


def _fails(window: Window, test: int, column: int) -> bool:
    mark = int(window.marks[window.last, test, column])
    return marks_shown()[mark].failing


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def flaky_cases(store: Database, window: Window, limits: Thresholds) -> tuple[FlakyShown, ...]:
    """Return the flaky and intermittent cases, the ones that failed last night and the most frequent first."""
    known = states(store, window.stream, wanted=("flaky", "intermittent"), limit=2_000)
    days = _days(store, [state.since for state in known])
    places = {number: place for place, number in enumerate(window.numbers)}
    shown = [
        _flaky(state, window, places[state.test], days.get(state.since, ""), limits)
        for state in known
        if state.test in places and state.column in window.columns and state.since <= window.nights[-1].number
    ]
    return tuple(sorted(shown, key=lambda each: (not each.failing, -each.rate, each.test, each.column)))


def _flaky(state: CaseState, window: Window, test: int, since: str, limits: Thresholds) -> FlakyShown:
    column = window.columns.index(state.column)
    letters = window.letters(test, column)
    marks = {mark.letter: mark for mark in marks_shown()}
    judged = [
        letter for letter, night in zip(letters, window.nights, strict=True) if letter.strip() and not night.run.void
    ]
    failed = [letter for letter in judged if letter == "Y" or marks[letter].failing]
    leaving = limits.flaky_clean_to_leave if state.state == "flaky" else limits.intermittent_clean_to_leave
    left = max(0, leaving - state.clean)
    counted = state.state != "flaky"
    return FlakyShown(
        test=window.names[test],
        column=column,
        mark=int(window.marks[window.last, test, column]),
        failing=bool(letters) and (letters[-1] == "Y" or marks[letters[-1]].failing),
        counted=counted,
        rate=len(failed) / len(judged) if judged else 0.0,
        since=since,
        standing=f"{'fails too often, so it counts; ' if counted else ''}{left} clean nights to go",
        history=letters,
    )


def drifts_of(findings: Sequence[GateFinding], window: Window) -> tuple[DriftShown, ...]:
    """Return what moves without failing: compile times one by one, margins and others counted by their rule."""
    compile_times: dict[str, list[str]] = {}  # what is said -> of which columns
    by_rule: dict[str, list[GateFinding]] = {}
    for finding in findings:
        if "compile" in finding.rule:
            compile_times.setdefault(finding.text, []).append(finding.column)
        elif finding.level == WARNING and finding.test and finding.rule != "renamed":
            by_rule.setdefault(finding.rule, []).append(finding)
    drifts = [
        DriftShown(bold=", ".join(columns), text=text, view={"view": "speed"}, night=_named_night(text, window))
        for text, columns in compile_times.items()
    ]
    for rule, found in sorted(by_rule.items(), key=lambda item: -len(item[1])):
        drifts.append(_counted_drift(rule, found, window))
    return tuple(drifts[:MOST_DRIFTS])


_RULE_WORDS = {
    "margin": ("margin moved towards its limit", "margins moved towards their limits"),
    "judged by less": ("case is judged by less than before", "cases are judged by less than before"),
    "operations": ("case captures fewer operations", "cases capture fewer operations"),
}


def _counted_drift(rule: str, found: Sequence[GateFinding], window: Window) -> DriftShown:
    one, more = _RULE_WORDS.get(rule, (f"case with a warning ({rule})", f"cases with a warning ({rule})"))
    first = found[0]
    place = f"{name_shown(first.test)} under {first.column}"
    view = {"view": "test", "test": name_shown(first.test)}
    if rule == "margin":
        columns = {finding.column for finding in found}
        only = str(window.columns.index(first.column)) if len(columns) == 1 and first.column in window.columns else ""
        view = {"view": "map", "by": "margin", "rows": "creep", "column": only}
    lead = "" if len(found) == 1 else "such as "
    link = "map" if rule == "margin" else "history"
    bold = f"{len(found)} {one if len(found) == 1 else more}"
    return DriftShown(bold=bold, text=f"({lead}{place}: {first.text})", view=view, link=link)


def _named_night(text: str, window: Window) -> int:
    """Return the night whose date a text names, -1 when it names none of the window."""
    return next((place for place, night in enumerate(window.nights) if night.run.utc[:10] in text), -1)


def name_changes(window: Window, renamed: Sequence[Rename], vanished: Sequence[CaseState]) -> tuple[NameChange, ...]:
    """Return the tests that were renamed in the window, and those that vanished on its last night."""
    runs = {night.number for night in window.nights[1:]}
    recent = [change for change in renamed if change.run in runs]
    moved = [
        NameChange(before=name_shown(change.was), after=name_shown(change.test), because=change.why)
        for change in recent
    ]
    old = {change.was for change in recent}
    last = window.nights[-1].number
    gone = sorted({state.test_name for state in vanished if state.since == last and state.test_name not in old})
    return (*moved, *(NameChange(before=name_shown(name)) for name in gone))


def night_before(window: Window) -> int:
    """Return the position of the judged night that the last one is compared with, -1 for none."""
    return next((place for place in range(window.last - 1, -1, -1) if not window.nights[place].run.void), -1)


def last_green(window: Window) -> int:
    """Return the position of the newest green night before the last one, -1 for none."""
    return next((place for place in range(window.last - 1, -1, -1) if _is_green(window.nights[place])), -1)


def _is_green(night: Night) -> bool:
    return night.verdict == "green"
