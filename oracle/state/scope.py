"""State that outlives one call: fixture values and module globals, rewound after each backend's test."""

from collections.abc import Mapping

from .random_state import seed_everything
from .snapshot import Snapshot

__all__ = ["StateScope", "seed_everything"]


class StateScope:
    """The content of some objects at one moment, restored later; what cannot be rewound is left alone."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    @classmethod
    def take(cls, roots: Mapping[str, object]) -> "StateScope":
        """Save all that the roots reach."""
        return cls(Snapshot.take(roots))

    def rewind(self) -> None:
        """Restore everything."""
        self._snapshot.rewind()
