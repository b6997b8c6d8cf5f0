"""`--compile-isolate`: tests run in a worker of pytest-xdist, and one that ends its worker is a CRASH, with its row.

A worker writes its last words, where Python can still say any, to a file that it gets from the controller.
"""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from plumbline.oracle.verdict import VerdictKind
from plumbline.reports.rows import CaseRow, identify_case

from ..reporting.result_rows import NO_RUN, ROWS
from ..settings import ISOLATE, setting_value
from ..variant_ids import split_id
from .known_failures import KnownFailures
from .last_words import LAST_WORDS

FRAMES_SHOWN = 8


def isolate(config: pytest.Config) -> None:
    """Have pytest-xdist run the tests in one worker, where nobody has asked for workers."""
    if setting_value(config, ISOLATE) != "yes" or hasattr(config, "workerinput"):
        return
    if not config.pluginmanager.hasplugin("xdist"):
        raise pytest.UsageError(f"{ISOLATE.option} needs pytest-xdist: pip install pytest-xdist")
    if config.getoption("usepdb", False):
        raise pytest.UsageError(f"{ISOLATE.option} and --pdb exclude each other: a debugger needs the test's process")
    if not config.option.numprocesses and not config.option.tx:
        config.option.numprocesses = 1
    if config.option.maxworkerrestart is None:
        config.option.maxworkerrestart = 1_000_000  # each crash fails its test; none ends the run


class WorkerDeaths:
    """On the controller: gives workers their files, and turns the end of one into a row."""

    def __init__(self, known: KnownFailures) -> None:
        self._known = known
        self._folder = tempfile.TemporaryDirectory(prefix="plumbline-")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Name the file for a worker's last words."""
        node.workerinput[LAST_WORDS] = str(Path(self._folder.name) / f"{node.gateway.id}.txt")

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: Any) -> None:
        """Write what is known of a crash into its report."""
        test, label = split_id(crashitem)
        if not label:
            return
        compiler, _, backend = label.partition(":")
        words = _read(Path(report.node.workerinput[LAST_WORDS]))
        reason = cause_of(words)
        case = CaseRow(
            run_id=NO_RUN,
            case_id=identify_case(test, compiler, backend),
            test=test,
            compiler=compiler,
            backend=backend,
            outcome="failed",
            verdict=VerdictKind.CRASH.value,
            sentence=reason,
        )
        report.longrepr = "\n".join([f"CRASH at {backend}: {reason}", *innermost_frames(words)])
        expected = self._known.reason(test, label)
        if expected is not None and not self._known.update:
            report.outcome, report.wasxfail = "skipped", expected
            setattr(report, ROWS, {"case": case.to_dict() | {"outcome": "xfailed"}, "calls": []})
        else:
            setattr(report, ROWS, {"case": case.to_dict(), "calls": []})

    def pytest_unconfigure(self) -> None:
        """Remove the files."""
        self._folder.cleanup()


def cause_of(words: str) -> str:
    """Return why a process ended, from its last words.

    >>> cause_of("Fatal Python error: Segmentation fault")
    'Segmentation fault'
    """
    if words.startswith("Timeout"):
        return "took longer than --compile-timeout, where no signal reaches Python"
    for line in words.splitlines():
        if line.startswith("Fatal Python error: "):
            return line.removeprefix("Fatal Python error: ")
    return "the process ended without a word, as it does for lack of memory"


def innermost_frames(words: str) -> list[str]:
    """Return the innermost frames of the thread that the last words are about."""
    frames = [line for line in words.splitlines() if line.startswith("  File ")]
    return frames[:FRAMES_SHOWN]


def _read(place: Path) -> str:
    try:
        return place.read_text("utf-8", "replace")
    except OSError:
        return ""
