"""Commands about stored results: the gate, the nightly run, retries, imports, rebuilding, the spool.

Exit status: 0 green or amber (with --strict, amber is 1), 1 red, 2 a wrong request, 3 void, 4 results that wait in the
spool because the database failed.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from plumbline.compiler.base.errors import UserError
from plumbline.reports.places import DATABASE_VARIABLE, DEFAULT_DATABASE, database_place, page_file

GREEN, RED, VOID, SPOOLED = 0, 1, 3, 4

_DATABASE_HELP = f"Result database: a file or a URL.  [default: ${DATABASE_VARIABLE} or {DEFAULT_DATABASE}]"
database = click.option("--db", metavar="PLACE", help=_DATABASE_HELP)
run_option = click.option(
    "--run", "run_name", metavar="ID", help="This run, or the start of its id.  [default: the newest]"
)


def _reporting(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about what is accepted and how the gate reports."""
    for option in reversed(
        (
            click.option(
                "--accepted",
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="What is accepted by name.  [default: plumbline-accepted.toml, if it is there]",
            ),
            click.option(
                "--format",
                "shape",
                type=click.Choice(["text", "json", "markdown", "github"]),
                default="text",
                show_default=True,
                help="github: annotations, and a summary where $GITHUB_STEP_SUMMARY says.",
            ),
            click.option("--strict", is_flag=True, help="Exit with 1 if the gate is amber, too."),
        )
    ):
        function = option(function)
    return function


@click.command()
@database
@run_option
@click.option("--baseline", metavar="PLACE", help="Compare with this: a baseline file, or a database.")
@click.option("--baseline-run", metavar="ID", help="This run of the baseline database.")
@click.option("--baseline-branch", metavar="NAME", help="The nights of this branch, of the baseline database or --db.")
@click.option(
    "--write-baseline", type=click.Path(path_type=Path), metavar="FILE", help="Write this run as a new baseline."
)
@_reporting
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
def gate(
    db: str | None,
    run_name: str | None,
    baseline: str | None,
    baseline_run: str | None,
    baseline_branch: str | None,
    write_baseline: Path | None,
    accepted: Path | None,
    shape: str,
    strict: bool,
    as_json: bool,
) -> int:
    """Say whether a run is good enough; exit with 1 if not.

    A nightly run is judged with the state of every case: a fault stays red until it is repaired or accepted by name.
    Any other run is compared with a baseline, and is red if it is worse: if a case fails or compiles nothing that did
    not before, if a case is missing, or if there are more graph breaks. A run of a part of the tests is judged on what
    it ran. Improvements are listed and never fail the gate.
    """
    from plumbline.reports import baseline as baselines
    from plumbline.reports.gate import compare, mismatch_report
    from plumbline.reports.nights import NIGHTLY_KINDS, judge_run
    from plumbline.reports.storage.migrations import SchemaMismatch
    from plumbline.reports.store import open_store

    entries = _accepted_entries(accepted)
    with open_store(database_place(db)) as store:
        run = store.run(run_name)
        cases, attempts = store.cases(run.run_id), store.attempts(run.run_id)
    plain = not (baseline or baseline_run or baseline_branch)
    result = None
    if plain and write_baseline is None and run.kind in NIGHTLY_KINDS:
        if not run.complete:
            hint = "run the night again"
            raise UserError("an interrupted night cannot be judged", where=run.run_id, hint=hint)
        with open_store(database_place(db), write=True) as store:
            result = judge_run(store, run.run_id, entries)
    elif not plain or write_baseline is None:
        try:
            expected = baselines.load_baseline(
                baseline or store.place, run=baseline_run, branch=baseline_branch, judged=run, home=store.place
            )
            result = compare(run, cases, expected, attempts, entries)
        except SchemaMismatch as mismatch:
            result = mismatch_report(mismatch.one_line(), baseline or store.place)
    if result is not None:
        _show(result, "json" if as_json else shape)
    if write_baseline is not None:
        if not run.complete or run.partial:
            what = f"a run of a part of the tests ({run.partial})" if run.partial else "an interrupted run"
            hint = "run the tests to their end first"
            raise UserError(f"{what} cannot be a baseline", where=run.run_id, hint=hint)
        baselines.write_baseline(write_baseline, cases)
        print(f"baseline of {len(cases)} cases written: {write_baseline}", file=sys.stderr)
    return GREEN if result is None else _status(result, strict=strict)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENTS]...")
