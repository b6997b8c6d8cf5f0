"""The state of a campaign on disk, so that one that was cut short goes on with the next example."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.compiler.base.errors import UserError
from plumbline.reports.atomic_file import write_whole

from .campaign import CampaignReport, CampaignSettings
from .coverage.lead import Lead
from .findings import FuzzSignature
from .program_data import from_plain, to_plain


@dataclass(frozen=True, slots=True)
class CampaignState:
    """Where the state of one campaign is: a file of the folder that names the fuzzer, the compiler and the seed."""

    folder: Path
    mode: str
    compiler: str
    backend: str
    seed: int

    @property
    def file(self) -> Path:
        """Return the file; it does not end in .json, which names saved failures."""
        return self.folder / f"campaign-{self.mode}-{self.compiler}-{self.backend}-{self.seed}.state"

    def write(self, report: CampaignReport, known: tuple[FuzzSignature, ...] = ()) -> None:
        """Write how far the campaign is and what it found; known: from before it was gone on with."""
        signatures = dict.fromkeys((*known, *(failure.signature for failure in report.failures)))
        data = {
            "next_number": report.next_number,
            "examples": report.examples,
            "duplicates": report.duplicates,
            "seconds": report.seconds,
            "cpu_seconds": report.cpu_seconds,
            "verdicts": dict(report.verdicts),
            "lead": report.lead.to_plain() if report.lead is not None else None,
            "known": [to_plain(signature) for signature in signatures],
        }
        write_whole(self.file, json.dumps(data, indent=1) + "\n")

    def resumed(self, report: CampaignReport, options: CampaignSettings) -> tuple[CampaignReport, CampaignSettings]:
        """Return the report and options to go on with; unchanged where there is no state."""
        data = self._read()
        if not data:
            return report, options
        report.next_number, report.examples = int(data["next_number"]), int(data["examples"])
        report.duplicates, report.seconds = int(data["duplicates"]), float(data["seconds"])
        report.cpu_seconds, report.verdicts = float(data["cpu_seconds"]), Counter(data["verdicts"])
        if data.get("lead") is not None:
            report.lead = self._lead(data["lead"])
        known = tuple(from_plain(FuzzSignature, one) for one in data["known"])
        return report, replace(options, known=known)

    def _lead(self, data: Any) -> Lead:
        try:
            return Lead.from_plain(data)
        except (KeyError, TypeError, ValueError) as error:
            raise self._unreadable(f"its lead: {type(error).__name__}: {error}") from None

    def _unreadable(self, why: str) -> UserError:
        hint = "delete it, or run without --resume"
        return UserError("cannot read the state of the campaign", where=str(self.file), why=why[:80], hint=hint)

    def _read(self) -> dict[str, Any]:
        try:
            data: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise self._unreadable(str(error)) from None
        return data
