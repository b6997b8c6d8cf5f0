"""Deviations that are known: data with a reason for each, which the sweep counts apart and a test keeps short."""

import fnmatch
import tomllib
from dataclasses import dataclass
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from .case_trial import CaseFault
from .cases import SweepCase, SweepTask, read_case

_HINT = "see KnownDeviation in fuzz/operator_sweep/known_deviations.py"
DATA = Path(__file__).with_name("known_deviations.toml")


@dataclass(frozen=True, slots=True)
class KnownDeviation:
    """One entry.

    operator, dtype, context, sizes, backend: patterns as of file names, `*` for all.  aspect: of the fault.
    reason: why it stays.  example: the name of a case that shows it; a test asks for it.
    """

    operator: str
    aspect: str
    reason: str
    example: str
    dtype: str = "*"
    context: str = "*"
    sizes: str = "*"
    backend: str = "*"

    def concerns(self, task: SweepTask) -> bool:
        """Return whether the entry may be about cases of a task."""
        facts = (task.operator, task.dtype, "dynamic" if task.dynamic else "static", task.backend)
        patterns = (self.operator, self.dtype, self.sizes, self.backend)
        return all(fnmatch.fnmatchcase(text, pattern) for text, pattern in zip(facts, patterns, strict=True))

    def matches(self, case: SweepCase, fault: CaseFault) -> bool:
        """Return whether the entry explains a fault of a case."""
        pairs = ((case.context, self.context), (fault.aspect, self.aspect))
        return self.concerns(case.task) and all(fnmatch.fnmatchcase(text, pattern) for text, pattern in pairs)


def known_deviations(file: Path = DATA) -> tuple[KnownDeviation, ...]:
    """Return the entries; raises UserError for one without a reason or an example."""
    entries = tomllib.loads(file.read_text(encoding="utf-8")).get("deviation", [])
    try:
        known = tuple(KnownDeviation(**entry) for entry in entries)
    except TypeError as error:
        raise UserError("an entry cannot be read", where=str(file), why=str(error), hint=_HINT) from None
    for entry in known:
        if not entry.reason:
            raise UserError(f"the entry of {entry.operator} has no reason", where=str(file), hint=_HINT)
        read_case(entry.example)
    return known
