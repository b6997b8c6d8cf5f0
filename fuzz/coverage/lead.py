"""The lead of a campaign: how each example is drawn, by what earlier ones have reached.

Three ways take turns, each as often as it brings new behaviour, and never quite left out: *plain*, one draw; *new*, of
several draws the one that would do most that is new; *child*, of an example that brought something new, its
first random numbers and then others.  A lead depends on nothing but the seed and the results before the round.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ..findings import TrialResult
from .behaviours import FAMILIES, Behaviours
from .lineage_draws import child_of

WAYS = {"plain": 1, "new": 8, "child": 4}
"""The ways, and how many draws each chooses from: a draw costs a small part of a compile."""
FADING = 0.98  # of what a way has brought, for each example after it
LEAST_SHARE = 0.1
MOST_KEPT = 400


@dataclass(frozen=True, slots=True)
class LedDraw:
    """How an example is drawn.  lineage: of the first choice; known: digests of what was reached before."""

    way: str
    lineage: str
    choices: int = 1
    known: frozenset[int] = frozenset()

    def lineages(self) -> list[str]:
        """Return the lineages of all choices."""
        return [self.lineage, *(f"{self.lineage}.{number}" for number in range(1, self.choices))]

    def worth(self, behaviours: Behaviours) -> int:
        """Return how much of what an example would reach is new."""
        return sum(digest(one) not in self.known for one in behaviours)


def digest(behaviour: str) -> int:
    """Return four bytes that stand for a behaviour: tasks travel to other machines."""
    return int.from_bytes(hashlib.blake2s(behaviour.encode(), digest_size=4).digest(), "little")


@dataclass(slots=True)
class KeptExample:
    """An example that brought something new.  brought: how much, less the children that brought nothing."""

    lineage: str
    taken: int
    brought: float


@dataclass(slots=True)
class Lead:
    """What a campaign has reached, and the examples that it goes on from.

    reached: how often each behaviour was.  gains, turns: of each way, fading.
    """

    reached: Counter[str] = field(default_factory=Counter)
    kept: list[KeptExample] = field(default_factory=list)
    gains: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WAYS, 1.0))
    turns: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WAYS, 1.0))
    parents: dict[str, KeptExample] = field(default_factory=dict)

    def plan(self, seed: int, numbers: Iterable[int]) -> list[LedDraw]:
        """Return how the examples of a round are drawn."""
        known = frozenset(map(digest, self.reached))
        self.parents.clear()
        return [self._planned(f"{seed}:{number}", known) for number in numbers]

    def _planned(self, seed: str, known: frozenset[int]) -> LedDraw:
        draw = random.Random(f"lead {seed}")
        rates = {way: (self.gains[way] / self.turns[way]) ** 2 for way in WAYS}
        least = LEAST_SHARE * sum(rates.values())
        way = draw.choices(tuple(WAYS), [max(rate, least) for rate in rates.values()])[0]
        lineage = seed
        if way == "child" and self.kept:
            parent = draw.choices(self.kept, [one.brought for one in self.kept])[0]
            lineage = child_of(parent.lineage, draw.randrange(max(1, parent.taken)), seed)
            self.parents[seed] = parent
        return LedDraw(way, lineage, WAYS[way], known)

    def take(self, seed: int, number: int, led: LedDraw, trial: TrialResult) -> None:
        """Learn from the result of an example."""
        new = sum(one not in self.reached for one in trial.reached)
        self.reached.update(trial.reached)
        for way in WAYS:
            self.gains[way] *= FADING
            self.turns[way] *= FADING
        self.gains[led.way] += new
        self.turns[led.way] += 1
        parent = self.parents.pop(f"{seed}:{number}", None)
        if parent is not None:
            parent.brought = max(0.1, parent.brought * 0.7 + new)
        if new and trial.lineage:
            self.kept.append(KeptExample(trial.lineage, trial.taken, float(new)))
            if len(self.kept) > MOST_KEPT:
                self.kept.remove(min(self.kept, key=lambda one: one.brought))

    def summary(self) -> str:
        """Return how much of each family was reached, as one line."""
        counts = Counter(one.partition(":")[0] for one in self.reached)
        told = ", ".join(f"{counts[family]} {family}" for family in FAMILIES if counts[family])
        return f"reached: {told or 'nothing'}; {len(self.kept)} examples brought something new"

    def to_plain(self) -> dict[str, Any]:
        """Return it as data for a JSON file."""
        kept = [[one.lineage, one.taken, one.brought] for one in self.kept]
        return {"reached": dict(self.reached), "kept": kept, "gains": self.gains, "turns": self.turns}

    @staticmethod
    def from_plain(data: dict[str, Any]) -> "Lead":
        """Return what to_plain() wrote; raises KeyError, TypeError or ValueError for anything else."""
        kept = [KeptExample(str(lineage), int(taken), float(brought)) for lineage, taken, brought in data["kept"]]
        gains, turns = ({way: float(data[name][way]) for way in WAYS} for name in ("gains", "turns"))
        return Lead(Counter(data["reached"]), kept, gains, turns)
