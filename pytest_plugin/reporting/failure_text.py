"""The text of a failure: what is wrong, by how much, at which stage, at which line of the user's, and what to do."""

import linecache
import math
import os
import shlex
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import pytest
from _pytest._code.code import ExceptionChainRepr, ReprEntry, ReprFileLocation, ReprTraceback

from plumbline.oracle.verdict import ErrorStatistics, Finding, VerdictKind

from ..decision import Decision, JudgementError
from ..judge_access import JudgedCall
from ..settings import SETTINGS
from ..variants import LADDER, Variant

CONTEXT_LINES = 3  # of source before and after the user's line
FINDINGS_SHOWN = 8

_VACUOUS_HINT = (
    "name functions with --compile-target=package.module.function, wrap one with the compiled fixture, or see "
    "--compile-boundary=call"
)


def headline(decision: Decision, variant: Variant) -> str:
    """Return the line that stands for a failure in summaries and reports."""
    if decision.kind is VerdictKind.CRASH and decision.worst is None:
        return f"CRASH at {variant.backend}: {decision.reason}"
    if decision.kind is VerdictKind.VACUOUS and not decision.reason:
        return f"VACUOUS at {variant.backend}: nothing was compiled"
    if not decision.kind.fails:
        return f"{decision.reason}: compiled code is right ({decision.kind.value}) at {variant.backend}"
    place = variant.backend
    if decision.stage is not None and decision.stage != variant.backend:
        place += f" (first wrong at {decision.stage})"
    return f"{decision.kind.value} at {place}: {_what(decision.worst)}"


def judgement_error(decision: Decision, item: Any) -> JudgementError:
    """Return the exception that ends a test in the place of its own ending."""
    call = decision.worst
    where = f"{call.user_file}:{call.user_line}" if call is not None and call.user_file else item.nodeid
    return JudgementError(headline(decision, item.variant), where=where, hint=f"rerun: {rerun_command(item)}")


def traceback_to(call: JudgedCall | None) -> TracebackType | None:
    """Return a traceback that ends at the user's line of a call, for the debugger; None when its frame is gone."""
    frame = getattr(call, "frame", None)
    if call is None or frame is None:
        return None
    return TracebackType(None, frame, frame.f_lasti, call.user_line or frame.f_lineno)


def failure_lines(decision: Decision, item: Any, calls: Sequence[JudgedCall]) -> list[str]:
    """Return the report of a failed item, line by line."""
    lines = [headline(decision, item.variant), ""]
    if decision.worst is not None:
        lines += _facts(decision, item.variant, decision.worst)
        lines += _source(decision.worst)
        lines += _further(decision.worst, calls)
    if decision.kind is VerdictKind.VACUOUS:
        lines += [f"  {_VACUOUS_HINT}"]
    if decision.note:
        lines += ["", f"  {decision.note}"]
    return [*lines, "", f"  rerun: {rerun_command(item)}"]


def failure_repr(
    decision: Decision, item: Any, calls: Sequence[JudgedCall], own: BaseException | None
) -> ExceptionChainRepr:
    """Return the report as pytest's own kind of representation, so that it crosses to xdist's controller.

    own: the test's own failure, shown below ours.
    """
    path, line = _place(decision.worst, item)
    crash = ReprFileLocation(path, line, headline(decision, item.variant))
    # pytest colours and prints lines that begin with E as the error itself.
    text = [
        f"E   {first}" if index == 0 else f"    {first}".rstrip()
        for index, first in enumerate(failure_lines(decision, item, calls))
    ]
    ours = ReprTraceback([ReprEntry(text, None, None, crash, "long")], None, style="long")
    if own is None:
        return ExceptionChainRepr([(ours, crash, None)])
    below = _own_traceback(item, own)
    return ExceptionChainRepr([(ours, crash, "The test itself ended with this:"), (below, crash, None)])


def label_own_failure(report: pytest.TestReport, decision: Decision, item: Any, calls: Sequence[JudgedCall]) -> None:
    """Add the verdict of the judge to the report of a test that fails by itself."""
    if decision.kind is VerdictKind.SENSITIVE:
        text = (
            f"SENSITIVE at {item.variant.backend}: every compiled call is within the program's own rounding noise, and "
            "the test passes with reference values; its own tolerance is tighter than that noise"
        )
        crash = getattr(report.longrepr, "reprcrash", None)
        if crash is not None:
            crash.message = f"SENSITIVE at {item.variant.backend}: {crash.message}"
    elif decision.kind is VerdictKind.EAGER_FAILED:
        text = "EAGER_FAILED: the test fails with eager's own values too; compiled code is not the cause"
    elif decision.note:
        text = decision.note
    else:
        return
    margins = [call.verdict.margin for call in calls]
    finite = [margin for margin in margins if math.isfinite(margin)]
    if decision.kind is VerdictKind.SENSITIVE and finite:
        text += f" (largest difference: {max(finite):.2g} of what noise allows)"
    report.sections.append(("plumbline", text))


def rerun_command(item: Any) -> str:
    """Return the command that runs just this item again."""
    words = ["pytest", shlex.quote(item.nodeid), f"--compile-backends={item.variant.label}"]
    for setting in SETTINGS:
        if setting.name in ("backends", "compilers", "db", "report"):
            continue
        value = getattr(item.config.option, setting.dest, None)
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            words.append(shlex.quote(f"{setting.option}={one}" if one else setting.option))
    return " ".join(words)


