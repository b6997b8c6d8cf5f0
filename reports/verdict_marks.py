"""One letter, one word and one tone for the result of a case: the same in the terminal and on the page."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .rows import CaseRow

# Every verdict, lightest first, with its letter, tone and meaning.
# The tones: good, better, weak (passed, but judged by less), known, none, vacuous, bad.
VERDICTS: dict[str, tuple[str, str, str]] = {
    "EQUAL": ("=", "good", "bitwise equal"),
    "NOISE": ("~", "good", "within the program's own rounding noise"),
    "BETTER": ("+", "better", "differs from eager, closer to fp64"),
    "DESIGN": ("D", "weak", "goes another way when compiled, and says so"),
    "NO_REFERENCE": ("?", "weak", "no reference; judged by what there is"),
    "JUDGE_FAILED": ("J", "weak", "an error inside the judge; not judged"),
    "UNSTABLE": ("U", "weak", "rounding alone decides too many positions"),
    "EAGER_FAILED": ("E", "weak", "the test fails without a compiler too"),
    "VACUOUS": ("V", "vacuous", "nothing was compiled"),
    "SENSITIVE": ("S", "bad", "calls are right; the test's tolerance is tighter than rounding noise"),
    "NONDETERMINISTIC": ("N", "bad", "compiled differs from itself where eager does not"),
    "WRONG": ("W", "bad", "differs from the reference beyond noise"),
    "CRASH": ("C", "bad", "internal error, crash, hang or out of memory"),
}


@dataclass(frozen=True, slots=True)
class Mark:
    """How a case is shown: by letter and word; the tone (a colour) only repeats them."""

    letter: str
    word: str
    tone: str
    meaning: str


_SKIPPED = Mark("-", "skipped", "none", "not run")
_XFAILED = Mark("x", "xfailed", "known", "fails as its mark says")
_XPASSED = Mark("X", "xpassed", "better", "passes although its mark says it fails")
_ERROR = Mark("!", "error", "bad", "set-up or tear-down failed")
_FAILED = Mark("F", "failed", "bad", "the test failed by itself; every judged call was right")
_PASSED = Mark("p", "passed", "good", "passed; no call was judged")
_VACUOUS = Mark("V", "VACUOUS", "vacuous", VERDICTS["VACUOUS"][2])
_CLEARED = Mark("Y", "flaky", "soft", "failed, and passed when it was run again")
_BY_OUTCOME = {"skipped": _SKIPPED, "xfailed": _XFAILED, "xpassed": _XPASSED, "error": _ERROR, "vacuous": _VACUOUS}


def mark_of(case: CaseRow) -> Mark:
    """Return the mark of a case; a failing one is never shown in a good tone."""
    if case.outcome in _BY_OUTCOME:
        return _BY_OUTCOME[case.outcome]
    if case.verdict not in VERDICTS:
        return _FAILED if case.failing else _PASSED
    letter, tone, meaning = VERDICTS[case.verdict]
    if case.failing and tone in ("good", "better"):
        return _FAILED
    return Mark(letter, case.verdict, "bad" if case.failing else tone, meaning)


def every_mark() -> tuple[Mark, ...]:
    """Return every mark that a case can have, the lightest first; of a letter with two tones, the more serious one."""
    verdicts = [Mark(letter, word, tone, meaning) for word, (letter, tone, meaning) in VERDICTS.items()]
    good = [mark for mark in verdicts if mark.tone in ("good", "better")]
    passing = [mark for mark in verdicts if mark.tone == "weak" and mark.word != "EAGER_FAILED"]
    failing = [replace(mark, tone="bad") for mark in verdicts if mark.word == "EAGER_FAILED"]
    failing += [mark for mark in verdicts if mark.tone == "bad"]
    return (*good, _PASSED, _XPASSED, _SKIPPED, _XFAILED, *passing, _CLEARED, _VACUOUS, *failing, _ERROR, _FAILED)


def marks_in(cases: Iterable[CaseRow]) -> list[tuple[Mark, int]]:
    """Return the marks that occur with their counts, the most serious first."""
    counts = Counter(mark_of(case) for case in cases)
    return sorted(counts.items(), key=lambda item: (-_SERIOUSNESS.index(item[0].tone), item[0].word))


_SERIOUSNESS = ("good", "better", "none", "known", "weak", "vacuous", "bad")


def seriousness(case: CaseRow) -> tuple[int, int]:
    """Return a sort key, larger for what should be read first: by tone, then by verdict."""
    verdicts = list(VERDICTS)
    rank = verdicts.index(case.verdict) if case.verdict in VERDICTS else -1
    return _SERIOUSNESS.index(mark_of(case).tone), rank


def columns_of(cases: Iterable[CaseRow]) -> list[str]:
    """Return the `compiler:backend` columns: compilers by name, backends in the order of the ladder."""
    columns = {(case.compiler, case.backend) for case in cases}
    ladder = {"eager": 0, "aot_eager": 1, "inductor": 2}
    ordered = sorted(columns, key=lambda pair: (pair[0], ladder.get(pair[1], len(ladder)), pair[1]))
    return [f"{compiler}:{backend}" for compiler, backend in ordered]


def one_line(text: str) -> str:
    """Return text fit for one line of a terminal: control characters become spaces."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def margin_text(margin: float | None) -> str:
    """Return a margin as text, three digits; empty when nothing differed."""
    return "" if margin is None or margin == 0.0 else f"{margin:.3g}"


def seconds_text(seconds: float) -> str:
    """Return a time with the unit that suits it."""
    if seconds >= 100:
        return f"{seconds:.0f} s"
    if seconds >= 1:
        return f"{seconds:.3g} s"
    if seconds >= 1e-3:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds * 1e6:.0f} µs" if seconds > 0 else "0"
