"""From a failing program to a script of a few lines, for failures that no single graph shows."""

import ast
import contextlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from plumbline.compiler.base.errors import PlumblineError
from plumbline.oracle.harness.compilers import rungs_below

from ..engines.engine_places import Engine, find_engine
from ..failure_signature import FailureSignature
from ..reduce.problem import Budget
from ..repro.proof import ScriptFile, prove
from .failure_conditions import CHANGED_RUNS, FailureConditions, asked_again, find_conditions, first_report, rated
from .program_of_test import Program
from .source_case import SourceCase, source_case
from .source_passes import with_small_numbers
from .source_reduction import FailureGone, SourceReduction, reduce_source
from .source_run import RunReport, SourceSettings, is_of_package
from .source_script import SourceHistory, source_script
from .warm_process import WarmProcess

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How a program is minified.

    out: the script.  level: 1 writes the whole program.  proofs: fresh processes that must reproduce.
    seconds: of one run before it is a hang.  fresh: ask again what an earlier run asked.
    engine: where several programs are run at once, a place of `find_engine`; "" for one after the other.
    culprit: names the part of the compiler at fault in a failing program, as a sentence, when it can.
    """

    out: Path
    compiler: str
    backend: str
    level: int = 4
    proofs: int = 5
    budget: Budget = Budget()  # noqa: RUF009 - frozen, so that one default serves all
    seconds: float = 120.0
    command: str = ""
    fresh: bool = False
    engine: str = ""
    culprit: Callable[[str, SourceSettings], str] = lambda _text, _settings: ""


_PATIENCE, _TIMES = 10.0, 5.0
"""A candidate that takes this many seconds, and as many times what the program took, hangs: a loop lost its end."""


class NothingFails(PlumblineError):
    """The program does not fail under the judge, at any of the conditions that were tried."""


class DoesNotReproduce(PlumblineError):
    """The reduced program fails in the warm process and not as a script in fresh ones."""


@dataclass(frozen=True, slots=True)
class SourceResult:
    """The end of it.  culprit: a sentence on the part of the compiler at fault; empty where it is not known."""

    path: Path
    reduction: SourceReduction
    stage: str
    sentence: str
    culprit: str = ""


def minify_source(program: Program, origin: str, options: SourceOptions, progress: Progress) -> SourceResult:
    """Run a program, reduce it, prove its script and write it.

    Raises NothingFails, or DoesNotReproduce when the script fails to fail.
    """
    case = source_case(program.text)
    sys.path.insert(0, program.folder)  # inlining reads the sources of the program's own modules
    settings = SourceSettings(
        compiler=options.compiler,
        backend=options.backend,
        seed=program.seed,
        folder=program.folder,
        seconds=options.seconds,
    )
    loaded: list[str] = []
    try:
        return _minified(case, origin, options, settings, progress, loaded)
    except DoesNotReproduce as error:
        if not loaded:
            raise
        progress(f"{error.what}; again, with no package loaded before the program imports it")
        return _minified(case, origin, options, settings, progress, None)


def _minified(
    case: SourceCase,
    origin: str,
    options: SourceOptions,
    settings: SourceSettings,
    progress: Progress,
    loaded: list[str] | None,
) -> SourceResult:
    """Reduce a program.  loaded: filled with the modules loaded beforehand; None forbids that."""
    started = time.monotonic()
    places = find_engine(options.engine) if options.engine else contextlib.nullcontext()
    with WarmProcess() as warm, places as engine:
        first = first_report(lambda chosen: warm.ask(case.text, chosen), settings)
        if options.level > 1:
            case, first = made_small(case, first, warm, settings)
        if loaded is not None:
            settings, first = preloaded(case, first, warm, settings)
            loaded += settings.preload
        conditions = find_conditions(lambda chosen: warm.ask(case.text, chosen), settings, first)
        if conditions is None:
            report = warm.ask(case.text, settings)
            raise NothingFails(
                report.own_error or report.sentence, where=origin, hint="name another --backend or --compiler"
            )
        ways = _Ways(case, origin, options, warm, engine, started)
        try:
            return ways.reduced(conditions, progress)
        except (FailureGone, DoesNotReproduce) as error:
            if conditions.rate < 1.0 or conditions.settings.warm:
                raise
            seldom = rated(lambda chosen: warm.ask(case.text, chosen), settings, conditions.report)
            if seldom.rate == 1.0:
                raise
            progress(f"{error.what}: it fails now and then")
            return ways.reduced(seldom, progress)


@dataclass(frozen=True, slots=True)
class _Ways:
    """How a program is reduced, whatever the conditions of its failure are.  started: when the command began."""

    case: SourceCase
    origin: str
    options: SourceOptions
    warm: WarmProcess
    engine: Engine | None
    started: float

    def reduced(self, conditions: FailureConditions, progress: Progress) -> SourceResult:
        """Reduce the program and write its script; raises FailureGone and DoesNotReproduce."""
        case, warm, options = self.case, self.warm, self.options
        progress(f"{conditions.report.sentence}{'; ' * bool(conditions.sentence)}{conditions.sentence}")
        patience = min(options.seconds, _PATIENCE + _TIMES * (time.monotonic() - self.started))
        quicker = replace(conditions.settings, seconds=_hang_seconds(conditions, patience))
        budget = options.budget if options.level > 1 else Budget(0, 0.0)
        # What capture does wrong needs no C compiler, so each run is cheaper and the script says more.
        earliest = _first_wrong_stage(case, conditions.report.signature, warm, quicker)
        quicker = replace(quicker, backend=earliest)
        progress(f"first wrong stage: {options.compiler}:{earliest}")
        reduction = reduce_source(
            case,
            conditions.report,
            warm,
            quicker,
            budget,
            progress,
            fresh=options.fresh,
            written=options.out,
            engine=self.engine,
        )
        stage = _first_wrong_stage(reduction.case, reduction.signature, warm, quicker)
        culprit = options.culprit(reduction.case.text, quicker)
        return _written(self.origin, options, reduction, quicker, conditions, stage, culprit)


def _hang_seconds(conditions: FailureConditions, seconds: float) -> float:
    """A hang costs the whole limit at each run; ten seconds are many times what a small program takes."""
    signature = conditions.report.signature
    return min(seconds, 10.0) if signature is not None and signature.hangs else seconds


def _script_seconds(signature: FailureSignature) -> float:
    """Return when a run of the script is called a hang: everything is loaded anew there, on any machine."""
    return 30.0 if signature.hangs else 600.0


def made_small(
    case: SourceCase, first: RunReport, warm: WarmProcess, settings: SourceSettings
) -> tuple[SourceCase, RunReport]:
    """Return a program with 2 in the place of its large whole numbers, or of one, and its report, if it fails alike.

    A model of a thousand layers is then run once, before conditions are looked for, and not ten times.  A hang is as
    long in a small program.  What fails now and then may do so for one of its numbers: the largest one alone is tried,
    too, and the program is taken that fails more often.
    """
    if first.signature is None or first.signature.hangs:
        return case, first
    asked = replace(settings, sought=first.signature)
    best, most = (case, first), 0
    for place, small in enumerate(with_small_numbers(case)):
        if place > 1 and most:
            break
        reports = _reports_alike(small, first, warm, asked)
        if len(reports) > most:
            best, most = (small, reports[0]), len(reports)
        if most == CHANGED_RUNS:
            break
    return best


def _reports_alike(case: SourceCase, first: RunReport, warm: WarmProcess, settings: SourceSettings) -> list[RunReport]:
    """Return the reports of the runs that fail as the first one did; a program that always does is small enough."""
    reports = (warm.ask(case.text, settings) for _ in range(CHANGED_RUNS))
    return [report for report in reports if _alike(report, first)]


def preloaded(
    case: SourceCase, first: RunReport, warm: WarmProcess, settings: SourceSettings
) -> tuple[SourceSettings, RunReport]:
    """Return settings by which a program's packages are loaded once, and the report of its first run under them.

    first: of a run without them, which says what it loaded; of a process that died, the program's text has to say it.
    Where it fails no longer, as when a package compiles something when it is imported, nothing is loaded.
    """
    if not first.imported:
        return replace(settings, preload=installed_packages(case, Path(settings.folder))), first
    chosen = replace(settings, preload=first.imported)
    report = warm.ask(case.text, asked_again(chosen, first))
    if _alike(report, first):
        return chosen, report
    warm.close()  # the next question starts a process without them
    return settings, first


def _alike(report: RunReport, first: RunReport) -> bool:
    if report.signature is None or first.signature is None:
        return report.signature is first.signature and bool(report.own_error) == bool(first.own_error)
    return first.signature.matches(report.signature)


def installed_packages(case: SourceCase, folder: Path) -> tuple[str, ...]:
    """Return the installed packages that a program and its own modules import, as far as its text says.

    folder: of its own modules.  They are not loaded beforehand: what they do when they are imported is part of it.
    """
    found: dict[str, None] = {}
    trees, seen = [case.tree()], set[Path]()
    while trees:
        for name in _imports(trees.pop()):
            own = _own_module(name, folder)
            if own is None:
                found[name] = None
            elif own not in seen:
                seen.add(own)
                with contextlib.suppress(OSError, SyntaxError, UnicodeDecodeError):
                    trees.append(ast.parse(own.read_text(encoding="utf-8")))
    return tuple(name for name in found if is_of_package(name))


def _imports(tree: ast.Module) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.append(node.module)
    return found


def _own_module(name: str, folder: Path) -> Path | None:
    """Return the file of a module in the program's folder, None for all others."""
    place = folder.joinpath(*name.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)


