"""Annotations of GitHub Actions: a line on standard output for each failure, shown at the user's line of the change."""

from collections.abc import Iterator, Mapping, Sequence

from plumbline.oracle.verdict import VerdictKind
from plumbline.reports.rows import CaseRow

MOST = 10
"""As many as GitHub shows of one step."""


def annotations(cases: Sequence[CaseRow], environment: Mapping[str, str], folder: str) -> Iterator[str]:
    """Yield the lines for judged failures; none outside of GitHub Actions.

    folder: the one that user files are named from, which is the repository there.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return
    failing = [case for case in cases if case.verdict and VerdictKind(case.verdict).fails and case.outcome == "failed"]
    for case in failing[:MOST]:
        file = case.user_file.removeprefix(folder).lstrip("/\\")
        place = f"file={_property(file)},line={case.user_line}," if case.user_file else ""
        stage = f", first wrong at {case.stage}" if case.stage else ""
        title = _property(f"{case.verdict} under {case.column}{stage}")
        yield f"::error {place}title={title}::{_message(f'{case.test}: {case.where}: {case.sentence}')}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
