"""The tests of one package, run plainly and under all backends, and what the two runs show."""

import os
import resource
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from plumbline.compiler.base.errors import UserError
from plumbline.oracle.verdict import VerdictKind
from plumbline.reports.rows import CaseRow
from plumbline.reports.store import open_store

from ..variant_ids import split_id
from .project_environment import ProjectEnvironment
from .project_list import Project

_NOT_JUDGED = frozenset({"", VerdictKind.VACUOUS, VerdictKind.NO_REFERENCE, VerdictKind.JUDGE_FAILED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectResult:
    """What the runs of one package show.

    trouble: why there is nothing to show, "" otherwise.  tests: that the plain run passed.
    computing, judged: cases (a test under a backend) that call torch, and how many of these were judged.
    verdicts: of all cases.  lost: tests that pass plainly, and fail or error in a judged run that calls nothing wrong.
    ratio: CPU time of the judged run to that of as many plain runs as there are backends.
    """

    project: Project
    trouble: str = ""
    tests: int = 0
    computing: int = 0
    judged: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    graphs: int = 0
    breaks: int = 0
    lost: tuple[str, ...] = ()
    ratio: float = 0.0
    vacuous: tuple[str, ...] = ()


def run_project(project: Project, made: ProjectEnvironment, work: Path, backends: str, seconds: float) -> ProjectResult:
    """Run the sample of a package twice, each at most `seconds` long, and compare."""
    place = work / f"{project.name}-{project.version}"
    database = place / "results.sqlite"
    database.unlink(missing_ok=True)
    plain, plain_seconds, said = _pytest(project, made, place / "plain.xml", [], seconds)
    if not any(word == "passed" for word in plain.values()):
        return ProjectResult(project=project, trouble=f"no test passes plainly: {said}")
    judged_options = [f"--compile-backends={backends}", f"--compile-db={database}"]
    found, judged_seconds, said = _pytest(project, made, place / "judged.xml", judged_options, seconds)
    cases = _cases(database)
    if not cases:
        return ProjectResult(project=project, trouble=f"no test was judged: {said}")
    return compare_runs(project, plain, found, cases, judged_seconds / max(plain_seconds, 1e-9))


def compare_runs(
    project: Project, plain: dict[str, str], found: dict[str, str], cases: list[CaseRow], times: float
) -> ProjectResult:
    """Return what two runs show.  plain, found: how each test ended, by name.  times: CPU time of one to the other."""
    computing = [case for case in cases if case.outcome != "skipped" and _operations(case)]
    to_blame = {
        variant.partition("::")[2]
        for case in cases
        if case.verdict and (VerdictKind(case.verdict).fails or case.verdict == VerdictKind.SENSITIVE)
        for variant in [f"::{_short(case.test)} {case.column}"]
    }
    lost = [
        name
        for name, word in found.items()
        if word in ("failed", "error")
        and plain.get(split_id(name)[0]) == "passed"
        and f"{_short(split_id(name)[0])} {split_id(name)[1]}" not in to_blame
    ]
    return ProjectResult(
        project=project,
        tests=sum(word == "passed" for word in plain.values()),
        computing=len(computing),
        judged=sum(case.verdict not in _NOT_JUDGED for case in computing),
        verdicts=Counter(case.verdict or case.outcome for case in cases),
        graphs=sum(case.graphs for case in cases),
        breaks=sum(case.breaks for case in cases),
        lost=tuple(sorted(lost)),
        ratio=times / max(1, len({case.column for case in cases})),
        vacuous=tuple(sorted({case.test for case in computing if case.verdict in _NOT_JUDGED})),
    )


def _operations(case: CaseRow) -> bool:
    """Return whether a case called torch at all; what was not counted counts as a call."""
    outside = [event.get("outside") for event in case.events if event["kind"] == "judged"]
    return case.ops > 0 or case.judged_calls > 0 or any(count is None or int(count) > 0 for count in outside)


def _short(test: str) -> str:
    """Return the last name of a test with its parameters, as JUnit has it."""
    plain, bracket, parameters = test.partition("[")
    return plain.rpartition("::")[2].rpartition(".")[2] + bracket + parameters


def _cases(database: Path) -> list[CaseRow]:
    try:
        store = open_store(str(database), write=False)
    except UserError:
        return []
    try:
        runs = store.runs()
        return list(store.cases(runs[0].run_id)) if runs else []
    finally:
        store.close()


def _pytest(
    project: Project, made: ProjectEnvironment, report: Path, options: list[str], seconds: float
) -> tuple[dict[str, str], float, str]:
    """Run the sample; return how each test ended, CPU seconds, and the last line that pytest printed."""
    report.unlink(missing_ok=True)
    fixed = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--override-ini=addopts=", f"--junitxml={report}"]
    command = [str(made.python), "-m", "pytest", *fixed, *project.options, *options, *project.sample]
    before = _children_seconds()
    try:
        done = subprocess.run(
            command,
            cwd=made.folder,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | dict(project.environment),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
        last = lines[-1] if lines else f"status {done.returncode}"
    except subprocess.TimeoutExpired:
        last = f"not done within {seconds:.0f} s"
    return _endings(report), _children_seconds() - before, last


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _endings(report: Path) -> dict[str, str]:
    if not report.exists():
        return {}
    words = {"failure": "failed", "error": "error", "skipped": "skipped"}
    return {
        f"{case.get('classname')}::{case.get('name')}": next((words[e.tag] for e in case if e.tag in words), "passed")
        for case in ET.parse(report).iter("testcase")
    }
