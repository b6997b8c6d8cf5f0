"""The state of a campaign on disk, so that one that was cut short goes on with the next example."""

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plumbline.compiler.base.errors import UserError
from plumbline.reports.atomic_file import write_whole

from .campaign import CampaignReport, CampaignSettings
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
        known = tuple(from_plain(FuzzSignature, one) for one in data["known"])
        return report, replace(options, known=known)

    def _read(self) -> dict[str, Any]:
        try:
            data: dict[str, Any] = json.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            hint = "delete it, or run without --resume"
            what = "cannot read the state of the campaign"
            raise UserError(what, where=str(self.file), why=str(error)[:80], hint=hint) from None
        return data
