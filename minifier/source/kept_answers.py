"""Answers that outlive a run: what was asked about a candidate is not asked again by the next run of the command.

They lie in `minifier` of the cache folder, one file for everything that an answer depends on besides the candidate: the
source of plumbline, versions of all that is installed, the machine, how candidates are run, and the user's own modules:
those below the program's folder, the working directory and PYTHONPATH.  Of a failure that comes now and then nothing is
kept, nor where there are too many modules to look at, and no answer that a busy machine could have given: that a run
takes too long.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import torch

from plumbline.compiler.base.options import Options, default_cache_directory
from plumbline.compiler.stored.process_facts import digest_of

from ..failure_signature import FailureSignature
from .source_run import RunReport, SourceSettings

MOST_BYTES = 4_000_000
"""Of one file; answers beyond are asked again."""
MOST_MODULES = 5000
"""Of the user's; looking at more would take as long as asking."""
_NOT_THE_USERS = frozenset({"__pycache__", "node_modules", "site-packages"})
_FOLDERS = tuple(Path(__file__).resolve().parents[2] / name for name in ("compiler", "oracle", "minifier"))


@dataclass(slots=True)
class KeptAnswers:
    """The answers of one context.  file: None where nothing is kept.  found: answers that came from it."""

    file: Path | None
    known: dict[str, RunReport] = field(default_factory=dict)
    found: int = 0

    def answer(self, text: str, ask: Callable[[], RunReport]) -> RunReport:
        """Return what is known of a program, or ask and keep it."""
        key = _digest(text)
        if key in self.known:
            self.found += 1
            return self.known[key]
        report = ask()
        self._keep(key, report)
        return report

    def answers(self, texts: Sequence[str], ask: Callable[[list[str]], Iterable[RunReport]]) -> list[RunReport]:
        """Return what is known of several programs, or ask about those of which nothing is and keep it."""
        unknown = [text for text in texts if _digest(text) not in self.known]
        self.found += len(texts) - len(unknown)
        for text, report in zip(unknown, ask(unknown), strict=True):
            self._keep(_digest(text), report)
        return [self.known[_digest(text)] for text in texts]

    def _keep(self, key: str, report: RunReport) -> None:
        self.known[key] = report
        late = report.signature is not None and report.signature.hangs
        if self.file is not None and not late and (not self.file.exists() or self.file.stat().st_size < MOST_BYTES):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"key": key, **_plain(report)}) + "\n")

    def forget(self) -> None:
        """Let the next run ask everything again: what was answered led nowhere."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)


def kept_answers(settings: SourceSettings, written: Path | None = None) -> KeptAnswers:
    """Return what earlier runs were told under equal circumstances; written: the script that they wrote too."""
    if settings.repeat > 1 or settings.trace:
        return KeptAnswers(None)
    modules = _own_modules(settings, written)
    if modules is None:
        return KeptAnswers(None)
    name = f"{_digest(json.dumps(_circumstances(settings, modules), sort_keys=True))[:24]}.jsonl"
    file = default_cache_directory(Options()) / "minifier" / name
    answers = KeptAnswers(file)
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # a line that was cut short
            key = row.pop("key")
            answers.known[key] = _report(row)
    return answers


def _own_modules(settings: SourceSettings, written: Path | None) -> dict[str, list[int]] | None:
    """Return time and size of each module that the user may change; None where they are too many."""
    places = (settings.folder, os.getcwd(), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
    found: dict[str, list[int]] = {}
    for place in {os.path.realpath(place) for place in places if place}:
        for folder, below, files in os.walk(place):
            below[:] = [name for name in below if not name.startswith(".") and name not in _NOT_THE_USERS]
            for file in (os.path.join(folder, name) for name in files if name.endswith(".py")):
                with suppress(OSError):  # a link that leads nowhere
                    state = os.stat(file)
                    found[file] = [state.st_mtime_ns, state.st_size]
            if len(found) > MOST_MODULES:
                return None
    if written is not None:
        found.pop(os.path.realpath(written), None)
    return found


def _circumstances(settings: SourceSettings, modules: Mapping[str, list[int]]) -> Mapping[str, object]:
    switches = {name: value for name, value in os.environ.items() if name.startswith(("TORCH", "PLUMBLINE", "OMP_"))}
    switches.pop("PLUMBLINE_CACHE_DIRECTORY", None)
    chosen = {**asdict(settings), "preload": ()}
    versions = [platform.python_version(), platform.machine(), torch.get_num_threads(), *_installed()]
    return {"settings": chosen, "modules": modules, "switches": switches, "versions": versions, "source": _source()}


@cache
def _installed() -> tuple[str, ...]:
    return tuple(sorted(f"{one.metadata['Name']} {one.version}" for one in distributions()))


@cache
def _source() -> str:
    return " ".join(digest_of(folder) for folder in _FOLDERS)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(report: RunReport) -> dict[str, object]:
    return {**asdict(report), "lines": sorted(report.lines), "imported": (), "children": ()}


def _report(row: dict[str, Any]) -> RunReport:
    signature = row.pop("signature")
    found = None if signature is None else FailureSignature(**signature)
    return RunReport(found, **{**row, "lines": frozenset(row["lines"]), "imported": (), "children": ()})
