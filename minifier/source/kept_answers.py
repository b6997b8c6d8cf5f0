"""Answers that outlive a run: what was asked about a candidate is not asked again by the next run of the command.

They lie in `minifier` of the cache folder, one file for everything that an answer depends on besides the candidate: the
source of plumbline, versions, the machine, how candidates are run, and the user's own modules.  Of a failure that comes
now and then nothing is kept, and no answer that a busy machine could have given: that a run takes too long.
"""

import hashlib
import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch

from plumbline.compiler.base.options import Options, default_cache_directory
from plumbline.compiler.stored.process_facts import digest_of

from ..failure_signature import FailureSignature
from .source_run import RunReport, SourceSettings

MOST_BYTES = 4_000_000
"""Of one file; answers beyond are asked again."""
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
        self.known[key] = report
        late = report.signature is not None and report.signature.exception == "hang"
        if self.file is not None and not late and (not self.file.exists() or self.file.stat().st_size < MOST_BYTES):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps({"key": key, **_plain(report)}) + "\n")
        return report

    def forget(self) -> None:
        """Let the next run ask everything again: what was answered led nowhere."""
        if self.file is not None:
            self.file.unlink(missing_ok=True)


def kept_answers(settings: SourceSettings) -> KeptAnswers:
    """Return what earlier runs were told under equal circumstances."""
    if settings.repeat > 1 or settings.trace:
        return KeptAnswers(None)
    name = f"{_digest(json.dumps(_circumstances(settings), sort_keys=True))[:24]}.jsonl"
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


def _circumstances(settings: SourceSettings) -> Mapping[str, object]:
    own = Path(settings.folder)
    modules = {str(file): file.stat().st_mtime_ns for file in sorted(own.glob("*.py"))} if settings.folder else {}
    switches = {name: value for name, value in os.environ.items() if name.startswith(("TORCH", "PLUMBLINE", "OMP_"))}
    switches.pop("PLUMBLINE_CACHE_DIRECTORY", None)
    chosen = {**asdict(settings), "preload": ()}
    versions = [torch.__version__, platform.python_version(), platform.machine(), torch.get_num_threads()]
    return {"settings": chosen, "modules": modules, "switches": switches, "versions": versions, "source": _source()}


@cache
def _source() -> str:
    return " ".join(digest_of(folder) for folder in _FOLDERS)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(report: RunReport) -> dict[str, object]:
    return {**asdict(report), "lines": sorted(report.lines)}


def _report(row: dict[str, Any]) -> RunReport:
    signature = row.pop("signature")
    found = None if signature is None else FailureSignature(**signature)
    return RunReport(found, **{**row, "lines": frozenset(row["lines"])})
