"""Commands to copy: what runs one case again, or reduces it."""

import shlex
from collections.abc import Iterable, Sequence

from ..rows import CaseRow
from ..verdict_marks import columns_of, seriousness


def repeating_command(test: str, columns: Sequence[str], *, whole: bool) -> str:
    """Return the command for a case; whole: it fails under every column, so that no compiler is needed to see it.

    columns: where it fails, the lightest backend first.
    """
    if whole or not columns:
        return f"pytest {shlex.quote(test)}"
    return f"repro-minify {shlex.quote(case_id(test, columns[0]))}"


def case_id(test: str, column: str) -> str:
    """Return the node id of a test under one backend: the backend's name comes first in the brackets."""
    file, _, inside = test.partition("::")
    if not inside.endswith("]"):
        return f"{test}[{column}]"
    head, _, parameters = inside.partition("[")
    return f"{file}::{head}[{column}-{parameters}"


def failing_ids(cases: Iterable[CaseRow]) -> list[str]:
    """Return the node ids of what fails, the most serious first: of each test and compiler, its lightest backend."""
    failing = [case for case in cases if case.failing]
    ladder = columns_of(failing)
    lightest: dict[tuple[str, str], CaseRow] = {}
    for case in sorted(failing, key=lambda case: ladder.index(case.column)):
        lightest.setdefault((case.test, case.compiler), case)
    worst_first = sorted(lightest.values(), key=lambda case: (*(-rank for rank in seriousness(case)), case.test))
    return [case_id(case.test, case.column) for case in worst_first]
