"""A run as plain text: what failed first, then the matrix of tests and backends, then what was slow."""

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from .rows import CaseRow, RunRow
from .verdict_marks import columns_of, margin_text, mark_of, marks_in, one_line, seconds_text, seriousness

MATRIX_ROWS = 40  # more tests than this, and only those that are not good are listed


def report_text(run: RunRow, cases: Sequence[CaseRow], *, slowest: int = 5, every_test: bool = False) -> str:
    """Return the whole report of one run as text.

    slowest: how many of the slowest cases to list.  every_test: list all tests in the matrix,
    however many.
    """
    parts = [run_facts(run), counts_text(cases)]
    if not cases:
        return "\n".join(parts)
    parts += [failures_table(cases), matrix_table(cases, every_test=every_test), slowest_table(cases, slowest)]
    return "\n\n".join(part for part in parts if part)


def run_facts(run: RunRow) -> str:
    """Return one or two lines: when, which commit, which versions, whether it came to its end."""
    commit = f"commit {run.commit[:12]}{' with local edits' if run.dirty else ''}" if run.commit else "no commit"
    known = (("plumbline", run.plumbline), ("torch", run.torch), ("Python", run.python))  # not of an imported run
    versions = [f"{name} {version}" for name, version in known if version]
    threads = [f"{run.threads} threads"] if run.threads else []
    line = one_line(", ".join([f"run {run.run_id} ({run.utc})", commit, *versions, *threads]))
    return line if run.complete else f"{line}\nINTERRUPTED: this run did not come to its end; cases are missing"


def counts_text(cases: Sequence[CaseRow]) -> str:
    """Return one line: how many cases there are and how they were marked, the serious ones first."""
    if not cases:
        return "no cases"
    counts = ", ".join(f"{count} {mark.word}" for mark, count in marks_in(cases))
    tests = len({case.test for case in cases})
    return f"{len(cases)} cases of {tests} tests: {counts}"


def failures_table(cases: Sequence[CaseRow]) -> str:
    """Return the failing cases with sentence and place, most serious first; empty when none fails."""
    failing = sorted((case for case in cases if case.failing), key=_worst_first)
    if not failing:
        return ""
    return "\n".join(["failing:", *(_failure_line(case) for case in failing)])


def matrix_table(cases: Sequence[CaseRow], *, every_test: bool = False) -> str:
    """Return tests by backends, one letter and the margin in each cell, with a key to the letters."""
    columns = columns_of(cases)
    tests: dict[str, dict[str, CaseRow]] = {}
    for case in cases:
        tests.setdefault(case.test, {})[case.column] = case
    every_test = every_test or len(tests) <= MATRIX_ROWS
    shown = sorted(test for test, row in tests.items() if every_test or _notable(row.values()))
    rows = [[one_line(test), *(_cell(tests[test].get(column)) for column in columns)] for test in shown]
    text = tabulate(rows, headers=["test", *columns], tablefmt="simple", disable_numparse=True) if rows else ""
    key = ", ".join(f"{mark.letter} {mark.word}" for mark, _ in marks_in(cases))
    hidden = len(tests) - len(shown)
    more = f"{hidden} more tests are good under every backend (--all lists them)" if hidden else ""
    return "\n".join(line for line in (text, more, f"key: {key}; the number is the margin, <= 1 is noise") if line)


def slowest_table(cases: Sequence[CaseRow], count: int) -> str:
    """Return the slowest cases with where their time went; empty when no times were taken."""
    slow = sorted((case for case in cases if case.test_seconds > 0), key=lambda case: -case.test_seconds)[:count]
    if not slow:
        return ""
    headers = ["slowest", "backend", "whole test", "compiling", "eager", "compiled"]
    rows = [[one_line(case.test), case.column, *map(seconds_text, _times(case))] for case in slow]
    return tabulate(rows, headers=headers, tablefmt="simple", disable_numparse=True)


def _times(case: CaseRow) -> tuple[float, float, float, float]:
    return case.test_seconds, case.compile_seconds, case.eager_seconds, case.compiled_seconds


def _worst_first(case: CaseRow) -> tuple[int, int, str, str]:
    tone, rank = seriousness(case)
    return -tone, -rank, case.test, case.column


def _failure_line(case: CaseRow) -> str:
    mark = mark_of(case)
    said = f"{case.where}: {case.sentence}" if case.where else case.sentence
    line = f"  {mark.word:<8} {case.test} [{case.column}]  {said or mark.meaning}"
    if case.stage:
        line += f" (first wrong: {case.stage})"
    if case.user_file:
        line += f" at {case.user_file}:{case.user_line}"
    return "  " + one_line(line)


def _notable(cases: Iterable[CaseRow]) -> bool:
    return any(mark_of(case).tone != "good" for case in cases)


def _cell(case: CaseRow | None) -> str:
    return "" if case is None else f"{mark_of(case).letter} {margin_text(case.margin)}".rstrip()
