"""Retention: details of good rows go, by stream and age; results, and all that failed, stay."""

from dataclasses import replace

from plumbline.reports.storage.retention import prune
from plumbline.reports.store import open_store
from support.made_rows import call_row, case_row, run_row, wrong_case


def test_details_of_old_good_rows_are_deleted(tmp_path):
    with open_store(str(tmp_path / "r.sqlite"), write=True) as store:
        for number in range(1, 5):
            for branch in ("main", "other") if number < 3 else ("main",):
                run = replace(run_row(), run_id=f"{branch}-{number}", branch=branch)
                good = replace(case_row(backend="eager", verdict="EQUAL"), run_id=run.run_id, notes=("said",))
                bad = replace(wrong_case(), run_id=run.run_id)
                store.begin_run(run)
                store.append([good, bad], [replace(call_row(one, 1), run_id=run.run_id) for one in (good, bad)])
                store.finish_run(run.run_id)
        before = {run.run_id: store.cases(run.run_id) for run in store.runs()}
        assert prune(store, 4) == 0
        assert prune(store, 2) > 0
        assert prune(store, 2) == 0
        for run in store.runs():
            calls = {call.case_id for call in store.calls(run.run_id)}
            cases = store.cases(run.run_id)
            pruned = run.run_id in ("main-1", "main-2")
            assert [one.outcome for one in cases] == [one.outcome for one in before[run.run_id]]
            assert [one.verdict for one in cases] == [one.verdict for one in before[run.run_id]]
            assert len(calls) == (1 if pruned else 2), run.run_id
            assert (cases == before[run.run_id]) == (not pruned)
            assert [one for one in cases if one.failing] == [one for one in before[run.run_id] if one.failing]
