"""The result of the projects run as a Markdown table."""

from collections.abc import Sequence
from statistics import median

from tabulate import tabulate

from plumbline.oracle.verdict import VerdictKind

from .project_run import ProjectResult

_HEAD = ["package", "tests", "cases", "judged", "verdicts", "graphs", "breaks", "time", "lost"]


def project_table(results: Sequence[ProjectResult]) -> str:
    """Return the table, a line of sums below it, and what is known of each package."""
    rows = [_row(result) for result in results]
    shown = [result for result in results if not result.trouble]
    lines = [tabulate(rows, headers=_HEAD, tablefmt="github", disable_numparse=True)]
    if shown:
        computing, judged = sum(r.computing for r in shown), sum(r.judged for r in shown)
        lines += [
            "",
            f"{judged} of {computing} cases that call torch were judged ({judged / max(computing, 1):.0%}); "
            f"{sum(len(r.lost) for r in shown)} tests were lost; median time {median(r.ratio for r in shown):.1f}x.",
        ]
    known = [f"* {result.project.name}: {sentence}" for result in results for sentence in result.project.known]
    return "\n".join([*lines, *(["", *known] if known else [])]) + "\n"


def _row(result: ProjectResult) -> list[str]:
    name = f"{result.project.name} {result.project.version}"
    if result.trouble:
        return [name, "-", "-", "-", result.trouble.replace("|", "/")[:100], "-", "-", "-", "-"]
    order = {kind.value: kind.weight for kind in VerdictKind}
    verdicts = sorted(result.verdicts.items(), key=lambda pair: order.get(pair[0], -1))
    return [
        name,
        str(result.tests),
        str(result.computing),
        f"{result.judged / max(result.computing, 1):.0%}",
        ", ".join(f"{count} {word}" for word, count in verdicts),
        str(result.graphs),
        str(result.breaks),
        f"{result.ratio:.1f}x",
        str(len(result.lost)),
    ]
