"""Scores of a judge over the cases: recall and precision by class of fault, and where it differs from what is known."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tabulate import tabulate

from .bench_cases import STOCK, BenchCase, Status

HEADERS = ("class of fault", "cases", "live", "flagged", "missed", "raise", "right", "false alarms", "unknown")


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What a judge said of one case.

    flagged: it called the program wrong.  verdict, sentence, aspect: its own words, "" where a tool gives none.
    remark: why there may be no judgement, "" if there is one.  seconds: wall time.
    """

    case: BenchCase
    flagged: bool
    verdict: str = ""
    sentence: str = ""
    aspect: str = ""
    remark: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class BenchReport:
    """Outcomes of one judge on one compiler and backend; filled while the bench runs.

    judge: who judged.  version: of torch.  total: how many cases there are to do.
    """

    judge: str
    compiler: str
    backend: str
    version: str
    total: int = 0
    outcomes: list[CaseOutcome] = field(default_factory=list)
    interrupted: bool = False

    def expected(self, outcome: CaseOutcome) -> bool | None:
        """Return whether the case ought to be flagged, None where nobody knows."""
        return outcome.case.expected(self.compiler, self.backend, self.version)

    def is_live(self, outcome: CaseOutcome) -> bool:
        """Return whether the answer is silently wrong here: what recall counts."""
        silent = outcome.case.status(self.compiler, self.version) is Status.LIVE
        return silent and self.expected(outcome) is True

    @property
    def missed(self) -> list[CaseOutcome]:
        """Return the cases that ought to be flagged and are not."""
        return [one for one in self.outcomes if self.expected(one) is True and not one.flagged]

    @property
    def false_alarms(self) -> list[CaseOutcome]:
        """Return the cases that ought not to be flagged and are."""
        return [one for one in self.outcomes if self.expected(one) is False and one.flagged]

    @property
    def failed(self) -> bool:
        """Return whether a case differs from what is known of it."""
        return bool(self.missed or self.false_alarms)

    @property
    def recall(self) -> float | None:
        """Return the share of the silently wrong cases that are flagged, None without one."""
        live = [one for one in self.outcomes if self.is_live(one)]
        return sum(one.flagged for one in live) / len(live) if live else None

    @property
    def precision(self) -> float | None:
        """Return the share of the flagged cases that are at fault, None where nothing is flagged."""
        flagged = [one for one in self.outcomes if one.flagged and self.expected(one) is not None]
        return sum(self.expected(one) is True for one in flagged) / len(flagged) if flagged else None

    def counts(self, outcomes: Sequence[CaseOutcome]) -> tuple[int, ...]:
        """Return the numbers of one row of the table, in the order of HEADERS."""
        live = [one for one in outcomes if self.is_live(one)]
        known = Counter(self.expected(one) for one in outcomes)
        return (
            len(outcomes),
            len(live),
            sum(one.flagged for one in live),
            sum(not one.flagged for one in live),
            known[True] - len(live),
            known[False],
            sum(one.flagged for one in outcomes if self.expected(one) is False),
            known[None],
        )

    def table(self) -> str:
        """Return the table: a row for each class of fault, and one for all."""
        faults = dict.fromkeys(one.case.fault for one in self.outcomes)
        rows = [(fault, *self.counts([one for one in self.outcomes if one.case.fault == fault])) for fault in faults]
        rows.append(("all", *self.counts(self.outcomes)))
        return str(tabulate(rows, headers=HEADERS))

    def summary(self) -> str:
        """Return the report as text: the table, the rates, and every case that differs from what is known of it."""
        lines = [f"{self.judge} on {self.compiler} {self.backend}, torch {self.version}", "", self.table(), ""]
        lines.append(f"recall {_share(self.recall)}, precision {_share(self.precision)}")
        if self.interrupted:
            lines.append(f"interrupted after {len(self.outcomes)} of {self.total} cases")
        groups = {
            "missed": self.missed,
            "false alarm": self.false_alarms,
            "known fault": [o for o in self.outcomes if o.flagged and self.expected(o) and self.compiler != STOCK],
            "flagged, nothing known": [o for o in self.outcomes if o.flagged and self.expected(o) is None],
            "not judged": [o for o in self.outcomes if o.remark],
        }
        for title, outcomes in groups.items():
            lines += [f"{title}: {_line(one)}" for one in outcomes]
        return "\n".join(lines)

    def as_data(self) -> dict[str, Any]:
        """Return the report as plain data for JSON."""
        cases = [
            {
                "name": one.case.name,
                "fault": one.case.fault,
                "status": one.case.status(self.compiler, self.version).value,
                "expected": self.expected(one),
                "flagged": one.flagged,
                **{name: value for name, value in asdict(one).items() if name not in ("case", "flagged")},
            }
            for one in self.outcomes
        ]
        return {
            "judge": self.judge,
            "compiler": self.compiler,
            "backend": self.backend,
            "torch": self.version,
            "recall": self.recall,
            "precision": self.precision,
            "complete": not self.interrupted,
            "cases": cases,
        }


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _line(outcome: CaseOutcome) -> str:
    said = f"{outcome.verdict}: {outcome.sentence}" if outcome.verdict else "flagged" if outcome.flagged else "passed"
    remark = f" [{outcome.remark}]" if outcome.remark else ""
    return f"{outcome.case.fault}/{outcome.case.name}: {said}{remark}"
