"""The signature of a failure: what must stay the same while its program shrinks, so that it stays the same bug."""

import math
import re
import sysconfig
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

from plumbline.oracle.verdict import Finding, Verdict, VerdictKind

CLEAR_MARGIN, GROSS_MARGIN = 3.0, 1000.0
"""Test statistics from here on are clear of the noise, and grossly wrong.  A reduction may not go from a worse band
to a better one: there it would show another operator's doubtful rounding, not the bug."""
BANDS = {"": 0, "doubtful": 0, "clear": 1, "gross": 2, "exact": 2, "non-finite": 2}
"""How bad, by band; what is exact or not finite is wrong beyond any rounding."""


@dataclass(frozen=True, slots=True)
class FailureSignature:
    """How a call fails.

    kind: WRONG, CRASH or NONDETERMINISTIC.  aspect: of the most serious finding (`values`, `gradients`, ...).
    phase: where an exception came from: `compile`, `run` or `backward`; empty for a difference.
    exception, site: class name of the root cause, and `file:function` where it was raised; empty for a difference.
    band: `exact` (integers, booleans, structure), `non-finite` (NaN or infinity on one side only), or how far out of
    the noise: `gross`, `clear`, `doubtful`.  sign: of the error at the worst element, -1, 0 or 1; told, not required:
    a reduction may negate what follows.
    """

    kind: str
    aspect: str
    phase: str = ""
    exception: str = ""
    site: str = ""
    band: str = "exact"
    sign: int = 0

    def matches(self, other: "FailureSignature") -> bool:
        """Return whether `other`, found on a smaller program, is this failure."""
        same = replace(self, sign=0, band="") == replace(other, sign=0, band="")
        return same and BANDS[other.band] >= BANDS[self.band]

    @property
    def is_exception(self) -> bool:
        """Return whether the failure is an exception (or a death), not a difference."""
        return self.aspect == "exceptions"

    @property
    def hangs(self) -> bool:
        """Return whether the failure is that a call does not return."""
        return self.exception == "hang"

    def sentence(self) -> str:
        """Return the signature in words."""
        if self.is_exception:
            place = f" at {self.site}" if self.site else ""
            return f"{self.kind}: {self.exception or 'an exception'} in the {self.phase or 'run'}{place}"
        return f"{self.kind}: {self.aspect} differ ({self.band})"


def signature_of(verdict: Verdict, error: BaseException | None = None, phase: str = "run") -> FailureSignature | None:
    """Return the signature of a failed verdict, None for one that does not fail.

    error: what the compiled program raised, if it did; the verdict holds its words only.
    """
    worst = verdict.worst
    if not verdict.failed or worst is None:
        return None
    if worst.aspect == "exceptions":
        return exception_signature(error, "backward" if "backward" in worst.where else phase, verdict.kind)
    return finding_signature(worst)


def finding_signature(finding: Finding) -> FailureSignature:
    """Return the signature of one difference."""
    return FailureSignature(finding.kind.value, finding.aspect, band=_band(finding), sign=_sign(finding))


@dataclass(slots=True)
class SearchTarget:
    """The failure that a reduction looks for; observation may trace it back to the value where it begins."""

    signature: FailureSignature


def exception_signature(
    error: BaseException | None, phase: str, kind: VerdictKind = VerdictKind.CRASH
) -> FailureSignature:
    """Return the signature of an exception by its root cause; error None: it is not known."""
    if error is None:
        return FailureSignature(kind.value, "exceptions", phase)
    root = root_cause(error)
    return FailureSignature(kind.value, "exceptions", phase, type(root).__name__, _site(root))


def root_cause(error: BaseException) -> BaseException:
    """Return the exception that started it all, below every wrapper of a compiler."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        inner = getattr(error, "inner_exception", None) or error.__cause__
        if not isinstance(inner, BaseException):
            break
        error = inner
    return error


def _site(error: BaseException) -> str:
    """Return `<folder>/<file>:<function>` of the innermost frame outside Python's library; line numbers do not last.

    What stands in the program itself is copied into the script, so there the function alone is named.
    """
    everything = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in everything if not _is_pythons_own(frame.filename)] or everything
    if not frames:
        return ""
    parts = frames[-1].filename.replace("\\", "/").split("/")
    if _GENERATED.fullmatch(parts[-1]):
        return f"generated code:{frames[-1].name}"
    if not _is_installed(frames[-1].filename):
        return f"the program:{frames[-1].name}"
    return f"{'/'.join(parts[-2:])}:{frames[-1].name}"


def _is_pythons_own(file: str) -> bool:
    return file.startswith(sysconfig.get_path("stdlib")) and "site-packages" not in file


def _is_installed(file: str) -> bool:
    resolved = Path(file).resolve()
    return "site-packages" in file or _is_pythons_own(file) or any(resolved.is_relative_to(each) for each in _OURS)


_OURS = tuple(Path(__file__).resolve().parents[1] / name for name in ("compiler", "oracle", "minifier"))
_GENERATED = re.compile(r"[a-z0-9]{20,}\.py|<.*>")  # files named by their hash, graphs compiled from text


def _band(finding: Finding) -> str:
    numbers = finding.numbers
    if numbers is None:
        return "exact"
    actual, eager = numbers.actual, numbers.eager
    if actual is not None and eager is not None and math.isfinite(actual) != math.isfinite(eager):
        return "non-finite"
    if numbers.margin < GROSS_MARGIN:  # False for NaN: nothing is worse
        return "clear" if numbers.margin >= CLEAR_MARGIN else "doubtful"
    return "gross"


def _sign(finding: Finding) -> int:
    numbers = finding.numbers
    if numbers is None or numbers.actual is None or numbers.eager is None:
        return 0
    return (numbers.actual > numbers.eager) - (numbers.actual < numbers.eager)
