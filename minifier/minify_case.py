"""One case, a script or a test, to a script: by its graph where one fails alone, else by its source.

run in a child up to the first failing call -> its graph reduced -> script
                                            -> no graph fails alone, or the process died -> the program reduced
"""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from plumbline.compiler.base.errors import PlumblineError, UserError

from .bisect.bisect_program import culprit_of_text
from .cases.case_run import run_node, run_script
from .cases.failing_calls import FailingCall, FailureSession
from .minify import MinifyOptions, MinifyResult, NotMinified, minify_failing
from .sandbox import TOO_LATE, ChildOutcome, in_child
from .source.minify_source import DoesNotReproduce, NothingFails, SourceOptions, minify_source
from .source.program_of_test import program_of_case
from .source.source_run import SourceSettings

BY = ("auto", "graph", "source")
"""How a case is reduced: its graph, its Python, or the graph first."""
NOTHING_FAILS = "NOTHING_FAILS"

Progress = Callable[[str], None]


def minify_case(
    case: str, compiler: str, backend: str, options: MinifyOptions, *, by: str = "auto", progress: Progress
) -> MinifyResult:
    """Minify the first failure of a case.

    Raises UserError when nothing fails or the case fails by itself, NotMinified when no script could be made.
    """
    if by != "source":
        answer = _by_graph(case, compiler, backend, options, progress)
        if isinstance(answer, MinifyResult):
            return answer
        if by == "graph" or not _source_may_help(answer):
            raise _for_users(answer)
        if not (isinstance(answer, NotMinified) and answer.reason == NOTHING_FAILS):
            progress(f"no graph by itself: {answer.what}; the program is reduced instead")
    return _by_source(case, compiler, backend, options, progress)


def _source_may_help(error: PlumblineError) -> bool:
    return isinstance(error, NotMinified) and error.reason not in ("NO_EXCEPTION", "NOTHING_CALLED")


def _for_users(error: PlumblineError) -> PlumblineError:
    """What nothing fails in was wrongly asked for; other reasons are the minifier's own."""
    if isinstance(error, NotMinified) and error.reason in (NOTHING_FAILS, "NOTHING_CALLED"):
        return UserError(error.what.partition(": ")[2], where=error.where, why=error.why, hint=error.hint)
    return error


def _by_graph(
    case: str, compiler: str, backend: str, options: MinifyOptions, progress: Progress
) -> MinifyResult | PlumblineError:
    """Run the case in a child and reduce a graph there; when the child dies, again with each judgement in its own.

    Gradients are judged last: of a large model they take most of the time, and most failures show without them.
    """

    def attempt(chosen: MinifyOptions, *, gradients: bool = True) -> MinifyResult | PlumblineError:
        try:
            return _minified_graph(case, compiler, backend, chosen, progress, gradients=gradients)
        except PlumblineError as error:
            return error

    def apart(chosen: MinifyOptions, *, gradients: bool) -> ChildOutcome[MinifyResult | PlumblineError]:
        limit = options.budget.seconds + options.seconds
        return in_child(lambda: attempt(chosen, gradients=gradients), limit, threads=_threads())

    if not hasattr(os, "fork") or compiler == "torch":  # stock's pools of threads and processes do not live in a fork
        return attempt(options)
    outcome = apart(options, gradients=False)
    if isinstance(outcome.value, NotMinified) and outcome.value.reason == NOTHING_FAILS:
        outcome = apart(options, gradients=True)
    if outcome.value is None and not options.isolated:
        progress(f"{_ending(outcome)}: now each judgement in a process of its own")
        outcome = apart(replace(options, level=3), gradients=True)
    if outcome.value is not None:
        return outcome.value
    return NotMinified("PROCESS_DIES", _ending(outcome), hint="run it under `python -X faulthandler`")


def _ending(outcome: ChildOutcome[MinifyResult | PlumblineError]) -> str:
    return "a call does not return" if outcome.death in ("hang", TOO_LATE) else f"the process ends by {outcome.death}"


def _threads() -> int | None:
    """Leave the number of threads where this process has one thread only, so that a fork lacks none of a pool."""
    tasks = Path("/proc/self/task")
    return None if tasks.is_dir() and len(list(tasks.iterdir())) == 1 else 1


def _minified_graph(
    case: str, compiler: str, backend: str, options: MinifyOptions, progress: Progress, *, gradients: bool
) -> MinifyResult:
    results: list[MinifyResult] = []

    def on_failure(call: FailingCall) -> None:
        results.append(minify_failing(call, options, progress))

    session = FailureSession(
        compiler, backend, on_failure, isolated=options.isolated, seconds=options.seconds, gradients=gradients
    )
    run = run_node if "::" in case else run_script
    run(case, session)
    if session.trouble is not None:
        raise session.trouble
    if not results:
        reason = NOTHING_FAILS if session.judged else "NOTHING_CALLED"
        hint = _ANOTHER if session.judged else _nothing_called(case)
        error = NotMinified(reason, f"nothing to minify: {session.what_happened()}", hint=hint)
        error.where = case
        raise error
    return results[0]


_ANOTHER = "the case is fine under this backend; name another with --backend or --compiler"


def _nothing_called(case: str) -> str:
    if "::" not in case and Path(case).name.startswith("test_"):
        return f"name a test in it: {case}::test_..."
    return "compile something with torch.compile, or call an nn.Module"


def _by_source(case: str, compiler: str, backend: str, options: MinifyOptions, progress: Progress) -> MinifyResult:
    """Reduce the case's program; raises UserError when it does not fail there either."""
    chosen = SourceOptions(
        out=options.out,
        compiler=compiler,
        backend=backend,
        level=options.level,
        proofs=options.proofs,
        budget=options.budget,
        seconds=options.seconds,
        command=options.command,
        fresh=options.fresh,
        engine=options.engine,
        culprit=_culprit if compiler == "plumbline" and options.bisect else _no_culprit,
    )
    try:
        found = minify_source(program_of_case(case), _origin(case), chosen, progress)
    except NothingFails as error:
        what = "nothing to minify: no call fails in a fresh process, with warm caches, or in repeated runs"
        raise UserError(what, where=case, why=error.what, hint=_ANOTHER) from error
    except DoesNotReproduce as error:
        raise NotMinified("DOES_NOT_REPRODUCE", error.what, why=error.why, hint=error.hint) from error
    lines = len(found.reduction.case)
    before, runs = found.reduction.lines_before, found.reduction.queries
    return MinifyResult(
        found.path,
        lines,
        before,
        runs,
        True,
        found.sentence,
        found.stage,
        unit="lines",
        cause=found.reduction.case.text,
        culprit=f"culprit: {found.culprit}" if found.culprit else "",
    )


CULPRIT_RUNS = 4
"""The time that looking for the culprit may take, in the time after which one run is a hang."""


def _culprit(text: str, settings: SourceSettings) -> str:
    """Return what is to blame for a reduced program that fails at every run, whatever lies in the caches."""
    if settings.repeat > 1 or settings.warm:
        return ""
    return culprit_of_text(text, settings.backend, CULPRIT_RUNS * settings.seconds)


def _no_culprit(_text: str, _settings: SourceSettings) -> str:
    return ""


def _origin(case: str) -> str:
    relative = os.path.relpath(case.split("::")[0]) + case[len(case.split("::")[0]) :]
    return min(relative, case, key=len)
