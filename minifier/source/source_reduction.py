"""The reduction of a failing program: look, cut, inline what is left of the imports, cut again, check every edit."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from plumbline.compiler.base.errors import UserError

from ..engines.engine_places import Engine
from ..failure_signature import FailureSignature
from ..reduce.engine import reduce
from ..reduce.problem import Budget, LogEntry, Problem, QueriesExhausted, Questions, Together
from .asked_together import asked_together
from .child_edits import child_programs
from .inlining import imported_names, inlined
from .kept_answers import KeptAnswers, kept_answers
from .single_edits import SINGLE_EDITS
from .source_case import SourceCase, is_program
from .source_passes import EACH_EDIT, SourcePass, SourceProblem, drop_unread_names, quick_passes, shrink_large_numbers
from .source_run import RunReport, SourceSettings
from .warm_process import WarmProcess

SOURCE_QUERIES = 20
"""Programs that may be run for each query of a graph: a statement is a smaller step than an operator."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SourceReduction:
    """The end of a reduction.

    case: the smallest program that fails.  complete: False when the budget ran out.
    tried: how many single edits of each kind were tried on it, all in vain; empty when not complete.
    imports: packages that it still needs.  lines_before: of the first program.  kept: what the next run need not ask.
    """

    case: SourceCase
    report: RunReport
    signature: FailureSignature
    queries: int
    seconds: float
    complete: bool
    tried: Mapping[str, int]
    imports: tuple[str, ...]
    log: tuple[LogEntry, ...]
    lines_before: int
    kept: KeptAnswers


def reduce_source(
    case: SourceCase,
    first: RunReport,
    warm: WarmProcess,
    settings: SourceSettings,
    budget: Budget,
    progress: Progress = lambda _: None,
    *,
    fresh: bool = False,
    written: Path | None = None,
    engine: Engine | None = None,
) -> SourceReduction:
    """Reduce a program that `first` says fails; every further run looks for the same failure.

    fresh: ask again what an earlier run of the command asked.  written: the script that the command writes.
    engine: where several programs are run at once; the result is the same as without it.
    Ctrl-C ends the reduction with what it has.  Raises UserError for a program that does not fail.
    """
    if first.signature is None:
        raise UserError("the program does not fail", why=first.sentence, hint="nothing to minify")
    sought = replace(settings, sought=first.signature)
    kept = KeptAnswers(None) if fresh else kept_answers(sought, written)
    work = _SourceWork(case, first.signature, warm, sought, kept, budget, progress, engine)
    complete = work.reduce()
    report = work.problem.answer(work.problem.current) or first
    tried = {name: len(edits(work.problem.current)) for name, edits in SINGLE_EDITS.items()} if complete else {}
    imports = {one.module.split(".")[0] for one in imported_names(work.problem.current)}
    return SourceReduction(
        work.problem.current,
        report,
        first.signature,
        work.problem.queries,
        work.problem.seconds,
        complete,
        tried,
        tuple(sorted(imports)),
        tuple(work.problem.log),
        len(case),
        kept,
    )


class FailureGone(UserError):
    """The program has failed, and does not where it is to be reduced."""


class _SourceWork:
    def __init__(
        self,
        case: SourceCase,
        signature: FailureSignature,
        warm: WarmProcess,
        settings: SourceSettings,
        kept: KeptAnswers,
        budget: Budget,
        progress: Progress,
        engine: Engine | None,
    ) -> None:
        self.engine = engine
        self.warm, self.progress = warm, progress
        self.settings, self.kept = settings, kept
        self.refused: set[object] = set()
        self.told = 0.0
        questions = Questions(
            ask=self._ask,
            accepts=lambda report: report.signature is not None and signature.matches(report.signature),
            valid=is_program,
            key=lambda candidate: candidate.text,
            together=Together(self._ask_together, engine.workers) if engine and engine.workers > 1 else None,
        )
        allowed = Budget(budget.queries * SOURCE_QUERIES, budget.seconds)
        self.problem: SourceProblem = Problem(case, questions, len, allowed)

    def _ask_together(self, candidates: Sequence[SourceCase]) -> list[RunReport]:
        assert self.engine is not None
        self._tell()
        ask = partial(asked_together, settings=self.settings, engine=self.engine)
        return self.kept.answers([candidate.text for candidate in candidates], ask)

    def _tell(self) -> None:
        if time.monotonic() - self.told > 5:
            self.told = time.monotonic()
            self.progress(f"{len(self.problem.current)} lines after {self.problem.queries} runs")

    def _ask(self, candidate: SourceCase) -> RunReport:
        self._tell()
        return self.kept.answer(candidate.text, lambda: self.warm.ask(candidate.text, self.settings))

    def _executed(self, candidate: SourceCase) -> frozenset[int]:
        return self.warm.ask(candidate.text, replace(self.settings, trace=True)).lines

    def reduce(self) -> bool:
        """Cut, inline, cut, until neither finds anything; return whether the budget was enough."""
        quick = quick_passes(self._executed)
        try:
            if not self.problem.fails(self.problem.current):
                raise FailureGone(
                    "the failure does not show again", why="the program is run in a fresh process", hint=""
                )
            self.problem.run((shrink_large_numbers,))
            reduce(self.problem, (quick,))
            if self._compile_a_child():
                reduce(self.problem, (quick,))
            self._inline_all(quick)
            self._all_edits()
            self.refused.clear()  # what could not be inlined into a long program may be into a short one
            while self._inline_all(quick):
                self._all_edits()
            return self._is_minimal()
        except (QueriesExhausted, KeyboardInterrupt):
            return False

    def _compile_a_child(self) -> bool:
        """Compile the smallest child that fails in the place of the whole module; return whether there is one."""
        seen = self.warm.ask(self.problem.current.text, replace(self.settings, children=True))
        programs = child_programs(self.problem.current, seen.children)
        for place, program in enumerate(programs):
            self.problem.foresee(programs[place:])
            if self.problem.attempt(program):
                return True
        return False

    def _all_edits(self) -> None:
        while True:
            before = self.problem.current
            self.problem.run((drop_unread_names, *EACH_EDIT))
            if self.problem.current is before:
                return

    def _inline_all(self, quick: tuple[SourcePass, ...]) -> bool:
        """Inline one name after the other, with little cutting in between; return whether there was any."""
        before = self.problem.current
        while self._inline_one():
            self.problem.run((*quick, *EACH_EDIT[:3]) if len(self.problem.current) > 40 else quick)
        return self.problem.current is not before

    def _inline_one(self) -> bool:
        """Adopt the program with one more of its imported names defined in it."""
        for one in imported_names(self.problem.current):
            if one in self.refused:
                continue
            candidate = inlined(self.problem.current, one)
            if candidate is not None and self.problem.attempt(candidate):
                self.progress(f"{one.module}.{one.attribute or '*'} is inlined: {len(candidate)} lines")
                return True
            self.refused.add(one)
        return False

    def _is_minimal(self) -> bool:
        """Try every single edit of the result; what the passes have asked is answered from memory."""
        for edits_of in SINGLE_EDITS.values():
            edits = edits_of(self.problem.current)
            for place, edit in enumerate(edits):
                self.problem.foresee(one.applied(self.problem.current) for one in edits[place:])
                if self.problem.attempt(edit.applied(self.problem.current)):
                    self._all_edits()
                    return self._is_minimal()
        return True