def _what(call: JudgedCall | None) -> str:
    if call is None:
        return "no judged call"
    finding = call.verdict.worst
    if finding is None:
        return call.verdict.sentence
    if finding.sentence.startswith(finding.where):
        return finding.sentence
    return f"{finding.where}: {finding.sentence}"


def _facts(decision: Decision, variant: Variant, call: JudgedCall) -> list[str]:
    finding = call.verdict.worst
    lines = []
    if finding is not None:
        lines.append(f"  aspect   {finding.aspect}")
    lines.append(f"  boundary {call.boundary}, call {call.index}")
    if finding is not None and finding.numbers is not None:
        lines += _numbers(finding.numbers)
    return [*lines, f"  stage    {_stage(decision, variant)}"]


def _numbers(numbers: ErrorStatistics) -> list[str]:
    lines = []
    if numbers.worst_index is not None:
        index = ", ".join(map(str, numbers.worst_index))
        values = (("compiled", numbers.actual), ("eager", numbers.eager), ("float64", numbers.reference))
        said = ", ".join(f"{name} {value:.9g}" for name, value in values if value is not None)
        lines.append(f"  worst    element [{index}]: {said}")
    if numbers.error is not None and numbers.scale is not None:
        times = (
            f"{numbers.units:.3g} times its scale of {numbers.scale:.3g}" if numbers.units else "where nothing rounds"
        )
        lines.append(f"  error    {numbers.error:.3g}, {times}")
    tests = f"element {numbers.t_element:.3g}, rms {numbers.t_rms:.3g}, bias {numbers.t_bias:.3g}"
    return [*lines, f"  tests    {tests} (1 or less passes)"]


def _stage(decision: Decision, variant: Variant) -> str:
    if decision.stage is None:
        return "unknown"
    if decision.stage not in (*LADDER, "triton"):
        return decision.stage
    right = LADDER[: LADDER.index(decision.stage)] if decision.stage in LADDER else LADDER
    also = f", {variant.backend} inherits it" if decision.stage != variant.backend else ""
    before = (
        f" ({_listed(right)} {'are' if len(right) > 1 else 'is'} right{also})"
        if right
        else (f" (the first of the ladder{also})")
    )
    return f"first wrong at {decision.stage}{before}"


def _listed(names: Sequence[str]) -> str:
    """Return names as a person lists them."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 2 else names)


def _source(call: JudgedCall) -> list[str]:
    if not call.user_file:
        return []
    lines = ["", f"  {_shown_path(call.user_file)}:{call.user_line}"]
    source = linecache.getlines(call.user_file)
    first, last = max(1, call.user_line - CONTEXT_LINES), min(len(source), call.user_line + CONTEXT_LINES)
    for number in range(first, last + 1):
        mark = ">" if number == call.user_line else " "
        lines.append(f"  {mark} {number:>4} {source[number - 1].rstrip()}".rstrip())
    return lines


def _further(worst: JudgedCall, calls: Sequence[JudgedCall]) -> list[str]:
    lines: list[str] = []
    findings = worst.verdict.findings[1:]
    if findings:
        lines += ["", "  also in this call:", *(_finding(finding) for finding in findings[:FINDINGS_SHOWN])]
        if len(findings) > FINDINGS_SHOWN:
            lines.append(f"    ... and {len(findings) - FINDINGS_SHOWN} more")
    wrong = [call for call in calls if call.verdict.failed]
    if len(wrong) > 1:
        lines += ["", f"  {len(wrong)} of {len(calls)} judged calls are wrong:"]
        for call in wrong[:FINDINGS_SHOWN]:
            place = f"{_shown_path(call.user_file)}:{call.user_line}"
            lines.append(f"    {call.verdict.kind.value} {call.boundary}, call {call.index} ({place}): {_what(call)}")
    return lines


def _finding(finding: Finding) -> str:
    return f"    {finding.kind.value} {finding.aspect}: {finding.where}: {finding.sentence}"


def _shown_path(path: str) -> str:
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive on Windows
        return path
    return path if relative.startswith("..") else relative


def _place(call: JudgedCall | None, item: Any) -> tuple[str, int]:
    if call is not None and call.user_file:
        return _shown_path(call.user_file), call.user_line
    path, line, _ = item.reportinfo()
    return _shown_path(str(path)), (line or 0) + 1


def _own_traceback(item: Any, own: BaseException) -> ReprTraceback:
    if own.__traceback__ is None:  # whoever caught it has let go of its frames
        return _as_text("".join(traceback.format_exception_only(own)))
    representation = item.repr_failure(pytest.ExceptionInfo.from_exception(own))
    if isinstance(representation, ExceptionChainRepr):
        entries = [entry for part, _, _ in representation.chain for entry in part.reprentries]
        return ReprTraceback(entries, None, style="long")
    return _as_text(str(representation))


def _as_text(text: str) -> ReprTraceback:
    lines = [f"    {line}" for line in text.splitlines()]
    return ReprTraceback([ReprEntry(lines, None, None, None, "long")], None, style="long")
