"""A night as one command: the tests, retries of what failed, the states, the gate.

Tests run in child processes, so that nothing they do to a process reaches the gate, and each retry starts afresh: a
retry in the same process repeats most flaky failures (shared caches, seeds, state) and clears nothing.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from plumbline.compiler.base.errors import UserError
from plumbline.reports.gating.acceptance import Acceptance
from plumbline.reports.gating.gate_findings import GateReport
from plumbline.reports.gating.thresholds import Thresholds, default_thresholds
from plumbline.reports.nights import judge_run
from plumbline.reports.rows import CaseRow, new_run_id
from plumbline.reports.spool import send_waiting, spool_folders
from plumbline.reports.storage.retention import prune
from plumbline.reports.store import ResultStore, open_store

Say = Callable[[str], None]
_RAN = (0, 1, 5)  # pytest's exit statuses after a run: good, with failures, without tests
_CACHES = ("PLUMBLINE_CACHE_DIRECTORY", "TORCHINDUCTOR_CACHE_DIR")
_KEEPS_ITS_FAILURE = "NONDETERMINISTIC"


@dataclass(frozen=True, slots=True, kw_only=True)
class NightCommand:
    """What to run: pytest's arguments, where results go, the suite, what is accepted.

    kind: nightly, or pull for a run that is not to move any state.  warm: keep the compilers' caches of the user.
    """

    arguments: tuple[str, ...]
    database: str
    suite: str = ""
    kind: str = "nightly"
    accepted: tuple[Acceptance, ...] = ()
    warm: bool = False
    limits: Thresholds = field(default_factory=default_thresholds)


@dataclass(frozen=True, slots=True)
class NightResult:
    """The run that counts, and what the gate says of it."""

    run_id: str
    report: GateReport


def run_night(command: NightCommand, say: Say) -> NightResult:
    """Run a night, judge it, and run it once more when it is void.

    Raises UserError when pytest could not run the tests, or when results are in the spool instead of the database.
    """
    first = _run_once(command, "", say)
    if not first.report.void:
        return first
    say(first.report.void)
    return _run_once(command, first.run_id, say)


def _run_once(command: NightCommand, rerun_of: str, say: Say) -> NightResult:
    run_id = new_run_id()
    with tempfile.TemporaryDirectory(prefix="plumbline-night-") as folder:
        environment = dict(os.environ) if command.warm else os.environ | _cold_caches(Path(folder))
        arguments = _with_backends(command.arguments)
        status = _pytest([*arguments, *_recorded(command, run_id)], environment, quiet=False)
        if status not in _RAN:
            hint = "repair what pytest says above, and run the command again"
            raise UserError(f"pytest ended with status {status}", where=run_id, hint=hint)
        with open_store(command.database, write=True) as store:
            send_waiting(store, spool_folders(Path.cwd()))
            _check_stored(store, run_id)
            retry_failures(store, run_id, arguments, command, environment, say)
            if rerun_of:
                store.change_run(store.run(run_id), rerun_of=rerun_of)
            report = judge_run(store, run_id, command.accepted, command.limits)
            prune(store)
            return NightResult(run_id, report)


def _check_stored(store: ResultStore, run_id: str) -> None:
    if not store.has_shard(run_id):
        hint = "name tests that use torch.compile or modules, or look for rows with: plumbline spool"
        raise UserError("the night has no results", where=store.place, why="no test was judged", hint=hint)


def _cold_caches(folder: Path) -> dict[str, str]:
    for name in _CACHES:
        (folder / name.lower()).mkdir()
    return {name: str(folder / name.lower()) for name in _CACHES}


def _with_backends(arguments: Sequence[str]) -> list[str]:
    chosen = any(argument.startswith("--compile-backends") for argument in arguments)
    return [*arguments] if chosen else [*arguments, "--compile-backends=all"]


def _recorded(command: NightCommand, run_id: str) -> list[str]:
    suite = [f"--compile-suite={command.suite}"] if command.suite else []
    return [f"--compile-db={command.database}", f"--compile-kind={command.kind}", f"--compile-run={run_id}", *suite]


def _pytest(arguments: Sequence[str], environment: Mapping[str, str], *, quiet: bool) -> int:
    output = subprocess.DEVNULL if quiet else None
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.run(command, env=environment, stdout=output, stderr=output, check=False).returncode


def retry_failures(
    store: ResultStore,
    run_id: str,
    arguments: Sequence[str],
    command: NightCommand,
    environment: Mapping[str, str],
    say: Say,
) -> None:
    """Run the failing cases of a run again, in fresh processes, until each has passed or was tried often enough."""
    limits = command.limits
    failing = [case for case in store.cases(run_id) if case.failing and case.verdict != _KEEPS_ITS_FAILURE]
    if not failing or len(failing) > limits.retry_most:
        return
    options = [each for each in arguments if each.startswith("-") or not Path(each.split("::")[0]).exists()]
    for attempt in range(2, limits.retry_times + 2):
        say(f"attempt {attempt} of {len(failing)} failing cases, in fresh processes")
        recorded = [*_recorded(command, run_id), f"--compile-attempt={attempt}", "-p", "no:cacheprovider"]
        for group in _groups(failing, limits.retry_together_above):
            _pytest([*options, *recorded, *map(node_id, group)], environment, quiet=True)
        passed = {case.case_id for case in store.attempts(run_id) if case.attempt == attempt and not case.failing}
        failing = [case for case in failing if case.case_id not in passed]
        if not failing:
            return


def _groups(cases: Sequence[CaseRow], together_above: int) -> list[list[CaseRow]]:
    by_test: dict[str, list[CaseRow]] = {}
    for case in cases:
        by_test.setdefault(case.test, []).append(case)
    return list(by_test.values()) if len(by_test) <= together_above else [list(cases)]


def node_id(case: CaseRow) -> str:
    """Return what pytest calls a case on its command line, as a path from where we are."""
    file, separator, rest = case.test.partition("::")
    name, bracket, parameters = rest.partition("[")
    label = f"{case.column}-{parameters}" if bracket else f"{case.column}]"
    here = Path.cwd()
    found = next((folder / file for folder in (here, *here.parents) if (folder / file).is_file()), Path(file))
    return f"{found}{separator}{name}[{label}"


def as_retry(command: NightCommand, run: str) -> NightCommand:
    """Return the command with the kind and suite of a stored run, for retries of it alone."""
    with open_store(command.database) as store:
        row = store.run(run or None)
    return replace(command, kind=row.kind, suite=row.suite)