@database
@click.option("--suite", default="", metavar="NAME", help="Name of the suite; nights are compared within one.")
@click.option("--html", metavar="PLACE", help="Also write the page of the run: a directory or a .html file.")
@click.option("--warm", is_flag=True, help="Use the compilers' caches as they are; compile time is not judged then.")
@_reporting
def nightly(
    arguments: tuple[str, ...],
    db: str | None,
    suite: str,
    html: str | None,
    warm: bool,
    accepted: Path | None,
    shape: str,
    strict: bool,
) -> int:
    """Run the tests under the compilers, retry what fails in fresh processes, and judge the night.

    Takes pytest's arguments, such as tests -n 4 --compile-backends=all, which is the default. The state of every case
    moves on. A night in which much breaks at once is void, and is run once more.
    """
    from plumbline.pytest_plugin.recording.nightly import NightCommand, run_night
    from plumbline.reports.page import write_page
    from plumbline.reports.store import open_store

    command = NightCommand(
        arguments=arguments,
        database=_absolute(database_place(db)),
        suite=suite,
        accepted=_accepted_entries(accepted),
        warm=warm,
    )
    if _spooled(command.database):
        return SPOOLED
    result = run_night(command, lambda line: print(line, file=sys.stderr, flush=True))
    _show(result.report, shape)
    if html is not None:
        with open_store(command.database) as store:
            write_page(store, store.run(result.run_id), page_file(html))
    return _status(result.report, strict=strict)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENTS]...")
@database
@run_option
def retry(arguments: tuple[str, ...], db: str | None, run_name: str | None) -> int:
    """Run the failing cases of a run again, up to three times, each time in fresh processes.

    Every attempt is kept. What passes once is flaky and does not fail the gate.
    """
    from plumbline.pytest_plugin.recording.nightly import NightCommand, as_retry, retry_failures
    from plumbline.reports.store import open_store

    command = NightCommand(arguments=arguments, database=_absolute(database_place(db)))
    with open_store(command.database) as store:
        run = store.run(run_name)
    command = as_retry(command, run.run_id)
    with open_store(command.database, write=True) as store:
        retry_failures(store, run.run_id, arguments, command, os.environ, lambda line: print(line, file=sys.stderr))
        failing = {case.case_id for case in store.cases(run.run_id) if case.failing}
        cleared = {case.case_id for case in store.attempts(run.run_id) if not case.failing}
    print(f"{len(failing)} failing cases: {len(failing & cleared)} passed a retry, {len(failing - cleared)} did not")
    return GREEN


@click.command()
@database
@click.option("--keep", type=click.IntRange(min=1), metavar="N", help="Also delete details of good rows but of N runs.")
def rebuild(db: str | None, keep: int | None) -> int:
    """Make states, faults and roll-ups again from the stored results; needed only after trouble."""
    from plumbline.reports.nights import rebuild as rebuild_nights
    from plumbline.reports.storage.retention import prune
    from plumbline.reports.store import open_store

    with open_store(database_place(db), write=True) as store:
        print(f"{rebuild_nights(store)} nights judged anew")
        if keep is not None:
            print(f"{prune(store, keep)} details of good rows deleted")
    return GREEN


@click.command()
@database
def spool(db: str | None) -> int:
    """Send the rows that a failed database did not take; exit with 4 if some still wait."""
    from plumbline.reports.spool import send_waiting, spool_folders, waiting
    from plumbline.reports.store import open_store

    folders = spool_folders(Path.cwd())
    with open_store(database_place(db), write=True) as store:
        print(f"{send_waiting(store, folders)} cases sent to {store.place}")
    left = waiting(folders)
    for each in left:
        print(f"{each.cases} cases wait in {each.file} for {each.place}")
    return SPOOLED if left else GREEN


