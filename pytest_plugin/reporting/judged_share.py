"""What of a test was judged: the boundaries, and the share of its tensor operations that ran compiled."""

from dataclasses import dataclass

from ..judge_access import JudgeSession

NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True)
class JudgedShare:
    """What one body called.

    boundaries: names, each once.  calls: judged ones.  captured: operators in the graphs that were compiled.
    outside: tensor operations that ran outside every boundary; None where they were not counted.
    """

    boundaries: tuple[str, ...]
    calls: int
    captured: int
    outside: int | None

    @property
    def share(self) -> float | None:
        """Return the compiled share of the operations, 0 to 1; None where it is not known."""
        if self.outside is None or self.captured + self.outside == 0:
            return None
        return self.captured / (self.captured + self.outside)

    @property
    def sentence(self) -> str:
        """Return the report line of a test."""
        if not self.boundaries:
            return f"nothing judged, {self.outside or 0} tensor operations of the test's own"
        names = ", ".join(self.boundaries[:NAMES_SHOWN])
        more = len(self.boundaries) - NAMES_SHOWN
        names += f" and {more} more" if more > 0 else ""
        calls = f"{self.calls} call{'s' if self.calls != 1 else ''}"
        share = "" if self.share is None else f", {self.share:.0%} of the tensor operations compiled"
        return f"{names}: {calls} judged{share}"


def judged_share(session: JudgeSession) -> JudgedShare:
    """Return what a session has judged."""
    names = tuple(dict.fromkeys(call.boundary.split(" #")[0] for call in session.calls))
    outside = session.outside.count if getattr(session, "counts_outside", False) else None
    return JudgedShare(names, len(session.calls), session.statistics().ops, outside)
