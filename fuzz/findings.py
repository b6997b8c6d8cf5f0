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
    def is_missing_error(self) -> bool:
        """Return whether only an error that eager raises does not come: of low rank."""
        return self.detail.startswith("missing ")

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
    example: what failed; smaller than what was tried where a part of it fails alone.  programs: how many were judged.
    kinds: how many programs had each kind of verdict, where there were several.  others: further failures.
    cpu_seconds: of this attempt and the processes it started.
    reached, lineage, taken: of an example drawn by a lead (coverage/lead.py): its behaviours, how it was drawn, and
    how many random numbers that took.
    """

    verdict: Verdict
    signature: FuzzSignature | None = None
    notes: tuple[str, ...] = ()
    tainted: bool = False
    details: dict[str, Any] | None = None
    example: Any = None
    programs: int = 1
    kinds: tuple[tuple[str, int], ...] = ()
    others: tuple["TrialResult", ...] = ()
    cpu_seconds: float = 0.0
    reached: frozenset[str] = frozenset()
    lineage: str = ""
    taken: int = 0


def is_finding(verdict: Verdict) -> bool:
    """Return whether a fuzzer reports this: a fault of the compiler's, or of the judge's, and not of the program's."""
    if verdict.kind is VerdictKind.JUDGE_FAILED:
        return True
    return verdict.failed and verdict.kind is not VerdictKind.EAGER_FAILED


def signature_of(verdict: Verdict, involved: tuple[str, ...]) -> FuzzSignature | None:
    """Return the identity of a finding, None for a verdict that is none."""
    if not is_finding(verdict):
        return None
    worst = verdict.worst
    aspect = worst.aspect if worst else ""
    detail = ""
    if worst is not None and aspect == "exceptions":
        raised = re.match(r"raises (\w+)", worst.sentence)
        detail = raised.group(1) if raised else ""
        if detail == "nothing":  # an error of eager's that does not come: of low rank, and told apart by eager's class
            eagers = re.search(r"eager raises (\w+)", worst.sentence)
            detail = f"missing {eagers.group(1) if eagers else ''}"
    elif worst is not None and aspect == "internal_error":
        named = re.search(r"in ([\w ]+): (\w+)", worst.sentence)
        detail = f"{named.group(1)} {named.group(2)}" if named else ""
    return FuzzSignature(verdict.kind.value, aspect, detail, involved)
