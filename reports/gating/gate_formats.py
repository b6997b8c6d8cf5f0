"""The gate's report for others than a terminal: Markdown for a pull request, annotations for GitHub."""

from collections.abc import Sequence

from ..verdict_marks import one_line
from .gate_findings import AMBER, FAILING, FLAKY, INVALID, LEVELS, REGRESSION, WARNING, GateFinding, GateReport

FORMATS = ("text", "json", "markdown", "github")
_SHOWN = 20  # findings of one level in a summary; GitHub shows 10 annotations of a kind
_ANNOTATIONS = {INVALID: "error", REGRESSION: "error", FAILING: "error", AMBER: "warning", WARNING: "warning"}
_FOLDED = frozenset({FLAKY, "ACCEPTED", "STILL", "IMPROVEMENT"})


def markdown_text(report: GateReport) -> str:
    """Return a summary for a pull request: the verdict, then a table a level, the long ones folded."""
    counts = [(level, len(report.of(level))) for level in LEVELS if report.of(level)]
    said = ", ".join(f"{count} {level.lower()}" for level, count in counts) or "no change"
    lines = [
        f"## plumbline gate: {report.verdict}",
        "",
        f"{report.compared} cases compared with {_cell(report.source)}: {said}.",
    ]
    if report.void:
        lines += ["", _cell(report.void)]
    for level, _ in counts:
        lines += ["", *_section(level, report.of(level))]
    return "\n".join(lines) + "\n"


def _section(level: str, findings: Sequence[GateFinding]) -> list[str]:
    title = f"{level.capitalize()} ({len(findings)}): {LEVELS[level]}"
    table = ["| case | what |", "|---|---|"]
    table += [f"| {_code(each.case or 'the run')} | {_cell(each.text)} |" for each in findings[:_SHOWN]]
    if len(findings) > _SHOWN:
        table.append(f"| | and {len(findings) - _SHOWN} more |")
    if level in _FOLDED:
        return [f"<details><summary>{title}</summary>", "", *table, "", "</details>"]
    return [f"### {title}", "", *table]


def _code(text: str) -> str:
    plain = one_line(text).replace("|", "\\|")
    return f"`` {plain} ``" if "`" in plain else f"`{plain}`"


def _cell(text: str) -> str:
    escaped = one_line(text)
    for character in "\\`*_|[]":
        escaped = escaped.replace(character, f"\\{character}")
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")


def github_text(report: GateReport) -> str:
    """Return workflow commands that GitHub shows as annotations at the test's file, and the report's last line."""
    lines = []
    for finding in report.changes:
        kind = _ANNOTATIONS.get(finding.level)
        if kind is None:
            continue
        file = finding.test.split("::")[0]
        place = f"file={_property(file)}," if file else ""
        title = _property(f"plumbline: {finding.case or finding.level.lower()}")
        lines.append(f"::{kind} {place}title={title}::{_message(finding.text)}")
    return "\n".join([*lines, str(report).splitlines()[-1]])


def _message(text: str) -> str:
    return one_line(text).replace("%", "%25")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