@click.command()
@database
@run_option
@click.option("--issue", required=True, metavar="URL", help="Where the repair is tracked.")
@click.option(
    "--expires", required=True, type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="The last day it counts."
)
@click.option("--file", type=click.Path(path_type=Path), default=Path("plumbline-accepted.toml"), show_default=True)
@click.argument("pattern", default="*")
def accept(db: str | None, run_name: str | None, issue: str, expires: Any, file: Path, pattern: str) -> int:
    """Add the failing cases of a run to the list of what is accepted, until a date; PATTERN chooses tests."""
    from plumbline.reports.gating.acceptance import append_failures, read_accepted
    from plumbline.reports.store import open_store

    known = read_accepted(file) if file.exists() else ()
    with open_store(database_place(db)) as store:
        failing = [case for case in store.cases(store.run(run_name).run_id) if case.failing]
    added = append_failures(file, known, [(case.test, case.column) for case in failing], pattern, issue, expires.date())
    print(f"{added} cases added to {file}")
    return GREEN


@click.command(name="import")
@click.argument("kind", type=click.Choice(["junit", "csv"]))
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@database
@click.option("--suite", default="", metavar="NAME", help="Name of the suite.")
@click.option("--branch", default="", metavar="NAME", help="Branch that was tested.")
@click.option("--column", default="torch:inductor", show_default=True, metavar="COMPILER:BACKEND", help="Of all rows.")
@click.option("--torch", "torch_version", default="", metavar="VERSION", help="Version of torch that was tested.")
def import_results(
    kind: str,
    files: tuple[Path, ...],
    db: str | None,
    suite: str,
    branch: str,
    column: str,
    torch_version: str,
) -> int:
    """Import history that exists: JUnit XML, or CSV as of PyTorch's benchmarks; every file is one run.

    Files are taken in the order of their times. A file that was imported before is left out.
    """
    from plumbline.reports.imported_history import ImportPlan, import_files
    from plumbline.reports.store import open_store

    plan = ImportPlan(kind=kind, suite=suite, branch=branch, column=column, torch=torch_version)
    with open_store(database_place(db), write=True) as store:
        for line in import_files(store, files, plan):
            print(line)
    return GREEN


def _accepted_entries(file: Path | None) -> Any:
    from plumbline.reports.gating.acceptance import DEFAULT_FILE, read_accepted

    if file is None:
        return read_accepted(Path(DEFAULT_FILE)) if Path(DEFAULT_FILE).is_file() else ()
    return read_accepted(file)


def _absolute(place: str) -> str:
    return place if "://" in place else str(Path(place).expanduser().absolute())


def _spooled(place: str) -> bool:
    """Return whether the database cannot be reached; tests are not run for a night that could not be judged."""
    from plumbline.reports.storage.database import DatabaseTrouble
    from plumbline.reports.store import open_store

    try:
        open_store(place, write=True).close()
    except DatabaseTrouble as trouble:
        print(f"plumbline: {trouble.one_line()}", file=sys.stderr)
        return True
    return False


def _show(report: Any, shape: str) -> None:
    from plumbline.reports.gating.gate_formats import github_text, markdown_text

    if shape == "json":
        print(json.dumps(report.to_dict(), indent=1))
    elif shape == "markdown":
        print(markdown_text(report), end="")
    elif shape == "github":
        print(github_text(report))
        summary = os.environ.get("GITHUB_STEP_SUMMARY")
        if summary:
            with open(summary, "a", encoding="utf-8") as file:
                file.write(markdown_text(report))
    else:
        print(report)


def _status(report: Any, *, strict: bool) -> int:
    verdicts = {"green": GREEN, "amber": RED if strict else GREEN, "red": RED, "void": VOID}
    return verdicts[report.verdict]


COMMANDS = (gate, nightly, retry, rebuild, spool, accept, import_results)