def _first_wrong_stage(
    case: SourceCase, signature: FailureSignature | None, warm: WarmProcess, settings: SourceSettings
) -> str:
    """Climb the ladder with a program that fails: the first backend that fails in the same way."""
    sought = replace(settings, sought=signature)
    for backend in rungs_below(settings.backend):
        found = warm.ask(case.text, replace(sought, backend=backend)).signature
        if found is not None and signature is not None and signature.matches(found):
            return backend
    return settings.backend


def _written(
    origin: str,
    options: SourceOptions,
    reduction: SourceReduction,
    settings: SourceSettings,
    conditions: FailureConditions,
    stage: str,
    culprit: str,
) -> SourceResult:
    history = SourceHistory(
        origin=origin,
        lines_before=reduction.lines_before,
        queries=reduction.queries,
        tried=reduction.tried,
        conditions=conditions.sentence,
        command=options.command,
        stage=stage,
        culprit=culprit,
    )
    chosen = replace(settings, preload=(), seconds=_script_seconds(reduction.signature))
    parts = (reduction.case, reduction.report, reduction.signature, chosen)
    draft = ScriptFile(options.out, source_script(*parts, history, options.out.name))
    proof = prove(draft, options.proofs, reduction.signature)
    if not proof.holds:
        reduction.kept.forget()
        hint = "the failure depends on more than the program; see the conditions in docs/tutorial-minimizing.md"
        raise DoesNotReproduce(proof.sentence, why=reduction.report.sentence, hint=hint)
    script = source_script(*parts, replace(history, proofs=proof.count), options.out.name)
    ScriptFile(options.out, script).put_in_place()
    limit = "" if reduction.complete else " (budget used up: not minimal)"
    sort = reduction.signature.sentence()
    sentence = (
        f"REPRODUCES {proof.count}/{options.proofs}: {reduction.lines_before} -> {len(reduction.case)} lines in "
        f"{reduction.queries} runs{limit}, stage {options.compiler}:{stage}, {sort}: {options.out}"
    )
    return SourceResult(options.out, reduction, stage, sentence, culprit)
