"""What a page is asked for: the runs of which series, up to which one, how many."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from plumbline.compiler.base.errors import UserError

USUAL_NIGHTS = 60
MOST_NIGHTS = 400  # more than a year; a window of this size stays quick


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """Which nights to show.

    series: "suite @ branch", empty for that of the newest run.  until: a run's id, empty for the newest.
    """

    series: str = ""
    until: str = ""
    nights: int = USUAL_NIGHTS

    def changed(self, words: Mapping[str, str]) -> Self:
        """Return the query with what an address says; UserError when its number of nights is none."""
        said = words.get("nights", "")
        if said and (not (said.isascii() and said.isdigit()) or not 2 <= int(said[:9]) <= MOST_NIGHTS):
            raise UserError("not a number of nights", where=said[:40], hint=f"ask for 2 to {MOST_NIGHTS}")
        return replace(
            self,
            series=words.get("series") or self.series,
            until=words.get("until") or self.until,
            nights=int(said) if said else self.nights,
        )
