"""What the gate says: findings with levels, and the report they make."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from ..verdict_marks import one_line

INVALID, REGRESSION, FAILING, AMBER, WARNING, FLAKY, ACCEPTED, STILL, IMPROVEMENT = (
    "INVALID",
    "REGRESSION",
    "FAILING",
    "AMBER",
    "WARNING",
    "FLAKY",
    "ACCEPTED",
    "STILL",
    "IMPROVEMENT",
)
LEVELS = {
    INVALID: "the comparison says nothing, or a case is no longer looked at: red",
    REGRESSION: "worse than before: red",
    FAILING: "got worse on an earlier night, and still is: red",
    AMBER: "may be worse; the next night tells",
    WARNING: "close to being worse, or judged by less",
    FLAKY: "failed and passed on the same code; not counted",
    ACCEPTED: "worse, and accepted by name until a date",
    STILL: "fails, and failed in the baseline too; not counted",
    IMPROVEMENT: "better than before",
}
"""From the most serious to the best."""

RED_LEVELS = frozenset({INVALID, REGRESSION, FAILING})
RED, ORANGE, GREEN, VOID = "red", "amber", "green", "void"

Case = tuple[str, str]
"""A test and its column, `compiler:backend`."""


@dataclass(frozen=True, slots=True)
class GateFinding:
    """One thing to say about a case, or about the whole run when `test` is empty.

    rule: which rule says so, a short name.
    """

    level: str
    rule: str
    text: str
    test: str = ""
    column: str = ""

    @property
    def case(self) -> str:
        """Return `test [column]`, empty for the whole run."""
        return f"{self.test} [{self.column}]" if self.test else self.column

    def __str__(self) -> str:
        """Return the finding as one line."""
        return one_line(f"{self.level} {self.case}: {self.text}" if self.case else f"{self.level} {self.text}")


@dataclass(frozen=True, slots=True)
class GateReport:
    """All findings, the serious ones first; `compared` counts the cases that both sides have.

    source: what the run was compared with, in words.  void: why the night says nothing, else "".
    """

    changes: tuple[GateFinding, ...]
    compared: int
    source: str
    void: str = ""

    @property
    def red(self) -> bool:
        """Return whether the gate is closed."""
        return any(finding.level in RED_LEVELS for finding in self.changes)

    @property
    def verdict(self) -> str:
        """Return red, void, amber or green."""
        if self.void:
            return VOID
        if self.red:
            return RED
        return ORANGE if self.of(AMBER) else GREEN

    def of(self, level: str) -> tuple[GateFinding, ...]:
        """Return the findings of one level."""
        return tuple(finding for finding in self.changes if finding.level == level)

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain data, for other programs."""
        changes = [
            {"level": f.level, "rule": f.rule, "case": f.case, "test": f.test, "column": f.column}
            | {"text": one_line(f.text)}
            for f in self.changes
        ]
        return {
            "verdict": self.verdict,
            "red": self.red,
            "compared": self.compared,
            "source": self.source,
            "void": self.void,
            "changes": changes,
        }

    def __str__(self) -> str:
        """Return one line per finding, then one line with the result."""
        counts = Counter(finding.level for finding in self.changes)
        said = ", ".join(f"{count} {level.lower()}" for level, count in counts.items()) or "no change"
        end = one_line(f"gate {self.verdict.upper()}: {self.compared} cases compared with {self.source}; {said}")
        return "\n".join([*map(str, self.changes), *([self.void] if self.void else []), end])


def in_order(findings: Iterable[GateFinding]) -> tuple[GateFinding, ...]:
    """Return findings with the serious first, by case."""
    order = {level: place for place, level in enumerate(LEVELS)}
    return tuple(sorted(findings, key=lambda each: (order[each.level], each.test, each.column, each.rule)))
