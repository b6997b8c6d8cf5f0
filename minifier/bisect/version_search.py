"""In which versions a failure is there: the first bad one, the last good one before it, and the one that fixed it.

One version is known to be bad.  Downwards and upwards from it the edge is found by halving, on the assumption that the
failure came once and went once; a version that cannot be tried makes room for its neighbour.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum


class VersionTrial(Enum):
    """What a version does; the values are the exit statuses that `git bisect run` takes."""

    GOOD = 0
    BAD = 1
    UNTRIED = 125


Try = Callable[[str], VersionTrial]


@dataclass(frozen=True, slots=True)
class VersionFinding:
    """The edges of a failure.

    first_bad: None where no version is bad.  last_good: of those before it, None where all are bad.  fixed_in: the
    first good one after, None where there is none yet.  untried: between them, so that the edge may lie there.
    tried: every answer, in the order of the questions.
    """

    first_bad: str | None
    last_good: str | None
    fixed_in: str | None
    untried: tuple[str, ...]
    tried: tuple[tuple[str, VersionTrial], ...]

    def text(self) -> str:
        """Return the finding for people."""
        if self.first_bad is None:
            return "no version that was tried is bad: " + ", ".join(version for version, _ in self.tried)
        lines = [
            f"first bad: {self.first_bad}",
            f"last good: {self.last_good or 'none that was tried'}",
            f"fixed in:  {self.fixed_in or 'no version that was tried'}",
        ]
        if self.untried:
            lines.append(f"not tried, so the edge may lie there: {', '.join(self.untried)}")
        return "\n".join(lines)


def search_versions(versions: Sequence[str], ask: Try, bad: str | None = None) -> VersionFinding:
    """Return where a failure begins and ends.

    versions: the oldest first.  bad: one that is known to be bad; None: the newest bad one is looked for from the end.
    """
    answers: dict[str, VersionTrial] = {}

    def trial(position: int) -> VersionTrial:
        version = versions[position]
        if version not in answers:
            answers[version] = ask(version)
        return answers[version]

    order = [versions.index(bad)] if bad is not None else range(len(versions) - 1, -1, -1)
    known = next((position for position in order if trial(position) is VersionTrial.BAD), None)
    if known is None:
        return VersionFinding(None, None, None, (), tuple(answers.items()))
    first, good = _edge(list(range(known, -1, -1)), trial)
    _, fixed = _edge(list(range(known, len(versions))), trial)
    edges = [*range((good if good is not None else -1) + 1, first)]
    untried = tuple(versions[place] for place in edges if answers.get(versions[place]) is VersionTrial.UNTRIED)
    return VersionFinding(
        versions[first],
        versions[good] if good is not None else None,
        versions[fixed] if fixed is not None else None,
        untried,
        tuple(answers.items()),
    )


def _edge(places: Sequence[int], trial: Callable[[int], VersionTrial]) -> tuple[int, int | None]:
    """Return the last bad place and the good one behind it; the first of the places is bad.

    The farthest place is asked first: where it is bad, so is all between.
    """
    bad, good = 0, 0
    for far in range(len(places) - 1, 0, -1):
        answer = trial(places[far])
        if answer is VersionTrial.BAD:
            return places[far], None
        if answer is VersionTrial.GOOD:
            good = far
            break
    if not good:
        return places[0], None
    while True:
        between = sorted(range(bad + 1, good), key=lambda place: abs(2 * place - bad - good))
        middle = next((place for place in between if trial(places[place]) is not VersionTrial.UNTRIED), None)
        if middle is None:
            return places[bad], places[good]
        if trial(places[middle]) is VersionTrial.BAD:
            bad = middle
        else:
            good = middle
