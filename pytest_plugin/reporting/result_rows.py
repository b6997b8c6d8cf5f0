"""From a judged item to result rows: plain data that crosses from xdist's workers to the controller."""

from collections.abc import Mapping, Sequence
from typing import Any

from plumbline.oracle.harness.compilers import CompileEvent
from plumbline.oracle.verdict import ErrorStatistics, Verdict, VerdictKind
from plumbline.reports.rows import CallRow, CaseRow, Measurements, field_types, identify_case

from ..decision import Decision, unjudged_note
from ..judge_access import JudgedCall, JudgeSession
from ..variants import Variant
from .failure_text import headline
from .judged_share import judged_share

ROWS = "plumbline_rows"
"""Attribute of an item's last report that holds its rows."""

# In rows until the controller, which alone knows the run, fills it in.
NO_RUN = ""
_MEASURED = tuple(name for name in field_types(Measurements) if name != "margin")


def item_rows(
    test: str,
    variant: Variant,
    *,
    outcome: str,
    decision: Decision | None,
    session: JudgeSession | None,
    seconds: float,
    source: str = "",
    peak_bytes: int = 0,
) -> dict[str, Any]:
    """Return `{"case": row, "calls": [rows]}` as plain data.

    test: node id without the backend.  outcome: one of reports.rows.OUTCOMES.  seconds: of the whole test.
    source: hash of the test's source.  peak_bytes: most memory during the test's body, beyond what there was before.
    """
    case_id = identify_case(test, variant.compiler, variant.backend)
    calls: Sequence[JudgedCall] = session.calls if session is not None else ()
    case = CaseRow(
        run_id=NO_RUN,
        case_id=case_id,
        test=test,
        compiler=variant.compiler,
        backend=variant.backend,
        outcome=outcome,
        test_seconds=seconds,
        source=source,
        peak_bytes=peak_bytes,
        **_verdict_fields(decision, variant, calls),
        **_compiler_fields(session, calls),
    )
    return {"case": case.to_dict(), "calls": [_call_row(case_id, call).to_dict() for call in calls]}


def rows_of_run(data: Mapping[str, Any], run_id: str) -> tuple[CaseRow, list[CallRow]]:
    """Return the rows again, as rows of a run."""
    case = CaseRow.from_dict({**data["case"], "run_id": run_id})
    return case, [CallRow.from_dict({**call, "run_id": run_id}) for call in data["calls"]]


def _verdict_fields(decision: Decision | None, variant: Variant, calls: Sequence[JudgedCall]) -> dict[str, Any]:
    if decision is None:
        return {}
    call = decision.worst
    notes = [note for note in (decision.note, unjudged_note(calls)) if note]
    notes += [note for each in calls for note in each.verdict.notes]
    fields: dict[str, Any] = {
        "verdict": decision.kind.value,
        "stage": decision.stage,
        "notes": tuple(dict.fromkeys(notes)),
        "boundaries": len({each.boundary for each in calls}),
        "judged_calls": len(calls),
    }
    if call is None:
        said = decision.kind in (VerdictKind.VACUOUS, VerdictKind.CRASH)
        return fields | {"sentence": headline(decision, variant) if said else ""}
    finding = call.verdict.worst
    return fields | {
        "sentence": finding.sentence if finding is not None else call.verdict.sentence,
        "aspect": finding.aspect if finding is not None else "",
        "where": finding.where if finding is not None else "",
        "boundary": call.boundary,
        "user_file": call.user_file,
        "user_line": call.user_line,
        **_number_fields(call.verdict),
    }


def _number_fields(verdict: Verdict) -> dict[str, Any]:
    numbers: ErrorStatistics | None = verdict.worst.numbers if verdict.worst is not None else None
    fields: dict[str, Any] = {"margin": float(verdict.margin)}
    if numbers is None:
        return fields
    return fields | {name: getattr(numbers, name) for name in _MEASURED}


def _compiler_fields(session: JudgeSession | None, calls: Sequence[JudgedCall]) -> dict[str, Any]:
    if session is None:
        return {}
    statistics = session.statistics()
    return {
        "graphs": statistics.graphs,
        "ops": statistics.ops,
        "breaks": len(statistics.breaks),
        "recompiles": statistics.recompiles,
        "compile_seconds": float(statistics.compile_seconds),
        "compile_cpu": float(statistics.compile_cpu),
        "eager_seconds": float(sum(call.verdict.reference_seconds for call in calls)),
        "compiled_seconds": float(sum(call.verdict.candidate_seconds for call in calls)),
        "events": (*_event_rows(statistics.events), _judged_row(session)),
    }


def _judged_row(session: JudgeSession) -> dict[str, Any]:
    """Return what of the test was judged, as a row beside what the compiler did."""
    judged = judged_share(session)
    row = {"kind": "judged", "reason": judged.sentence, "captured": judged.captured}
    return row if judged.outside is None else row | {"outside": judged.outside}


def _event_rows(events: Sequence[CompileEvent]) -> tuple[dict[str, Any], ...]:
    """Return what the compiler did as flat rows, in order; the times of a stage that ran often are added up."""
    seconds: dict[tuple[str, str, str], float] = {}
    for event in events:
        key = (event.kind, event.what, event.where)
        seconds[key] = seconds.get(key, 0.0) + event.seconds
    return tuple(
        {"kind": kind, "reason": what}
        | ({"where": where} if where else {})
        | ({"seconds": round(spent, 6)} if spent else {})
        for (kind, what, where), spent in seconds.items()
    )


def _call_row(case_id: str, call: JudgedCall) -> CallRow:
    verdict, finding = call.verdict, call.verdict.worst
    return CallRow(
        run_id=NO_RUN,
        case_id=case_id,
        boundary=call.boundary,
        call=call.index,
        verdict=verdict.kind.value,
        aspect=finding.aspect if finding is not None else "",
        where=finding.where if finding is not None else "",
        sentence=finding.sentence if finding is not None else verdict.sentence,
        graphs=verdict.graphs,
        ops=verdict.ops,
        eager_seconds=float(verdict.reference_seconds),
        compiled_seconds=float(verdict.candidate_seconds),
        **_number_fields(verdict),
    )
