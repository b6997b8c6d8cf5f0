"""A failing example and its signature, which tells a new failure from a repeated one."""

import hashlib
import re
from dataclasses import dataclass
from typing import Any

from plumbline.oracle.verdict import Verdict, VerdictKind


@dataclass(frozen=True, slots=True, order=True)
class FuzzSignature:
    """The identity of a failure.

    kind: of the verdict.  aspect: what differs.  detail: class of the exception, place of a rule; may be empty.
    involved: operators and transforms, or slots of state, that the shrunk example consists of.
    """

    kind: str
    aspect: str
    detail: str
    involved: tuple[str, ...] = ()

    def same_failure(self, other: "FuzzSignature") -> bool:
        """Return whether two failures differ at most in what the examples are made of."""
        return (self.kind, self.aspect, self.detail) == (other.kind, other.aspect, other.detail)

    def explains(self, other: "FuzzSignature") -> bool:
        """Return whether this shrunk failure explains a larger one: the same failure, and nothing else needed."""
        return self.same_failure(other) and set(self.involved) <= set(other.involved)

    @property
    def name(self) -> str:
        """Return a short name for files: words of the signature and six digits."""
        text = "|".join((self.kind, self.aspect, self.detail, *self.involved))
        digits = hashlib.blake2s(text.encode(), digest_size=3).hexdigest()
        words = re.sub(r"[^a-z0-9_]+", "-", "-".join((self.kind, self.aspect, *self.involved[:3])).lower())
        return f"{words.strip('-')[:60]}-{digits}"

    def __str__(self) -> str:
        """Return the signature as one line."""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.kind} {self.aspect}{detail}: {', '.join(self.involved) or 'nothing'}"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of one example.

    verdict: of the judge, the worst of all its calls.  signature: of the failure, None without one.
    notes: remarks that are not failures, such as over-guarding.  tainted: the process may be damaged.
    details: plain data that an attempt hands back besides its verdict, None for nothing.
    """

    verdict: Verdict
    signature: FuzzSignature | None = None
    notes: tuple[str, ...] = ()
    tainted: bool = False
    details: dict[str, Any] | None = None


def signature_of(verdict: Verdict, involved: tuple[str, ...]) -> FuzzSignature | None:
    """Return the identity of a failed verdict, None for one that does not fail."""
    if not verdict.failed or verdict.kind is VerdictKind.EAGER_FAILED:
        return None
    worst = verdict.worst
    aspect = worst.aspect if worst else ""
    detail = ""
    if worst is not None and aspect == "exceptions":
        raised = re.match(r"raises (\w+)", worst.sentence)
        detail = raised.group(1) if raised else ""
    return FuzzSignature(verdict.kind.value, aspect, detail, involved)
