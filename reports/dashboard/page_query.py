"""What a page is asked for: the runs of which series, up to which one, how many."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from plumbline.compiler.base.errors import UserError

USUAL_NIGHTS = 60
MOST_NIGHTS = 400  # more than a year; a window of this size stays quick


@dataclass(frozen=True, slots=True, kw_only=True)
class PageQuery:
    """series: "suite @ branch", empty for that of the newest run.  until: a run, empty for the newest.  nights: 2 to 400."""

    series: str = ""
    until: str = ""
    nights: int = USUAL_NIGHTS

    @classmethod
    def from_words(cls, words: Mapping[str, str]) -> Self:
        """Return the query of an address; UserError when the number of nights is none."""
        said = words.get("nights") or str(USUAL_NIGHTS)
        if not (said.isascii() and said.isdigit()) or not 2 <= int(said[:9]) <= MOST_NIGHTS:
            raise UserError("not a number of nights", where=said[:40], hint=f"ask for 2 to {MOST_NIGHTS}")
        return cls(series=words.get("series", ""), until=words.get("until", ""), nights=int(said))
