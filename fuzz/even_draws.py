"""Even draws for hypothesis: every choice uniform and independent, so that a few hundred examples differ.

Hypothesis' own generation begins with tiny examples and varies what it has drawn, which suits quick tests: of 400
programs a fifth were repetitions and a quarter had one step.  A provider (its documented interface for other
generators) draws instead; replay and shrinking stay hypothesis' own.
"""

import random
from typing import Any

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, PrimitiveProvider

BACKEND = "plumbline-even"


class EvenDraws(PrimitiveProvider):
    """Draws from one seeded generator for the process; `seed_draws` seeds it again."""

    lifetime = "test_case"
    generator = random.Random(0)

    def draw_boolean(self, p: float = 0.5) -> bool:
        """Return True with probability p."""
        return self.generator.random() < p

    def draw_integer(
        self,
        min_value: int | None = None,
        max_value: int | None = None,
        *,
        weights: dict[int, float] | None = None,
        shrink_towards: int = 0,
    ) -> int:
        """Return a whole number between two bounds, both of which our strategies always give."""
        del weights, shrink_towards
        if min_value is None or max_value is None:
            raise NotImplementedError("our strategies draw whole numbers between bounds only")
        return self.generator.randint(min_value, max_value)

    def draw_float(self, **constraints: Any) -> float:
        """Refuse: no strategy of ours draws floats."""
        raise NotImplementedError("our strategies draw no floats")

    def draw_string(self, *args: Any, **constraints: Any) -> str:
        """Refuse: no strategy of ours draws text."""
        raise NotImplementedError("our strategies draw no text")

    def draw_bytes(self, *args: Any, **constraints: Any) -> bytes:
        """Refuse: no strategy of ours draws bytes."""
        raise NotImplementedError("our strategies draw no bytes")


def seed_draws(number: int) -> None:
    """Seed the draws; the same number gives the same examples."""
    EvenDraws.generator = random.Random(number)


AVAILABLE_PROVIDERS[BACKEND] = EvenDraws
