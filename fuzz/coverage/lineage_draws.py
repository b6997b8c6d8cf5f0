"""Examples as the random numbers that drew them: a child takes the first numbers of its parent, then its own.

A lineage is text: `0:17` draws as random.Random("0:17") does; `0:17@35/0:240` takes 35 numbers from the first seed and
all others from the second.  So any example can be varied, whatever draws it, and be drawn again by its lineage.
"""

from random import Random


class LineageDraws(Random):
    """A generator that plays a lineage.  taken: how many numbers it has given."""

    def __init__(self, lineage: str) -> None:
        self.lineage = lineage
        self.taken = 0
        self._parts = [_part(text) for text in lineage.split("/")]
        self._place = 0
        super().__init__(lineage)

    def random(self) -> float:
        """Return the next number, 0 <= x < 1."""
        return self._source().random()

    def getrandbits(self, k: int, /) -> int:
        """Return a whole number of k random bits."""
        return self._source().getrandbits(k)

    def _source(self) -> Random:
        self.taken += 1
        while self._parts[self._place][1] == 0:
            self._place += 1
        source, left = self._parts[self._place]
        self._parts[self._place] = source, left - 1
        return source


def _part(text: str) -> tuple[Random, int]:
    """Return the generator of a part of a lineage, and how many numbers it gives; -1 for all further ones."""
    seed, _, count = text.partition("@")
    return Random(seed), int(count) if count else -1


def child_of(lineage: str, cut: int, seed: str) -> str:
    """Return the lineage that takes the first `cut` numbers of another one, and all further ones from a seed."""
    kept: list[str] = []
    for text in lineage.split("/"):
        own_seed, _, count = text.partition("@")
        taken = min(cut, int(count)) if count else cut
        if taken:
            kept.append(f"{own_seed}@{taken}")
        cut -= taken
    return "/".join([*kept, seed])
