"""The culprit of a failing case: from a case that can be asked again to a sentence, evidence and two files."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from plumbline.compiler.base.bisecting.applications import Application
from plumbline.compiler.base.bisecting.switches import REQUIRED

from .asking import BisectQuestions, FailingCase, OutOfQuestions
from .culprit_search import COARSE, FILE_OF_STAGE, GuiltyApplications, search, switched_off, switched_on
from .stage_texts import difference


@dataclass(frozen=True, slots=True)
class Culprit:
    """What is to blame for a failure.

    sentence: for people, one line.  application: the decisive one; None where only a stage is known.  needed: further
    ones of its kind without which it does no harm.  stage: what validated compilation names, or empty.
    before, after: files with the stage's result without and with it.  evidence: what was tried, a line each.
    switches: the value of the option `bisect` that makes the failure go away.  rate: the share of runs that fail.
    """

    sentence: str
    application: Application | None
    needed: tuple[Application, ...]
    stage: str
    before: Path | None
    after: Path | None
    evidence: tuple[str, ...]
    switches: str
    queries: int
    seconds: float
    rate: float = 1.0

    @property
    def rule(self) -> str:
        """Return the value of the option `bisect` that switches off all that the guilty rule decides, or empty.

        It says the same in every program, so that it groups failures: those that it mends have this cause.
        """
        guilty = self.application
        return f"{guilty.kind}:@{guilty.rule}" if guilty is not None and "," not in guilty.rule else ""

    def as_data(self) -> dict[str, object]:
        """Return it as plain data."""
        files = {"before": self.before, "after": self.after}
        return asdict(self) | {name: None if file is None else str(file) for name, file in files.items()}

    def text(self) -> str:
        """Return the sentence, what was tried, and where the files are."""
        lines = [f"culprit: {self.sentence}", *(f"  {line}" for line in self.evidence)]
        if self.before is not None:
            lines.append(f"  before: {self.before}")
            lines.append(f"  after:  {self.after}")
        return "\n".join([*lines, f"  {self.queries} queries, {self.seconds:.1f} s"])


def culprit_of(
    case: FailingCase,
    folder: Path | None = None,
    *,
    budget: int = 200,
    progress: Callable[[str], None] = lambda _: None,
) -> Culprit | None:
    """Return what is to blame for a failure of plumbline; None for a case that does not fail.

    folder: for the files `before` and `after`; None: none are written.  budget: the most runs of the case.
    """
    start = time.perf_counter()
    questions = BisectQuestions(case, budget, progress=progress)
    if not questions.fails("") and not questions.measure(FEW_RUNS):
        return None
    stage = questions.departed_stage()
    if stage:
        progress(f"validated compilation names {stage}")
    try:
        found = search(questions, stage)
        if questions.rate == 1 and _is_doubtful(found, questions) and questions.measure(MANY_RUNS) < 1:
            progress(f"it fails in {questions.rate:.0%} of its runs: asked again, each question several times")
            found = search(questions, stage)
    except OutOfQuestions as error:
        return _unfinished(stage, str(error), questions, start)
    if found is None:
        what = "it fails with every application switched off: it is in none of them"
        return _unfinished(stage, what, questions, start)
    return _told(found, questions, folder, start)


FEW_RUNS, MANY_RUNS = 4, 10
"""Of a case that passed once, and of one whose answers do not fit together."""


def _is_doubtful(found: GuiltyApplications | None, questions: BisectQuestions) -> bool:
    """Return whether the answers do not fit together, as those of a failure that comes in some runs only do not."""
    if found is None or not found.alone_fails or len(found.guilty) > 1:  # rarer than a run that happened to pass
        return True
    return not questions.fails_again(switched_on(found.guilty)) or questions.fails_again(_mending(found))


def _unfinished(stage: str, why: str, questions: BisectQuestions, start: float) -> Culprit:
    sentence = f"stage {stage}" if stage else "not found"
    required = f"what cannot be switched off: {', '.join(REQUIRED)}"
    seconds = time.perf_counter() - start
    return Culprit(f"{sentence}; {why}", None, (), stage, None, None, (required,), "", questions.asked, seconds)


def _told(found: GuiltyApplications, questions: BisectQuestions, folder: Path | None, start: float) -> Culprit:
    last = found.guilty[-1]
    sentence = last.text()
    if found.stage and last.kind in COARSE:
        sentence = f"{found.stage} ({FILE_OF_STAGE.get(found.stage, last.where)}): {sentence}"
    if found.guilty[:-1]:
        others = [f"{each.kind} {each.number} ({each.what})" for each in found.guilty[:-1]]
        sentence += f"; together with {_and(others[:3])}" + (f" and {len(others) - 3} more" if others[3:] else "")
    if found.same_rule:
        sentence += f"; so are {len(found.same_rule)} more of the same rule"
    before = after = None
    if folder is not None:
        without, having = _both_texts(found, questions)
        texts = difference(last.kind, questions.ask(without).texts, questions.ask(having).texts)
        if texts is not None:
            before, after = texts.write(folder, last.text())
    return Culprit(
        sentence,
        last,
        found.guilty[:-1],
        found.stage,
        before,
        after,
        _evidence(found, questions.rate),
        _mending(found),
        questions.asked,
        time.perf_counter() - start,
        questions.rate,
    )


def _mending(found: GuiltyApplications) -> str:
    """Return the switches under which the case passes, as few as are known."""
    last = found.guilty[-1]
    known = found.without_passes or bool(found.same_rule)
    return switched_off([last, *found.same_rule]) if known else f"-{last.kind}"


def _both_texts(found: GuiltyApplications, questions: BisectQuestions) -> tuple[str, str]:
    """Return switches without and with the culprit, as near as can be to the program as it is compiled."""
    last = found.guilty[-1]
    if found.without_passes:
        return switched_off([last]), ""
    having = switched_on(found.guilty)
    return switched_on(found.guilty[:-1]) if found.guilty[:-1] else f"-{last.kind}", having


def _evidence(found: GuiltyApplications, rate: float) -> tuple[str, ...]:
    last = found.guilty[-1]
    only = _and([f"{each.kind} {each.number}" for each in found.guilty])
    lines = [
        f"only {only} of the kind on: it {'fails' if found.alone_fails else 'passes, so others have a part in it'}"
    ]
    one = f"{last.kind} {last.number}"
    if found.without_passes:
        lines.append(f"only {one} off: it passes")
    elif found.same_rule:
        lines.append(f"all {len(found.same_rule) + 1} of {last.rule} off: it passes; one of them off is not enough")
    else:
        lines.append(f"only {one} off: it still fails, so it is not the only one; all of its kind off: it passes")
    if found.stage:
        lines.append(f"validated compilation: the stage `{found.stage}` departs first")
    if rate < 1:
        lines.append(f"it fails in {rate:.0%} of its runs; each answer was asked for as often as that needs")
    return tuple(lines)


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
