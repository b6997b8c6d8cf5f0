"""The result of a judgement: kinds ordered by weight, findings with statistics, one sentence."""

from dataclasses import dataclass, field
from enum import StrEnum


class VerdictKind(StrEnum):
    """The kinds of verdict, lightest first; a call's verdict is the heaviest of its findings."""

    EQUAL = "EQUAL"  # bitwise equal
    NOISE = "NOISE"  # within the program's own rounding noise
    BETTER = "BETTER"  # differs from eager, closer to fp64
    DESIGN = "DESIGN"  # the program asks whether it is compiled and goes another way; right with the flag set
    NO_REFERENCE = "NO_REFERENCE"  # eager or fp64 is not available; judged without it as far as possible
    JUDGE_FAILED = "JUDGE_FAILED"  # an error inside the judge; the call ran compiled, unjudged
    UNSTABLE = "UNSTABLE"  # rounding alone decides too many positions
    EAGER_FAILED = "EAGER_FAILED"  # eager itself raises, and the compiled program raises alike
    VACUOUS = "VACUOUS"  # nothing was compiled
    SENSITIVE = "SENSITIVE"  # every call passes, but the test's own tolerance is exceeded
    NONDETERMINISTIC = "NONDETERMINISTIC"  # the compiled program differs from itself, eager does not
    WRONG = "WRONG"  # value, gradient, mutation, alias, metadata, exception or state differs
    CRASH = "CRASH"  # internal error, native crash, hang, out of memory

    @property
    def weight(self) -> int:
        """Return the rank of this kind, 0 for EQUAL; the heaviest finding decides."""
        return _ORDER[self]

    @property
    def fails(self) -> bool:
        """Return whether a test with this verdict fails by the verdict alone."""
        return self in _FAILING


_ORDER = {kind: rank for rank, kind in enumerate(VerdictKind)}
_FAILING = frozenset({VerdictKind.NONDETERMINISTIC, VerdictKind.WRONG, VerdictKind.CRASH})

# An error of this many units of noise means that the program does not round at that position at all.
NOTHING_ROUNDS = 1e12


@dataclass(frozen=True, slots=True)
class ErrorStatistics:
    """How far a floating-point tensor is from its reference, in units of the program's own noise.

    t_element, t_rms, t_bias: test statistics, <= 1 passes.  margin: the largest of them.
    unstable: share of positions, 0 to 1, that rounding alone decides.
    worst_index: position of the worst element; actual, eager, reference: its values (float64).
    error, scale: |actual - reference| there, and one unit of noise there.
    """

    t_element: float
    t_rms: float
    t_bias: float
    margin: float
    unstable: float = 0.0
    worst_index: tuple[int, ...] | None = None
    actual: float | None = None
    eager: float | None = None
    reference: float | None = None
    error: float | None = None
    scale: float | None = None

    @property
    def units(self) -> float | None:
        """Return the worst error in units of the program's noise, None where either is unknown or nothing rounds."""
        if self.error is None or not self.scale or self.error > NOTHING_ROUNDS * self.scale:
            return None
        return self.error / self.scale


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference (or its absence) in one aspect at one place.

    where: path as the user would write it, `output[0]`, `gradient of weight`, `self.cache`.
    sentence: the difference in words, with its numbers.
    may_round: a number that is no tensor's, and that code without any tensor can round otherwise.
    """

    kind: VerdictKind
    aspect: str
    where: str
    sentence: str
    numbers: ErrorStatistics | None = None
    may_round: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement of one call.

    kind: the heaviest kind among the findings that are not ignored or reported only.
    sentence: one line for a person.  findings: heaviest first; EQUAL ones are left out.
    stage: first backend of the ladder that is wrong, None while unknown or when nothing is wrong.
    graphs, ops, breaks, recompiles: what the compiler did for this boundary so far.
    reference_seconds, candidate_seconds: wall time of one eager and of the live compiled run.
    """

    kind: VerdictKind
    sentence: str
    findings: tuple[Finding, ...] = ()
    stage: str | None = None
    graphs: int = 0
    ops: int = 0
    breaks: tuple[str, ...] = ()
    recompiles: int = 0
    reference_seconds: float = 0.0
    candidate_seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())

    @property
    def failed(self) -> bool:
        """Return whether this verdict fails a test."""
        return self.kind.fails

    @property
    def worst(self) -> Finding | None:
        """Return the heaviest finding, None when everything is equal."""
        return self.findings[0] if self.findings else None

    @property
    def margin(self) -> float:
        """Return the largest test statistic of all findings, 0.0 when all is bitwise equal."""
        return max((f.numbers.margin for f in self.findings if f.numbers), default=0.0)

    def __str__(self) -> str:
        """Return the verdict as text: the sentence, then one line a finding."""
        lines = [f"{self.kind.value}: {self.sentence}"]
        lines += [f"  {f.kind.value:<12} {f.aspect:<10} {f.where}: {f.sentence}" for f in self.findings]
        return "\n".join(lines)
