"""What the dashboard shows, as plain frozen data: the page is a function of one `PageData` and one packed history.

Nights, tests and columns are named by their position in `PageData.nights`, `PackedHistory.names` and
`PageData.columns`, so that a page of 12,000 cases stays small.  Texts are raw here; the browser writes them as text.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NightShown:
    """One run of the series: on what it ran, and how many cases were newly wrong, still wrong, flaky, and so on.

    versions: part -> version, for the parts that a fault can come from (`PARTS`), in that order.
    void: why the night teaches nothing, empty for an ordinary one.
    passing: cases that hold; cases: all that were stored, skipped ones too.
    """

    run_id: str
    utc: str
    suite: str = ""
    machine: str = ""
    versions: dict[str, str]
    void: str = ""
    complete: bool = True
    red: bool = False
    new: int = 0
    still: int = 0
    flaky: int = 0
    fixed: int = 0
    passing: int = 0
    cases: int = 0


PARTS = ("plumbline", "torch", "your code", "machine")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkShown:
    """One kind of result: its letter, word, tone (a colour of the palette), meaning; a larger rank is more serious."""

    letter: str
    word: str
    tone: str
    meaning: str
    rank: int
    failing: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One change that came with a night: its id (or a version), first line and author."""

    id: str
    title: str = ""
    author: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseDetail:
    """What is known of one case that is not plainly good, of one night; fields as in CaseRow, numbers as text.

    facts: (name, value) in the order in which they are read.  command: what reproduces it, to be copied.
    """

    test: str
    column: int
    night: int
    mark: int
    margin: float | None = None
    sentence: str = ""
    where: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultShown:
    """Failing cases that began together and look alike.

    key: names it in links, the same on every night.  since: the night, -1 when it is older than the page.
    columns: the failing ones.  tests: positions of the names.  history: marks of the worst case, a letter a night.
    suspect: one of PARTS, or "unknown"; proved: a rerun confirmed it.
    """

    key: str
    new: bool
    since: int
    since_date: str
    nights: int
    columns: tuple[int, ...]
    mark: int
    title: str
    tests: tuple[int, ...]
    suspect: str
    proved: bool = False
    why: str
    commits: tuple[Commit, ...] = ()
    worst: CaseDetail | None = None
    command: str = ""
    history: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftShown:
    """Something that moves without failing: compile time of a column, or margins on their way to the limit.

    view: the state of the page that shows it, such as {"view": "speed"}.  night: where the level changed, -1 for none.
    """

    bold: str
    text: str
    view: dict[str, str]
    link: str = "chart"
    night: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FlakyShown:
    """A case that passed and failed on the same code: it runs on and does not count.

    counted: it fails so often that it counts as a failure (intermittent).
    rate: share of its judged nights on which it failed.  standing: what holds for it now, in words.
    """

    test: str
    column: int
    mark: int
    failing: bool
    counted: bool = False
    rate: float
    since: str
    standing: str
    history: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measure of one column and group (a model or file; "" is all of them): a value a night, None where unknown."""

    measure: str
    column: int
    group: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureShown:
    """A measure of the Speed view: its name, what it is, its unit, and whether less is better."""

    key: str
    title: str
    lead: str
    unit: str
    less_is_better: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NameChange:
    """A test that vanished (after is empty) or was renamed; `because` says how that is known."""

    before: str
    after: str = ""
    because: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageData:
    """Everything but the history of the cases.

    verdict: RED, AMBER, GREEN or VOID.  headline, summary: one sentence each.
    compared: position of the night that the last one is compared with, -1 for none; green: the last green one, or -1.
    series: the suite and machine of the page, and what others the database has, for the choice on a live page.
    """

    project: str
    made: str
    live: bool
    verdict: str
    headline: str
    summary: str
    nights: tuple[NightShown, ...]
    columns: tuple[str, ...]
    marks: tuple[MarkShown, ...]
    compared: int
    green: int
    faults: tuple[FaultShown, ...] = ()
    drifts: tuple[DriftShown, ...] = ()
    flaky: tuple[FlakyShown, ...] = ()
    names: tuple[NameChange, ...] = ()
    measures: tuple[MeasureShown, ...] = ()
    measured: tuple[Measured, ...] = ()
    details: tuple[CaseDetail, ...] = ()
    series: str = ""
    all_series: tuple[str, ...] = ()
    more_nights: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedHistory:
    """Names, marks and margins of every case and night, each gzip: small, and quick to open in a browser.

    names: one a line.  marks: bytes, night by night, in each the cases (test * columns + column), each XORed with
    the same case of the night before.  margins: the same, a byte a margin as `byte_of_value` of strips.py makes it.
    """

    names: bytes
    marks: bytes
    margins: bytes
